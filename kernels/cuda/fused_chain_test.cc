// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Which launches are a chain, and that a chain gives what its ops give one by
// one, bit by bit.
#include "kernels/cuda/fused_chain.h"

#include <cmath>
#include <cstring>
#include <deque>
#include <limits>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/elements.h"
#include "kernels/cuda/packs.h"
#include "kernels/number_operand.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"

namespace holdfast::cuda {
namespace {

class NoScratchContext final : public KernelContext {
 public:
  void* Scratch(size_t) override { return nullptr; }
};

// A program of elementwise ops over arrays that lie in one piece of memory.
class ChainTest : public testing::TestWithParam<DType> {
 protected:
  static constexpr int64_t kRoom = 64;  // elements of an array
  static constexpr int64_t kElements = kRoom * 32;

  ChainTest() : memory_(kElements * sizeof(float) + 64) {}

  // Elements of a full pack: what begins elsewhere is no part of a chain.
  static int64_t PackWidth() {
    return kPackBytes / static_cast<int64_t>(ItemSize(GetParam()));
  }

  // The k-th array, or a part of it.
  TensorView Array(int k, int64_t n, int64_t from = 0) {
    return View(ContiguousSpec(GetParam(), {n}),
                Memory() + (k * kRoom + from) * ItemSize(GetParam()));
  }
  TensorView Number(float value) {
    numbers_.push_back(value);
    TensorSpec spec = ContiguousSpec(DType::kFloat32, {});
    spec.offset = kNumberOffset;
    return View(spec, &numbers_.back());
  }
  TensorView View(TensorSpec spec, void* data) {
    specs_.push_back(std::move(spec));
    return {data, &specs_.back()};
  }
  void Op(OpId op, std::vector<TensorView> inputs, TensorView output) {
    attrs_.emplace_back(&GetOp(op));
    views_.push_back(std::move(inputs));
    const absl::Span<const TensorView> in = views_.back();
    views_.push_back({output});
    requests_.push_back({attrs_.back(), in, views_.back()});
  }
  void Fill() {
    const auto set = [&](int64_t i, float x) {
      StoreAs(GetParam(), Memory(), i, x);
    };
    for (int64_t i = 0; i < kElements; ++i) {
      set(i, 0.01f * static_cast<float>(i % 97) - 0.3f);
    }
    set(3, std::numeric_limits<float>::quiet_NaN());
    set(5, -std::numeric_limits<float>::infinity());
    set(6, -0.0f);
  }
  // What memory holds after the program. All NaNs are one: compilers choose
  // their sign.
  std::vector<uint32_t> Bits() {
    std::vector<uint32_t> bits(kElements);
    for (int64_t i = 0; i < kElements; ++i) {
      float x = LoadAs<float>(GetParam(), Memory(), i);
      if (std::isnan(x)) x = std::numeric_limits<float>::quiet_NaN();
      std::memcpy(&bits[i], &x, sizeof x);
    }
    return bits;
  }
  void ExpectTheSameAsOneByOne() {
    Fill();
    for (const LaunchRequest& r : requests_) {
      ASSERT_TRUE(RunCudaOp(context_, r.attrs, r.inputs, r.outputs).ok());
    }
    const std::vector<uint32_t> expected = Bits();
    Fill();
    ASSERT_TRUE(RunChain(context_, requests_).ok());
    EXPECT_EQ(Bits(), expected);
  }

  std::vector<LaunchRequest> requests_;

 private:
  // 64-byte aligned, as a device's.
  char* Memory() {
    const uintptr_t at = reinterpret_cast<uintptr_t>(memory_.data());
    return memory_.data() + ((at + 63) / 64 * 64 - at);
  }

  NoScratchContext context_;
  std::vector<char> memory_;
  std::deque<float> numbers_;
  std::deque<TensorSpec> specs_;
  std::deque<Attrs> attrs_;
  std::deque<std::vector<TensorView>> views_;
};

TEST_P(ChainTest, GivesWhatItsOpsGive) {
  for (int64_t n : {int64_t{1}, int64_t{4}, int64_t{7}, int64_t{61}}) {
    requests_.clear();
    Op(OpId::mul, {Array(0, n), Array(1, n)}, Array(2, n));
    Op(OpId::add, {Array(2, n), Number(0.5f)}, Array(3, n));
    Op(OpId::sigmoid, {Array(3, n)}, Array(4, n));
    Op(OpId::sub, {Number(1), Array(4, n)}, Array(5, n));
    Op(OpId::mul, {Array(5, n), Array(3, n)}, Array(6, n));
    Op(OpId::relu, {Array(6, n)}, Array(7, n));
    Op(OpId::relu_backward, {Array(0, n), Array(7, n)}, Array(8, n));
    Op(OpId::maximum, {Array(8, n), Array(0, n)}, Array(9, n));
    ASSERT_EQ(ChainLength(requests_), 8u);
    ExpectTheSameAsOneByOne();
  }
}

TEST_P(ChainTest, MemoryMayBeWrittenAgain) {
  Op(OpId::add, {Array(0, 30), Array(1, 30)}, Array(0, 30));  // in place
  Op(OpId::mul, {Array(0, 30), Array(0, 30)}, Array(2, 30));
  Op(OpId::neg, {Array(1, 30)}, Array(0, 30));  // freed, and handed out again
  Op(OpId::div, {Array(2, 30), Array(0, 30)}, Array(1, 30));
  ASSERT_EQ(ChainLength(requests_), 4u);
  ExpectTheSameAsOneByOne();
}

TEST_P(ChainTest, EveryOpOfAChainGivesWhatItGivesAlone) {
  for (OpId op :
       {OpId::neg, OpId::abs, OpId::relu, OpId::exp, OpId::expm1, OpId::log,
        OpId::log1p, OpId::sqrt, OpId::rsqrt, OpId::reciprocal, OpId::sin,
        OpId::cos, OpId::tanh, OpId::sigmoid, OpId::erf}) {
    requests_.clear();
    Op(op, {Array(0, 50)}, Array(1, 50));
    Op(op, {Array(1, 50)}, Array(2, 50));
    ASSERT_EQ(ChainLength(requests_), 2u) << GetOp(op).name;
    ExpectTheSameAsOneByOne();
  }
  for (OpId op : {OpId::add, OpId::sub, OpId::mul, OpId::div, OpId::maximum,
                  OpId::minimum, OpId::relu_backward}) {
    requests_.clear();
    Op(op, {Array(0, 50), Array(1, 50)}, Array(2, 50));
    Op(op, {Array(2, 50), Array(0, 50)}, Array(3, 50));
    ASSERT_EQ(ChainLength(requests_), 2u) << GetOp(op).name;
    ExpectTheSameAsOneByOne();
  }
}

TEST_P(ChainTest, EndsAtOtherSizesTypesLayoutsAndOps) {
  const auto ends = [&](OpId op, std::vector<TensorView> in, TensorView out) {
    requests_.clear();
    Op(OpId::exp, {Array(0, 32)}, Array(1, 32));
    Op(op, std::move(in), out);
    return ChainLength(requests_) == 1;
  };
  EXPECT_TRUE(ends(OpId::exp, {Array(1, 31)}, Array(2, 31)));
  EXPECT_TRUE(ends(OpId::add, {Array(1, 32), Array(2, 1)}, Array(3, 32)));
  EXPECT_TRUE(ends(OpId::floor, {Array(1, 32)}, Array(2, 32)));
  TensorSpec strided = ContiguousSpec(GetParam(), {32});
  strided.strides[0] = 2;
  void* const third = Array(3, 32).data;
  EXPECT_TRUE(ends(OpId::exp, {View(strided, third)}, Array(1, 32)));
  EXPECT_TRUE(ends(OpId::exp,
                   {View(ContiguousSpec(DType::kInt32, {32}), third)},
                   Array(1, 32)));
  const DType other =
      GetParam() == DType::kFloat16 ? DType::kBFloat16 : DType::kFloat16;
  EXPECT_TRUE(ends(OpId::exp, {View(ContiguousSpec(other, {32}), third)},
                   Array(1, 32)));
  EXPECT_TRUE(ends(OpId::exp, {Array(1, 32)},
                   View(ContiguousSpec(other, {32}), third)));
  EXPECT_TRUE(ends(OpId::add, {Number(1), Number(2)}, Array(1, 32)));
  EXPECT_FALSE(ends(OpId::exp, {Array(3, 32)}, Array(1, 32)));
}

// An op's element i may be another's element of the pack before.
TEST_P(ChainTest, EndsWhereMemoryOverlapsByAPart) {
  Op(OpId::exp, {Array(0, 32)}, Array(1, 32));
  Op(OpId::exp, {Array(1, 32, PackWidth())},
     Array(3, 32));  // reads what was written
  EXPECT_EQ(ChainLength(requests_), 1u);
  requests_.clear();
  Op(OpId::exp, {Array(0, 32)}, Array(1, 32));
  Op(OpId::exp, {Array(2, 32)},
     Array(0, 32, PackWidth()));  // writes what was read
  EXPECT_EQ(ChainLength(requests_), 1u);
  requests_.clear();
  Op(OpId::exp, {Array(0, 32)}, Array(1, 32));
  Op(OpId::exp, {Array(2, 32)},
     Array(1, 32, PackWidth()));  // writes what was written
  EXPECT_EQ(ChainLength(requests_), 1u);
  requests_.clear();
  Op(OpId::exp, {Array(0, 32)}, Array(1, 32));
  Op(OpId::exp, {Array(0, 32, PackWidth())}, Array(2, 32));  // two readers
  EXPECT_EQ(ChainLength(requests_), 2u);
}

TEST_P(ChainTest, IsNoLongerThanAKernelTakes) {
  for (int i = 0; i < 40; ++i) Op(OpId::neg, {Array(0, 8)}, Array(0, 8));
  const size_t length = ChainLength(requests_);
  EXPECT_GE(length, 8u);
  EXPECT_LT(length, 40u);
  while (requests_.size() > length) requests_.pop_back();
  ExpectTheSameAsOneByOne();
}

INSTANTIATE_TEST_SUITE_P(Types, ChainTest,
                         testing::Values(DType::kFloat32, DType::kFloat16,
                                         DType::kBFloat16),
                         [](const auto& type) {
                           return std::string(DTypeName(type.param));
                         });

}  // namespace
}  // namespace holdfast::cuda
