// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// What one call of a library computes is refused where it would take longer
// than the op may, and cut into pieces where it can be.
#include "kernels/op_time.h"

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/cpu/op_testing.h"

namespace holdfast::cpu {
namespace {

using testing::HasSubstr;

struct Call {
  std::string name;
  // Of a side, or a length, of that size.
  std::function<absl::Status(int64_t size)> run;
  int64_t small, large;
};

absl::Status Try(OpId id, const AttrList& list,
                 const std::vector<TestTensor>& inputs) {
  return TryOp(id, list, inputs).status();
}

TestTensor Square(int64_t n) { return Random(DType::kFloat32, {n, n}); }

const std::vector<Call>& Calls() {
  static const auto* const calls = new std::vector<Call>{
      {"eigh",
       [](int64_t n) {
         return Try(OpId::linalg_eigh, {{"upper", false}}, {Square(n)});
       },
       50, 500},
      {"eigvalsh",
       [](int64_t n) {
         return Try(OpId::linalg_eigvalsh, {{"upper", false}}, {Square(n)});
       },
       50, 700},
      {"svd",
       [](int64_t n) {
         return Try(OpId::linalg_svd, {{"full_matrices", true}}, {Square(n)});
       },
       50, 400},
      {"svdvals",
       [](int64_t n) { return Try(OpId::linalg_svdvals, {}, {Square(n)}); }, 50,
       500},
      {"eig",
       [](int64_t n) {
         return Try(OpId::linalg_eig, {{"vectors", true}}, {Square(n)});
       },
       50, 400},
      {"transform",
       [](int64_t n) {
         return Try(OpId::fft_r2c, {{"dim", Dims{0}}, {"scale", 1.0}},
                    {Random(DType::kFloat32, {n})});
       },
       1000, 2000000},
  };
  return *calls;
}

// What 20 ms are for: the small ones, and not the large ones.
TEST(OpTimeTest, WhatTakesTooLongIsRefused) {
  for (const Call& call : Calls()) {
    EXPECT_TRUE(call.run(call.large).ok()) << call.name;
    const OpTime time(0.02);
    EXPECT_TRUE(call.run(call.small).ok()) << call.name;
    const absl::Status refused = call.run(call.large);
    EXPECT_EQ(refused.code(), absl::StatusCode::kFailedPrecondition)
        << call.name << ": " << refused;
    EXPECT_THAT(std::string(refused.message()), HasSubstr("at most 0.02 s"));
    EXPECT_THAT(std::string(refused.message()), HasSubstr(call.name));
  }
}

TEST(OpTimeTest, ItEndsWithItsScope) {
  {
    const OpTime outer(1);
    { const OpTime inner(0.001); }
    EXPECT_EQ(OpTime::most(), 1);
  }
  EXPECT_TRUE(OpTime::CheckCall("[x] a call", 1e9).ok());
}

// Counts looks.
class Looks : public Attendant {
 public:
  Looks() { waits_.store(true); }
  void Attend() override { ++count; }
  std::atomic<int> count{0};
};

int LooksOf(OpId id, const AttrList& list,
            const std::vector<TestTensor>& inputs) {
  Looks looks;
  StopSignal stop;
  stop.Begin(1);
  stop.set_attendant(&looks);
  EXPECT_TRUE(TryOp(id, list, inputs, 1, &stop).ok());
  return looks.count;
}

TEST(OpTimeTest, ProductsAndConvolutionsHavePieces) {
  const std::vector<TestTensor> matrices = {
      Random(DType::kFloat32, {1024, 512}),
      Random(DType::kFloat32, {512, 512})};
  const AttrList window = {{"stride", Dims{1, 1}},
                           {"padding", Dims{1, 1}},
                           {"dilation", Dims{1, 1}},
                           {"groups", int64_t{1}}};
  const std::vector<TestTensor> images = {
      Random(DType::kFloat32, {16, 32, 32, 32}),
      Random(DType::kFloat32, {32, 32, 3, 3}), TestTensor()};
  const int whole = LooksOf(OpId::matmul, {}, matrices);
  const int of_images = LooksOf(OpId::conv2d, window, images);
  const OpTime time(0.01);
  EXPECT_GE(LooksOf(OpId::matmul, {}, matrices), whole + 10);
  EXPECT_GE(LooksOf(OpId::conv2d, window, images), of_images + 10);
}

}  // namespace
}  // namespace holdfast::cpu
