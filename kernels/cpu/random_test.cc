// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
// Philox's known answers, the map from position to number, and statistics
// with bounds of five standard deviations.
#include "kernels/cpu/random.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/test_context.h"
#include "kernels/philox.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"

namespace holdfast::cpu {
namespace {

// Random123's kat_vectors for philox4x32 with 10 rounds.
TEST(PhiloxTest, KnownAnswers) {
  const struct {
    uint32_t counter[4], key[2], want[4];
  } cases[] = {
      {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
       {0xffffffff, 0xffffffff},
       {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
       {0xa4093822, 0x299f31d0},
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  for (const auto& c : cases) {
    const PhiloxWords x = Philox4x32(c.counter, c.key[0], c.key[1]);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(x.w[i], c.want[i]);
  }
  EXPECT_EQ(Philox(0, 0).w[0], 0x6627e8d5u);
}

// The vectorised generator against the plain one, across a carry.
TEST(PhiloxTest, BlocksOfWords) {
  for (uint64_t position : {uint64_t{0}, uint64_t{12345}, uint64_t{0xfffffff8},
                            uint64_t{0xfffffffffffffffa}}) {
    for (int64_t count : {1, 64, 65, 2048}) {
      const uint64_t seed = 0x123456789abcdef1ull;
      RandomWords words;
      GenerateWords(seed, position, count, &words);
      for (int64_t i = 0; i < count; ++i) {
        ASSERT_EQ(words.w[i], Philox(seed, position + i / 4).w[i % 4])
            << position << " " << i;
      }
    }
  }
}

TestTensor Draw(KernelFn kernel, const Attrs& attrs,
                const std::vector<TestTensor>& inputs, uint64_t seed,
                uint64_t offset, int threads = 1, bool inplace = false,
                int output = 0) {
  TestContext context(threads);
  context.philox = {seed, offset};
  const auto out = RunOp(kernel, context, attrs, inputs, inplace);
  EXPECT_TRUE(out.ok()) << out.status();
  return out.ok() ? (*out)[output] : TestTensor(DType::kFloat32, {0});
}

Attrs Sized(OpId id, const Dims& size, DType dtype) {
  Attrs attrs(&GetOp(id));
  attrs.Set("size", AttrValue(size));
  attrs.Set("dtype", AttrValue(dtype));
  return attrs;
}

Attrs RandInt(int64_t low, int64_t high, const Dims& size, DType dtype) {
  Attrs attrs = Sized(OpId::randint, size, dtype);
  attrs.Set("low", AttrValue(low));
  attrs.Set("high", AttrValue(high));
  return attrs;
}

TEST(RandTest, DocumentedMap) {
  const TestTensor f =
      Draw(&Cpu_rand, Sized(OpId::rand, {101}, DType::kFloat32), {}, 7, 1000);
  const TestTensor d =
      Draw(&Cpu_rand, Sized(OpId::rand, {101}, DType::kFloat64), {}, 7, 1000);
  const TestTensor n =
      Draw(&Cpu_randn, Sized(OpId::randn, {101}, DType::kFloat32), {}, 7, 1000);
  const TestTensor m =
      Draw(&Cpu_randn, Sized(OpId::randn, {101}, DType::kFloat64), {}, 7, 1000);
  const TestTensor k =
      Draw(&Cpu_randint, RandInt(-3, 1000, {101}, DType::kInt64), {}, 7, 1000);
  for (int64_t i = 0; i < 101; ++i) {
    const PhiloxWords four = Philox(7, 1000 + i / 4);
    const PhiloxWords two = Philox(7, 1000 + i / 2);
    const int w = 2 * (i % 2);
    const uint64_t joined = JoinWords(two.w[w], two.w[w + 1]);
    EXPECT_EQ(f.Get(i), (four.w[i % 4] >> 8) * 0x1p-24);
    EXPECT_EQ(d.Get(i), (joined >> 11) * 0x1p-53);
    EXPECT_EQ(k.Get(i),
              -3 + static_cast<double>(
                       static_cast<unsigned __int128>(joined) * 1003 >> 64));
    const int pair = i % 4 / 2 * 2;
    const double radius = std::sqrt(
        -2 * std::log((static_cast<double>(four.w[pair]) + 1) * 0x1p-32));
    const double angle = 2 * M_PI * (four.w[pair + 1] >> 8) * 0x1p-24;
    EXPECT_NEAR(n.Get(i),
                radius * (i % 2 == 0 ? std::cos(angle) : std::sin(angle)),
                1e-5 * (1 + radius));
    const double radius64 = std::sqrt(
        -2 * std::log(((JoinWords(two.w[0], two.w[1]) >> 11) + 1) * 0x1p-53));
    const double angle64 =
        2 * M_PI * (JoinWords(two.w[2], two.w[3]) >> 11) * 0x1p-53;
    EXPECT_NEAR(m.Get(i),
                radius64 * (i % 2 == 0 ? std::cos(angle64) : std::sin(angle64)),
                1e-13 * (1 + radius64));
  }
}

// Neither the number of threads nor the length changes an element.
TEST(RandTest, ThreadsAndLength) {
  const std::pair<OpId, KernelFn> ops[] = {{OpId::rand, &Cpu_rand},
                                           {OpId::randn, &Cpu_randn}};
  for (const auto& [id, kernel] : ops) {
    for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
      const Attrs attrs = Sized(id, {100003}, dtype);
      const TestTensor a = Draw(kernel, attrs, {}, 5, 99, 1);
      const TestTensor b = Draw(kernel, attrs, {}, 5, 99, 2);
      const TestTensor c = Draw(kernel, Sized(id, {1501}, dtype), {}, 5, 99, 1);
      EXPECT_EQ(0,
                std::memcmp(a.view().data, b.view().data, a.spec().nbytes()));
      EXPECT_EQ(0,
                std::memcmp(a.view().data, c.view().data, c.spec().nbytes()));
      const TestTensor other = Draw(kernel, attrs, {}, 6, 99, 1);
      EXPECT_NE(
          0, std::memcmp(a.view().data, other.view().data, a.spec().nbytes()));
    }
  }
}

// Mean, and mean of the product of neighbours, within five deviations.
void ExpectMoments(const TestTensor& t, double mean, double deviation) {
  const double n = static_cast<double>(t.numel());
  double sum = 0, square = 0, neighbours = 0;
  for (int64_t i = 0; i < t.numel(); ++i) {
    const double x = (t.Get(i) - mean) / deviation;
    sum += x;
    square += x * x;
    if (i > 0) neighbours += x * (t.Get(i - 1) - mean) / deviation;
  }
  EXPECT_LT(std::fabs(sum / n), 5 / std::sqrt(n));
  EXPECT_LT(std::fabs(square / n - 1), 5 * std::sqrt(2 / n));
  EXPECT_LT(std::fabs(neighbours / n), 5 / std::sqrt(n));
}

TEST(RandTest, Moments) {
  for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
    ExpectMoments(Draw(&Cpu_rand, Sized(OpId::rand, {200000}, dtype), {}, 1, 0),
                  0.5, std::sqrt(1.0 / 12));
    const TestTensor normal =
        Draw(&Cpu_randn, Sized(OpId::randn, {200000}, dtype), {}, 1, 0);
    ExpectMoments(normal, 0, 1);
    int64_t beyond_two = 0;
    for (double x : normal.Values()) beyond_two += std::fabs(x) > 2;
    EXPECT_NEAR(beyond_two, 200000 * 0.0455, 5 * std::sqrt(200000 * 0.0455));
    ExpectMoments(
        Draw(&Cpu_randint, RandInt(0, 1000, {200000}, dtype), {}, 1, 0), 499.5,
        std::sqrt((1e6 - 1) / 12));
  }
}

TEST(RandTest, UniformAndNormalInPlaceOnViews) {
  const TestTensor whole(DType::kFloat32, {200, 600});
  for (int64_t i = 0; i < whole.numel(); ++i) whole.Set(i, 100);
  const TestTensor part = whole.Transpose(0, 1).Slice(0, 0, 600, 2);
  Attrs uniform(&GetOp(OpId::uniform));
  uniform.Set("low", AttrValue(-2.0));
  uniform.Set("high", AttrValue(4.0));
  Draw(&Cpu_uniform, uniform, {part}, 3, 0, 2, true);
  for (double x : part.Values()) ASSERT_TRUE(x >= -2 && x < 4) << x;
  ExpectMoments(part, 1, 6 / std::sqrt(12.0));
  for (int64_t i = 1; i < whole.numel(); i += 2) ASSERT_EQ(whole.Get(i), 100);
  // By index, not by place in memory: as a contiguous tensor gets them.
  const TestTensor dense(DType::kFloat32, {300, 200});
  Draw(&Cpu_uniform, uniform, {dense}, 3, 0, 1, true);
  EXPECT_EQ(dense.Values(), part.Values());

  Attrs normal(&GetOp(OpId::normal));
  normal.Set("mean", AttrValue(10.0));
  normal.Set("std", AttrValue(0.5));
  Draw(&Cpu_normal, normal, {part}, 3, 0, 2, true);
  ExpectMoments(part, 10, 0.5);
}

TEST(RandIntTest, WholeRangeAndTypes) {
  const TestTensor dice =
      Draw(&Cpu_randint, RandInt(1, 7, {60000}, DType::kInt32), {}, 9, 0, 2);
  std::vector<int> counts(8);
  for (double x : dice.Values()) ++counts[static_cast<int>(x)];
  EXPECT_EQ(counts[0] + counts[7], 0);
  for (int i = 1; i <= 6; ++i) EXPECT_NEAR(counts[i], 10000, 5 * 92);
  const int64_t min = std::numeric_limits<int64_t>::min();
  const int64_t max = std::numeric_limits<int64_t>::max();
  const TestTensor all =
      Draw(&Cpu_randint, RandInt(min, max, {1000}, DType::kInt64), {}, 9, 0);
  int negative = 0;
  for (double x : all.Values()) negative += x < 0;
  EXPECT_NEAR(negative, 500, 80);
}

TEST(RandPermTest, IsAPermutationAndShuffles) {
  for (int64_t n : {0, 1, 2, 7, 1000, 100003}) {
    Attrs attrs(&GetOp(OpId::randperm));
    attrs.Set("n", AttrValue(n));
    const TestTensor a = Draw(&Cpu_randperm, attrs, {}, 4, 77, 1);
    std::vector<double> sorted = a.Values();
    EXPECT_EQ(sorted, Draw(&Cpu_randperm, attrs, {}, 4, 77, 2).Values());
    if (n >= 1000) {
      EXPECT_NE(sorted, Draw(&Cpu_randperm, attrs, {}, 5, 77).Values());
      int64_t fixed = 0;
      for (int64_t i = 0; i < n; ++i) fixed += sorted[i] == i;
      EXPECT_LT(fixed, 10);  // one on average
    }
    std::sort(sorted.begin(), sorted.end());
    std::vector<double> want(n);
    std::iota(want.begin(), want.end(), 0);
    EXPECT_EQ(sorted, want);
  }
  // Every order of three is equally likely.
  Attrs attrs(&GetOp(OpId::randperm));
  attrs.Set("n", AttrValue(int64_t{3}));
  std::vector<int> counts(300);
  for (int i = 0; i < 6000; ++i) {
    const auto p = Draw(&Cpu_randperm, attrs, {}, 1, 10 * i).Values();
    ++counts[static_cast<int>(p[0] * 100 + p[1] * 10 + p[2])];
  }
  for (int order : {12, 21, 102, 120, 201, 210}) {
    EXPECT_NEAR(counts[order], 1000, 5 * 29) << order;
  }
}

TEST(RandPermTest, NoScratchIsAnError) {
  Attrs attrs(&GetOp(OpId::randperm));
  attrs.Set("n", AttrValue(int64_t{1000}));
  TestContext context;
  context.limit = 100;
  EXPECT_TRUE(absl::IsResourceExhausted(
      RunOp(&Cpu_randperm, context, attrs, {}).status()));
}

TEST(BernoulliTest, ProbabilitiesAndErrors) {
  const TestTensor p(DType::kFloat32, {3, 40000});
  for (int64_t i = 0; i < p.numel(); ++i) {
    p.Set(i, i / 40000 == 0 ? 0 : i / 40000 == 1 ? 1 : 0.3);
  }
  const Attrs attrs(&GetOp(OpId::bernoulli));
  const TestTensor x = Draw(&Cpu_bernoulli, attrs, {p}, 2, 0, 2);
  int64_t ones = 0;
  for (int64_t i = 0; i < 40000; ++i) {
    ASSERT_EQ(x.Get(i), 0);
    ASSERT_EQ(x.Get(40000 + i), 1);
    ones += x.Get(80000 + i) == 1;
  }
  EXPECT_NEAR(ones, 12000, 5 * 92);
  for (double bad : {-0.1, 1.1, std::nan("")}) {
    p.Set(5, bad);
    TestContext context;
    EXPECT_TRUE(absl::IsInvalidArgument(
        RunOp(&Cpu_bernoulli, context, attrs, {p}).status()));
  }
}

TEST(DropoutTest, KeepsScalesAndMarks) {
  for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
    for (double p : {0.0, 0.25, 0.9, 1.0}) {
      const TestTensor x = TestTensor(dtype, {250, 400}).Transpose(0, 1);
      for (int64_t i = 0; i < x.numel(); ++i) x.Set(i, i + 1);
      Attrs attrs(&GetOp(OpId::dropout));
      attrs.Set("p", AttrValue(p));
      TestContext one(1), two(2);
      one.philox = two.philox = {11, 4};
      const auto a = RunOp(&Cpu_dropout, one, attrs, {x});
      const auto b = RunOp(&Cpu_dropout, two, attrs, {x});
      ASSERT_TRUE(a.ok() && b.ok());
      EXPECT_EQ((*a)[0].Values(), (*b)[0].Values());
      int64_t kept = 0;
      for (int64_t i = 0; i < x.numel(); ++i) {
        const bool keep = (*a)[1].Get(i) != 0;
        kept += keep;
        const double want = keep ? x.Get(i) / (1 - p) : 0;
        ASSERT_NEAR((*a)[0].Get(i), want, 1e-6 * want) << i;
        ASSERT_EQ((*b)[1].Get(i), keep);
      }
      EXPECT_NEAR(kept, (1 - p) * 1e5, 5 * std::sqrt(1e5 * p * (1 - p)));
    }
  }
  // Dropped elements are zero even where they are infinite.
  const TestTensor infinite(DType::kFloat32, {1}, {INFINITY});
  Attrs attrs(&GetOp(OpId::dropout));
  attrs.Set("p", AttrValue(1.0));
  EXPECT_EQ(Draw(&Cpu_dropout, attrs, {infinite}, 1, 0).Get(0), 0);
}

}  // namespace
}  // namespace holdfast::cpu
