// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Masks: any thread count, any strides, and masks that a client changes while
// the op runs.
#include "gtest/gtest.h"
#include "kernels/cpu/op_testing.h"
#include "ops/op_id.h"

namespace holdfast::cpu {
namespace {

TEST(MaskTest, ThreadsDoNotMatter) {
  for (const TestTensor& mask : Layouts(DType::kBool, 30, 50, 70)) {
    const TestTensor data = Random(DType::kFloat32, {30, 50, 70});
    for (OpId id : {OpId::nonzero, OpId::index_mask, OpId::mask_put}) {
      std::vector<TestTensor> inputs{data, mask};
      if (id == OpId::nonzero) inputs = {mask};
      if (id == OpId::mask_put) inputs.push_back(Random(DType::kFloat32, {}));
      AttrList attrs;
      if (id != OpId::nonzero) attrs = {{"dim", int64_t{0}}};
      ExpectSameBits(Op(id, attrs, inputs, 1), Op(id, attrs, inputs, 4));
    }
  }
}

TEST(MaskTest, ChoosesInOrder) {
  const TestTensor mask = Random(DType::kBool, {30, 50, 7});
  const TestTensor data = Random(DType::kFloat64, {30, 50, 7}, 2);
  std::vector<double> places, chosen;
  for (int64_t i = 0; i < mask.numel(); ++i) {
    if (mask.Get(i) == 0) continue;
    for (int64_t at : Unravel(i, mask.spec().shape)) {
      places.push_back(static_cast<double>(at));
    }
    chosen.push_back(data.Get(i));
  }
  ExpectEqual(Op(OpId::nonzero, {}, {mask}, 4), places);
  ExpectEqual(Op(OpId::index_mask, {{"dim", int64_t{0}}}, {data, mask}, 4),
              chosen);
}

// The sanitizers watch the outputs' ends.
TEST(MaskTest, AMaskMayChangeAfterItWasCounted) {
  for (double later : {0.0, 1.0}) {
    for (const Dims& shape : {Dims{50000}, Dims{500, 4}}) {
      const TestTensor mask = Random(DType::kBool, {shape[0]});
      const TestTensor data = Random(DType::kFloat32, shape);
      const Attrs attrs = MakeAttrs(OpId::index_mask, {{"dim", int64_t{0}}});
      TestContext context(4);
      const std::vector<TensorView> views{data.view(), mask.view()};
      int64_t count = 0;
      const int op = static_cast<int>(OpId::index_mask);
      ASSERT_TRUE(
          CpuKernels().sizes[op](context, attrs, views, {&count, 1}).ok());
      Dims chosen = shape;
      chosen[0] = count;
      const TestTensor out(DType::kFloat32, chosen);
      for (int64_t i = 0; i < mask.numel(); ++i) mask.Set(i, later);
      const TensorView target = out.view();
      ASSERT_TRUE(
          CpuKernels().kernels[op](context, attrs, views, {&target, 1}).ok());
      for (int64_t i = 0; i < out.numel(); ++i) {
        ASSERT_LE(std::fabs(out.Get(i)), 2.0);
      }
    }
  }
}

TEST(MaskTest, PutRefusesTheWrongNumberOfValues) {
  const TestTensor mask(DType::kBool, {4}, {1, 0, 1, 1});
  const TestTensor data(DType::kFloat32, {4}, {1, 2, 3, 4});
  const TestTensor two(DType::kFloat32, {2}, {8, 9});
  const auto put = [&](bool partial) {
    return TryOp(OpId::mask_put, {{"dim", int64_t{0}}, {"partial", partial}},
                 {data, mask, two});
  };
  EXPECT_EQ(put(false).status().message(),
            "[index_put] shape mismatch: value tensor of shape [2] cannot be "
            "broadcast to indexing result of shape [3].");
  EXPECT_FALSE(put(true).ok());
}

TEST(IndexTensorsTest, ThreadsDoNotMatter) {
  const TestTensor rows = RandomIndex({3, 2000}, 30);
  const TestTensor columns = RandomIndex({2000}, 50);
  for (const TestTensor& data : Layouts(DType::kFloat32, 30, 50, 8)) {
    for (const Dims& dims : {Dims{0, 1}, Dims{0, 2}}) {
      TestTensor second = dims[1] == 1 ? columns : RandomIndex({2000}, 8);
      const AttrList attrs{{"dims", dims}};
      const TestTensor read = Op(OpId::index, attrs, {data, rows, second}, 1);
      ExpectSameBits(read, Op(OpId::index, attrs, {data, rows, second}, 4));
      const TestTensor values = Random(DType::kFloat32, read.spec().shape);
      for (bool add : {false, true}) {
        const AttrList put{{"dims", dims}, {"accumulate", add}};
        const std::vector<TestTensor> inputs{data, values, rows, second};
        ExpectSameBits(Op(OpId::index_put, put, inputs, 1),
                       Op(OpId::index_put, put, inputs, 4));
      }
    }
  }
}

}  // namespace
}  // namespace holdfast::cpu
