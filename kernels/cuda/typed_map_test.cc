// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Typed maps and reductions in packs give each element and each row what a
// plain loop gives: whatever the size, where memory begins and how tensors are
// spread over it.
#include "kernels/cuda/typed_map.h"

#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cuda/reduce.h"

namespace holdfast::cuda {
namespace {

class PlainContext final : public KernelContext {
 public:
  void* Scratch(size_t bytes) override {
    scratch_.emplace_back(bytes);
    return scratch_.back().data();
  }

 private:
  std::vector<std::vector<char>> scratch_;
};

// `n` of something from a 64-byte border, or `from` elements beyond it, on.
template <typename S>
class Elements {
 public:
  Elements(int64_t n, int64_t from) : memory_(n + from + 64 / sizeof(S)) {
    const auto at = reinterpret_cast<uintptr_t>(memory_.data());
    data_ = memory_.data() + ((at + 63) / 64 * 64 - at) / sizeof(S) + from;
    for (int64_t i = 0; i < n; ++i) {
      data_[i] = Convert<S>(static_cast<float>(i % 61) - 30.0f);
    }
  }
  S* data() { return data_; }
  TensorView View(const TensorSpec& spec) { return {data_, &spec}; }

 private:
  std::vector<S> memory_;
  S* data_;
};

struct Difference {
  template <typename T>
  T operator()(T a, T b) const {
    return a - b;
  }
};

constexpr int64_t kSizes[] = {1, 3, 7, 8, 15, 16, 17, 1023, 1024, 1025, 4097};

template <typename S>
void ExpectDifferences() {
  for (int64_t n : kSizes) {
    for (int64_t from : {0, 1, 4}) {
      PlainContext context;
      Elements<S> a(n, from), b(n, 0), out(n + 1, from);
      b.data()[n / 2] = Convert<S>(7.0f);
      out.data()[n] = Convert<S>(99.0f);
      const TensorSpec spec = ContiguousSpec(kStoredDType<S>, {n});
      const TensorView to = out.View(spec), x = a.View(spec), y = b.View(spec);
      ASSERT_EQ((HasDenseMap<S, S, S>(to, x, y)), from * sizeof(S) % 16 == 0);
      ASSERT_TRUE((HasTypedMap<S, S, S>(to, x, y)));
      ASSERT_TRUE(
          (RunTypedMap<float, S, S, S>(context, Difference(), to, x, y)).ok());
      for (int64_t i = 0; i < n; ++i) {
        const float expected =
            Convert<float>(a.data()[i]) - Convert<float>(b.data()[i]);
        ASSERT_EQ(Convert<float>(out.data()[i]), expected) << n << " " << i;
      }
      ASSERT_EQ(Convert<float>(out.data()[n]), 99.0f) << n;
    }
  }
}

TEST(TypedMapTest, TakesEverySizeAndBeginning) {
  ExpectDifferences<float>();
  ExpectDifferences<Float16>();
  ExpectDifferences<BFloat16>();
}

TEST(TypedMapTest, BroadcastsAndWalksStrides) {
  PlainContext context;
  Elements<float> a(15, 0), b(5, 0), out(15, 0);
  const TensorSpec to = ContiguousSpec(DType::kFloat32, {3, 5});
  TensorSpec transposed = to, row = to;
  transposed.strides = {1, 3};
  row.strides = {0, 1};
  const TensorView x = a.View(transposed), y = b.View(row), z = out.View(to);
  ASSERT_FALSE((HasDenseMap<float, float, float>(z, x, y)));
  ASSERT_TRUE(
      (RunTypedMap<float, float, float, float>(context, Difference(), z, x, y))
          .ok());
  for (int64_t i = 0; i < 15; ++i) {
    EXPECT_EQ(out.data()[i], a.data()[i / 5 + i % 5 * 3] - b.data()[i % 5]);
  }
}

TEST(TypedMapTest, RefusesOtherTypes) {
  Elements<float> a(4, 0), out(4, 0);
  const TensorSpec spec = ContiguousSpec(DType::kFloat32, {4});
  const TensorView x = a.View(spec), z = out.View(spec);
  EXPECT_FALSE((HasTypedMap<BFloat16, float>(z, x)));
  EXPECT_FALSE((HasTypedMap<float, BFloat16>(z, x)));
}

// Clients write bools: what is not 0 is true.
TEST(TypedMapTest, TakesABoolOfAnyByte) {
  constexpr int kWidth = kPackWidth<bool>;
  alignas(kPackBytes) unsigned char bytes[kWidth + 1], out[kWidth + 1] = {};
  for (int i = 0; i <= kWidth; ++i) {
    bytes[i] = static_cast<unsigned char>(i % 3 == 0 ? 0 : 7 * i);
  }
  PlainContext context;
  const TensorSpec spec = ContiguousSpec(DType::kBool, {kWidth + 1});
  const TensorView x = {bytes, &spec}, to = {out, &spec};
  ASSERT_TRUE((RunTypedMap<bool, bool, bool>(
                   context, [](bool b) { return !b; }, to, x))
                  .ok());
  for (int i = 0; i <= kWidth; ++i) EXPECT_EQ(out[i], i % 3 == 0) << i;
}

// Rows of n elements, `gap` elements between them.
template <typename S>
std::vector<double> SumsOf(S* data, int64_t rows, int64_t n, int64_t gap) {
  PlainContext context;
  TensorSpec spec = ContiguousSpec(kStoredDType<S>, {rows, n});
  spec.strides[0] = n + gap;
  DimSplit split;
  EXPECT_TRUE(SplitDims(spec, {-1}, &split).ok());
  std::vector<double> sums(rows, -1);
  EXPECT_TRUE((ReduceTensor<SumOf<S>, S>(
                   context, split, data,
                   [&](int64_t row, double sum) { sums[row] = sum; }))
                  .ok());
  return sums;
}

template <typename S>
void ExpectSums() {
  for (int64_t n : kSizes) {
    for (int64_t gap : {0, 1, 8}) {
      Elements<S> all(3 * (n + gap), 0);
      const std::vector<double> sums = SumsOf(all.data(), 3, n, gap);
      for (int64_t row = 0; row < 3; ++row) {
        double expected = 0;
        for (int64_t i = 0; i < n; ++i) {
          expected += Convert<float>(all.data()[row * (n + gap) + i]);
        }
        EXPECT_EQ(sums[row], expected) << n << " " << gap << " " << row;
      }
    }
  }
}

TEST(PackedReductionTest, TakesEverySizeAndBeginning) {
  ExpectSums<float>();
  ExpectSums<double>();
  ExpectSums<Float16>();
  ExpectSums<BFloat16>();
}

// One row in many segments, the last of which is short.
TEST(PackedReductionTest, SegmentsTakeEachElementOnce) {
  const int64_t n = (1 << 20) + 3;
  std::vector<float> ones(n, 1.0f);
  EXPECT_EQ(SumsOf(ones.data(), 1, n, 0)[0], static_cast<double>(n));
  EXPECT_GT(PlanPacks(1, n / 4).segments, 1);
}

// The ranks of a group take what one thread alone takes, each element once.
TEST(PackedReductionTest, RanksShareALine) {
  for (int64_t n : kSizes) {
    Elements<BFloat16> all(n, 0);
    using R = NonzeroCountOf<BFloat16>;
    for (int64_t i = 0; i < n; ++i) all.data()[i] = Convert<BFloat16>(1.0f);
    for (int size : {1, 32, 256}) {
      const PackedLine<R, BFloat16> line = {all.data(), n};
      int64_t taken = 0;
      for (int rank = 0; rank < size; ++rank) {
        const int64_t acc =
            line.TakeSteps(rank, size, n / kPackWidth<BFloat16>);
        taken += line.TakeRest(acc, rank, size);
      }
      EXPECT_EQ(taken, n) << size;
    }
  }
}

TEST(PackedReductionTest, MomentsOfFarNumbersAreTheirs) {
  const int64_t n = 4099;
  std::vector<float> x(n);
  double mean = 0, squares = 0;
  for (int64_t i = 0; i < n; ++i) {
    x[i] = 10000.0f + static_cast<float>(i % 7);
    mean += x[i];
  }
  mean /= static_cast<double>(n);
  for (float v : x) squares += (v - mean) * (v - mean);
  PlainContext context;
  DimSplit split;
  const TensorSpec spec = ContiguousSpec(DType::kFloat32, {n});
  ASSERT_TRUE(SplitDims(spec, {}, &split).ok());
  Moments moments = {};
  ASSERT_TRUE(
      (ReduceTensor<MomentsOf<float>, float>(
           context, split, x.data(), [&](int64_t, Moments m) { moments = m; }))
          .ok());
  EXPECT_EQ(moments.count, static_cast<double>(n));
  EXPECT_NEAR(moments.mean, mean, 1e-9);
  EXPECT_NEAR(moments.squares / squares, 1, 1e-12);
}

}  // namespace
}  // namespace holdfast::cuda
