// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// floor_divide, remainder and fmod, bit for bit against the scalar functions.
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "kernels/cpu/op_testing.h"
#include "kernels/elementwise.h"
#include "kernels/elementwise_special.h"
#include "ops/op_id.h"

namespace holdfast::cpu {
namespace {

// Operands of every magnitude, pairs whose quotient is whole or nearly so, and
// the ends of the type.
template <typename T>
std::pair<std::vector<T>, std::vector<T>> Operands() {
  std::mt19937_64 random(1);
  std::vector<T> a, b;
  const auto add = [&](T x, T y) {
    a.push_back(x);
    b.push_back(std::is_integral_v<T> && y == T(0) ? T(1) : y);
  };
  using Limits = std::numeric_limits<T>;
  std::vector<T> ends = {Limits::min(), Limits::max(), T(0), T(1), T(7)};
  if constexpr (std::is_signed_v<T>) {
    ends.insert(ends.end(), {Limits::lowest(), T(-1), T(-7)});
  }
  if constexpr (std::is_floating_point_v<T>) {
    ends.insert(ends.end(), {T(-0.0), Limits::infinity(), -Limits::infinity(),
                             Limits::quiet_NaN(), Limits::denorm_min()});
  }
  for (T x : ends) {
    for (T y : ends) add(x, y);
  }
  for (int i = 0; i < 200000; ++i) {
    if constexpr (std::is_integral_v<T>) {
      const int bits = 8 * sizeof(T);
      add(static_cast<T>(static_cast<int64_t>(random()) >>
                         (64 - bits + random() % bits)),
          static_cast<T>(static_cast<int64_t>(random()) >>
                         (64 - bits + random() % bits)));
    } else {
      const auto draw = [&](int range) {
        const T size =
            std::ldexp(T(1) + T(random() % 1000003) / T(1000003),
                       static_cast<int>(random() % range) - range / 2);
        return random() % 2 ? size : -size;
      };
      const T y = draw(i % 2 ? 16 : 200);
      const T x = i % 4 < 2 ? draw(i % 2 ? 40 : 200)
                            : y * T(static_cast<int64_t>(random() % 100000));
      add(i % 3 ? x : std::nextafter(x, T(0)), y);
    }
  }
  return {a, b};
}

template <typename Functor, typename T>
void ExpectScalarResults(OpId id) {
  const auto [a, b] = Operands<T>();
  const int64_t n = static_cast<int64_t>(a.size());
  TestTensor x(kDTypeOf<T>, {n}), y(kDTypeOf<T>, {n});
  std::copy(a.begin(), a.end(), x.data<T>());
  std::copy(b.begin(), b.end(), y.data<T>());
  for (int threads : {1, 2}) {
    const TestTensor got = cpu::Op(id, {}, {x, y}, threads);
    ASSERT_EQ(got.numel(), n);
    for (int64_t i = 0; i < n; ++i) {
      const T expected = Functor::template Apply<T>(a[i], b[i]);
      const T value = got.data<T>()[i];
      if (value != value && expected != expected) continue;
      ASSERT_EQ(std::memcmp(&value, &expected, sizeof(T)), 0)
          << a[i] << " and " << b[i] << " give " << value << ", not "
          << expected;
    }
  }
}

// Runs of dividends that share a divisor, which is divided by otherwise.
template <typename Functor>
void ExpectScalarResultsByOneDivisor(OpId id) {
  const auto [dividends, others] = Operands<int64_t>();
  std::vector<int64_t> divisors = {
      2, 3, 7, -2, -3, -7, 10, 641, 1 << 20, -1, 255, 1, INT64_MAX, INT64_MIN};
  for (int i = 0; i < 300; ++i) {
    divisors.push_back(others[100 + i]);
    divisors.push_back(int64_t{1} << i % 63);
  }
  const int64_t n = 2000;
  TestTensor x(DType::kInt64, {n}), y(DType::kInt64, {});
  for (size_t k = 0; k < divisors.size(); ++k) {
    *y.data<int64_t>() = divisors[k];
    std::copy_n(dividends.begin() + (k % 90) * n, n, x.data<int64_t>());
    const TestTensor got = cpu::Op(id, {}, {x, y});
    for (int64_t i = 0; i < n; ++i) {
      const int64_t value = x.data<int64_t>()[i];
      ASSERT_EQ(got.data<int64_t>()[i],
                Functor::template Apply<int64_t>(value, divisors[k]))
          << value << " by " << divisors[k];
    }
  }
}

template <typename Functor>
void ExpectScalarResultsOfAllTypes(OpId id) {
  ExpectScalarResultsByOneDivisor<Functor>(id);
  ExpectScalarResults<Functor, uint8_t>(id);
  ExpectScalarResults<Functor, int32_t>(id);
  ExpectScalarResults<Functor, int64_t>(id);
  ExpectScalarResults<Functor, float>(id);
  ExpectScalarResults<Functor, double>(id);
}

TEST(DivisionTest, FloorDivide) {
  ExpectScalarResultsOfAllTypes<elementwise::op::floor_divide>(
      OpId::floor_divide);
}
TEST(DivisionTest, Remainder) {
  ExpectScalarResultsOfAllTypes<elementwise::op::remainder>(OpId::remainder);
}
TEST(DivisionTest, Fmod) {
  ExpectScalarResultsOfAllTypes<elementwise::special::fmod>(OpId::fmod);
}

}  // namespace
}  // namespace holdfast::cpu
