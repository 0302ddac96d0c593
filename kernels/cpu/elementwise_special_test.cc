// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// lgamma, atan2 and hypot of float32 against the C library's functions of
// doubles, rounded.
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/cpu/op_testing.h"
#include "ops/op_id.h"

namespace holdfast::cpu {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

TestTensor Floats(const std::vector<float>& values) {
  TestTensor t(DType::kFloat32, {static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), t.data<float>());
  return t;
}

// |got - expected| in units of expected's last place.
double Ulps(float got, double expected) {
  const float near = static_cast<float>(expected);
  if (std::isnan(got) || std::isnan(near)) {
    return std::isnan(got) && std::isnan(near) ? 0 : kInf;
  }
  if (std::isinf(got) || std::isinf(near)) return got == near ? 0 : kInf;
  const float size =
      std::max(std::fabs(near), std::numeric_limits<float>::min());
  return std::fabs(got - expected) /
         (std::nextafter(size, kInf) - static_cast<double>(size));
}

TEST(LgammaTest, WithinFourUlps) {
  std::vector<float> x = {0.0f,   -0.0f,      1.0f,       2.0f,   -1.0f,
                          -2.0f,  kInf,       -kInf,      kNan,   1e-45f,
                          1e-30f, -1e-30f,    1e30f,      -1e30f, 3e38f,
                          4e36f,  8388607.5f, -8388607.5f};
  for (float zero : {1.0f, 2.0f}) {
    for (float v = zero, w = zero; v < zero * 1.001f;) {
      x.push_back(v = std::nextafter(v, kInf));
      x.push_back(w = std::nextafter(w, -kInf));
    }
  }
  for (int i = -60000; i < 60000; ++i) x.push_back(i * 0.00061f);
  const TestTensor got = Op(OpId::lgamma, {}, {Floats(x)});
  for (size_t i = 0; i < x.size(); ++i) {
    int sign;
    const double expected = ::lgamma_r(static_cast<double>(x[i]), &sign);
    // Below zero the function has a zero between any two whole numbers; there
    // the error is that of terms of this size.
    const double slack = x[i] < 0 ? 1e-13 : 0;
    if (std::fabs(got.Get(i) - expected) <= slack) continue;
    ASSERT_LE(Ulps(static_cast<float>(got.Get(i)), expected), 4) << x[i];
  }
}

TEST(Atan2Test, WithinFourUlpsInEveryQuadrant) {
  std::vector<float> y, x;
  const float ends[] = {0.0f,  -0.0f, 1.0f,   -1.0f, kInf,
                        -kInf, kNan,  1e-40f, 3e38f};
  for (float a : ends) {
    for (float b : ends) y.push_back(a), x.push_back(b);
  }
  for (int i = 0; i < 100003; ++i) {
    y.push_back(std::sin(i * 1.7f) * std::exp(0.001f * (i % 20000) - 10));
    x.push_back(std::cos(i * 2.3f) * std::exp(0.001f * (i % 17000) - 8));
  }
  const TestTensor angle = Op(OpId::atan2, {}, {Floats(y), Floats(x)}, 2);
  const TestTensor length = Op(OpId::hypot, {}, {Floats(y), Floats(x)}, 2);
  for (size_t i = 0; i < x.size(); ++i) {
    const double a = y[i], b = x[i];
    ASSERT_LE(Ulps(static_cast<float>(angle.Get(i)), std::atan2(a, b)), 4)
        << a << ", " << b;
    ASSERT_EQ(std::signbit(angle.Get(i)), std::signbit(std::atan2(a, b)))
        << a << ", " << b;
    ASSERT_LE(Ulps(static_cast<float>(length.Get(i)), std::hypot(a, b)), 4)
        << a << ", " << b;
  }
}

}  // namespace
}  // namespace holdfast::cpu
