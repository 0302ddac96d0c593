// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Fourier transforms against the sums that define them.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <random>
#include <vector>

#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/op_testing.h"
#include "kernels/kernel_table.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"

namespace holdfast::cpu {
namespace {

using Numbers = std::vector<std::complex<double>>;

constexpr double kPi = 3.14159265358979323846;

// Dimension `d` of a contiguous tensor of `shape`.
Numbers Transform(const Numbers& x, const Dims& shape, int d, double sign) {
  int64_t inner = 1;
  for (size_t i = d + 1; i < shape.size(); ++i) inner *= shape[i];
  const int64_t n = shape[d];
  Numbers y(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const int64_t k = static_cast<int64_t>(i) / inner % n;
    const int64_t first = static_cast<int64_t>(i) - k * inner;
    for (int64_t j = 0; j < n; ++j) {
      y[i] +=
          x[first + j * inner] *
          std::polar(1.0, sign * 2 * kPi * static_cast<double>(j * k % n) / n);
    }
  }
  return y;
}

// Runs an op on contiguous data of any type.
template <typename Out, typename In>
std::vector<Out> RunTransform(OpId id, const AttrList& list, DType dtype,
                              const Dims& shape, std::vector<In> data,
                              int threads = 1) {
  const Attrs attrs = MakeAttrs(id, list);
  const TensorSpec spec = ContiguousSpec(dtype, shape);
  const TensorSpec* specs[] = {&spec};
  OutputSpecs inferred;
  absl::Status s = InferOp(attrs, specs, /*inplace=*/false, &inferred);
  EXPECT_TRUE(s.ok()) << s;
  if (!s.ok()) return {};
  std::vector<Out> out(inferred[0].spec.numel());
  TestContext context(threads);
  const TensorView in_view = {data.data(), &spec};
  const TensorView out_view = {out.data(), &inferred[0].spec};
  s = CpuKernels().kernels[static_cast<int>(id)](
      context, attrs, absl::MakeConstSpan(&in_view, 1),
      absl::MakeConstSpan(&out_view, 1));
  EXPECT_TRUE(s.ok()) << s;
  return out;
}

Numbers RandomNumbers(int64_t n) {
  std::mt19937 engine(3);
  std::uniform_real_distribution<double> draw(-1, 1);
  Numbers x(n);
  for (auto& v : x) v = {draw(engine), draw(engine)};
  return x;
}

void ExpectClose(const Numbers& got, const Numbers& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_LT(std::abs(got[i] - want[i]), 1e-10) << "element " << i;
  }
}

const Dims kShapes[] = {{1}, {2}, {7}, {3, 8}, {5, 3, 4}, {300, 30}, {30, 300}};

TEST(FftTest, ComplexTransformsOfEveryDimension) {
  for (const Dims& shape : kShapes) {
    const Numbers x = RandomNumbers(NumElements(shape));
    for (int d = 0; d < static_cast<int>(shape.size()); ++d) {
      for (const bool forward : {true, false}) {
        const AttrList attrs = {
            {"dim", Dims{d}}, {"scale", 1.0}, {"forward", forward}};
        const Numbers got = RunTransform<std::complex<double>>(
            OpId::fft_c2c, attrs, DType::kComplex128, shape, x, 2);
        ExpectClose(got, Transform(x, shape, d, forward ? -1 : 1));
      }
    }
  }
}

TEST(FftTest, RealTransformsThereAndBack) {
  for (const Dims& shape : kShapes) {
    const int64_t count = NumElements(shape);
    const Numbers numbers = RandomNumbers(count);
    std::vector<double> x(count);
    Numbers full(count);
    for (int64_t i = 0; i < count; ++i) full[i] = x[i] = numbers[i].real();
    Dims dims;
    for (size_t d = 0; d < shape.size(); ++d) {
      full = Transform(full, shape, static_cast<int>(d), -1);
      dims.push_back(static_cast<int64_t>(d));
    }
    const int64_t n = shape.back(), half = n / 2 + 1;
    Numbers want;
    for (int64_t i = 0; i < count; ++i) {
      if (i % n < half) want.push_back(full[i]);
    }
    const Numbers got = RunTransform<std::complex<double>>(
        OpId::fft_r2c, {{"dim", dims}, {"scale", 1.0}}, DType::kFloat64, shape,
        x, 2);
    ExpectClose(got, want);
    Dims halved = shape;
    halved.back() = half;
    const std::vector<double> back = RunTransform<double>(
        OpId::fft_c2r,
        {{"dim", dims}, {"scale", 1.0 / count}, {"last_size", n}},
        DType::kComplex128, halved, got, 2);
    for (int64_t i = 0; i < count; ++i) ASSERT_NEAR(back[i], x[i], 1e-12);
  }
}

TEST(FftTest, ThreadsDoNotChangeBits) {
  const Dims shape = {70, 130, 90};
  const Numbers x = RandomNumbers(NumElements(shape));
  const AttrList attrs = {
      {"dim", Dims{0, 1, 2}}, {"scale", 0.5}, {"forward", true}};
  const auto run = [&](int threads) {
    return RunTransform<std::complex<double>>(
        OpId::fft_c2c, attrs, DType::kComplex128, shape, x, threads);
  };
  const Numbers one = run(1);
  for (int threads : {2, 3, 8}) EXPECT_TRUE(run(threads) == one) << threads;
}

}  // namespace
}  // namespace holdfast::cpu
