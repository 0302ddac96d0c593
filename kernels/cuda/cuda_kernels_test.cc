// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Ops that load and store 16-bit floats themselves take no scratch memory for
// widened copies of their operands.
#include "kernels/cuda/cuda_kernels.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/cuda/host_context.h"
#include "ops/infer.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"

namespace holdfast::cuda {
namespace {

// Tells how much scratch memory was asked for.
class CountingContext final : public HostContext {
 public:
  void* Scratch(size_t bytes) override {
    taken_ += bytes;
    return HostContext::Scratch(bytes);
  }
  size_t taken() const { return taken_; }

 private:
  size_t taken_ = 0;
};

struct Call {
  OpId op;
  std::vector<std::pair<std::string, AttrValue>> attrs;
  std::vector<TensorSpec> inputs;
};

TensorSpec Half(Dims shape) {
  return ContiguousSpec(DType::kBFloat16, std::move(shape));
}
TensorSpec Whole(Dims shape) {
  return ContiguousSpec(DType::kInt64, std::move(shape));
}

// Scratch memory that a call on zeros takes.
size_t ScratchOfCall(const Call& call) {
  Attrs attrs(&GetOp(call.op));
  for (const auto& [name, value] : call.attrs) attrs.Set(name, value);
  std::vector<const TensorSpec*> specs;
  for (const TensorSpec& spec : call.inputs) specs.push_back(&spec);
  OutputSpecs inferred;
  const absl::Status s = InferOp(attrs, specs, /*inplace=*/false, &inferred);
  EXPECT_TRUE(s.ok()) << s;
  HostContext memory;
  CountingContext context;
  std::vector<TensorView> inputs, outputs;
  for (const TensorSpec& spec : call.inputs) {
    inputs.push_back({memory.Scratch(spec.nbytes()), &spec});
    std::memset(inputs.back().data, 0, spec.nbytes());  // some are indices
  }
  for (const OutputSpec& out : inferred) {
    outputs.push_back({memory.Scratch(out.spec.nbytes()), &out.spec});
  }
  const absl::Status ran = RunCudaOp(context, attrs, inputs, outputs);
  EXPECT_TRUE(ran.ok()) << ran;
  return context.taken();
}

TEST(Loads16Test, OperandsAreNotWidened) {
  const Dims image = {2, 4, 64, 64};
  const TensorSpec x = Half(image), four = Half({4}), scalar = Half({});
  const TensorSpec windows = Half({2, 4, 32, 32});
  const Dims two = {2, 2}, none = {0, 0};
  const std::vector<Call> calls = {
      {OpId::batch_norm, {{"eps", 1e-5}}, {x, four, four, four, four}},
      {OpId::batch_norm_backward,
       {{"eps", 1e-5}, {"training", true}},
       {x, x, four, four, four}},
      {OpId::group_norm,
       {{"groups", int64_t{2}}, {"normalized_dims", int64_t{0}}, {"eps", 1e-5}},
       {x, four, four}},
      {OpId::group_norm_backward,
       {{"groups", int64_t{2}},
        {"normalized_dims", int64_t{0}},
        {"center", true}},
       {x, x, four, Half({2, 2}), Half({2, 2})}},
      {OpId::max_pool2d, {{"kernel_size", two}}, {x}},
      {OpId::max_pool2d_gather, {}, {x, Whole({2, 4, 32, 32})}},
      {OpId::adaptive_max_pool2d, {{"output_size", two}}, {x}},
      {OpId::avg_pool2d, {{"kernel_size", two}}, {x}},
      {OpId::avg_pool2d_backward,
       {{"input_size", image},
        {"kernel_size", two},
        {"stride", two},
        {"padding", none},
        {"ceil_mode", false},
        {"count_include_pad", true}},
       {windows}},
      {OpId::dropout, {{"p", 0.5}}, {x}},
      {OpId::nll_loss, {}, {Half({1000, 20}), Whole({1000}), Half({20})}},
      {OpId::nll_loss_backward,
       {{"input_size", Dims{1000, 20}},
        {"reduction", std::string("mean")},
        {"ignore_index", int64_t{-100}}},
       {scalar, Whole({1000}), Half({20}), scalar}},
      {OpId::resample2d,
       {{"output_size", Dims{32, 32}}, {"mode", std::string("linear")}},
       {x}},
      {OpId::resample2d_backward,
       {{"input_size", Dims{64, 64}}, {"mode", std::string("linear")}},
       {windows}},
  };
  for (const Call& call : calls) {
    EXPECT_LT(ScratchOfCall(call), 16384u) << GetOp(call.op).name;
  }
}

TEST(Loads16Test, OptimizersTakeNoScratchMemory) {
  const TensorSpec x = Half({100, 100}), y = Half({7});
  const auto lists = [&](int count) {
    std::vector<TensorSpec> specs;
    for (int i = 0; i < count; ++i) specs.insert(specs.end(), {x, y});
    return specs;
  };
  const std::vector<Call> calls = {
      {OpId::sgd, {{"lr", 0.1}, {"momentum", 0.9}}, lists(3)},
      {OpId::adam, {{"lr", 0.1}, {"step", int64_t{1}}}, lists(4)},
      {OpId::optimizer_step,
       {{"algorithm", std::string("adadelta")}, {"step_size", 0.1}},
       lists(5)}};
  for (const Call& call : calls) {
    EXPECT_EQ(ScratchOfCall(call), 0u) << GetOp(call.op).name;
  }
}

// Sums at places that indices name are made in float, and grad is read as it
// is.
TEST(Loads16Test, MaxPoolingsGradientAddsUpInFloat) {
  const Dims image = {2, 4, 64, 64};
  const size_t elements = 2 * 4 * 64 * 64;
  const size_t taken =
      ScratchOfCall({OpId::max_pool2d_backward,
                     {{"input_size", image}},
                     {Half({2, 4, 32, 32}), Whole({2, 4, 32, 32})}});
  EXPECT_GE(taken, 4 * elements);
  EXPECT_LT(taken, 4 * elements + 1024);
}

}  // namespace
}  // namespace holdfast::cuda
