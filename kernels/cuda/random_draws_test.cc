// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Random kernels that learn from memory where their numbers begin draw those
// that they draw when they are told.
#include "kernels/cuda/random_draws.h"

#include <cstdint>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/host_context.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"

namespace holdfast::cuda {
namespace {

constexpr int64_t kNumbers = 37;

// The bytes that `op` makes, of float32 where it has a choice.
std::vector<char> Draw(OpId op, CudaContext* context) {
  const TensorSpec spec = ContiguousSpec(
      op == OpId::randint || op == OpId::randperm ? DType::kInt64
                                                  : DType::kFloat32,
      {kNumbers});
  const TensorSpec mask = ContiguousSpec(DType::kBool, {kNumbers});
  std::vector<float> ones(kNumbers, 1.0f);
  std::vector<char> bytes(spec.nbytes() + kNumbers, 0);
  Attrs attrs(&GetOp(op));
  if (op == OpId::randint) {
    attrs.Set("low", int64_t{-3});
    attrs.Set("high", int64_t{1} << 40);
  }
  if (op == OpId::uniform) attrs.Set("low", -1.0);
  if (op == OpId::normal) attrs.Set("std", 2.0);
  if (op == OpId::dropout) attrs.Set("p", 0.4);
  const TensorView out = {bytes.data(), &spec};
  const TensorView rest = {bytes.data() + spec.nbytes(), &mask};
  const bool inplace = op == OpId::uniform || op == OpId::normal;
  const TensorView in = inplace ? out : TensorView{ones.data(), &spec};
  const std::vector<TensorView> inputs = {in}, outputs = {out, rest};
  const absl::Status status = RunCudaOp(*context, attrs, inputs, outputs);
  EXPECT_TRUE(status.ok()) << status;
  return bytes;
}

TEST(RandomDrawsTest, AReplaysNumbersAreThoseOfALaunch) {
  const PhiloxState first = {12345, uint64_t{7} << 33};
  for (OpId op : {OpId::rand, OpId::randn, OpId::uniform, OpId::normal,
                  OpId::randint, OpId::randperm, OpId::dropout}) {
    HostContext told, learns, elsewhere;
    told.philox = {first.seed, first.offset + 99};
    elsewhere.philox = {first.seed, first.offset};
    learns.philox = {0, 99};
    learns.first_draw = &first;
    const std::vector<char> expected = Draw(op, &told);
    EXPECT_EQ(Draw(op, &learns), expected) << GetOp(op).name;
    EXPECT_NE(Draw(op, &elsewhere), expected) << GetOp(op).name;
  }
}

}  // namespace
}  // namespace holdfast::cuda
