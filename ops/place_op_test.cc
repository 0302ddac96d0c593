// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "ops/place_op.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "ops/infer_testing.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"

namespace holdfast {
namespace {

using ::testing::HasSubstr;

struct Placed {
  const char* spec;
  int device;
};

// The first output's device, or the error.
std::string Outcome(OpId op, const std::vector<Placed>& inputs,
                    bool inplace = false) {
  std::vector<TensorSpec> specs;
  for (const Placed& input : inputs) {
    specs.push_back(ParseSpec(input.spec));
    specs.back().device = static_cast<int8_t>(input.device);
  }
  std::vector<const TensorSpec*> pointers;
  for (const TensorSpec& spec : specs) pointers.push_back(&spec);
  OutputSpecs out;
  const Attrs attrs(&GetOp(op));
  const absl::Status status = InferOp(attrs, pointers, inplace, &out);
  return status.ok() ? out[0].spec.ToString() : std::string(status.message());
}

TEST(PlaceOpTest, NamesOfDevicesAndWhereTheyLie) {
  EXPECT_EQ(DeviceText(0), "cpu");
  EXPECT_EQ(DeviceText(1), "cuda:0");
  EXPECT_EQ(DeviceText(3), "cuda:2");
  EXPECT_EQ(DevicePlace(0), 0);
  EXPECT_EQ(DevicePlace(1), 0);
  EXPECT_EQ(DevicePlace(2), 1);
}

TEST(PlaceOpTest, ResultsAreWhereTheInputsAre) {
  EXPECT_EQ(Outcome(OpId::exp, {{"f32[2]", 0}}), "f32[2]");
  EXPECT_EQ(Outcome(OpId::exp, {{"f32[2]", 1}}), "f32[2]@cuda:0");
  EXPECT_EQ(Outcome(OpId::add, {{"f32[2]", 2}, {"f32[2]", 2}}),
            "f32[2]@cuda:1");
  EXPECT_EQ(Outcome(OpId::detach, {{"f32[2]", 2}}), "f32[2]@cuda:1");  // a view
}

TEST(PlaceOpTest, TensorsOfTheCpuGoAlong) {
  EXPECT_EQ(Outcome(OpId::add, {{"f32[2]", 0}, {"f32[2]", 2}}),
            "f32[2]@cuda:1");
  EXPECT_EQ(Outcome(OpId::add, {{"f32[2]", 1}, {"f32[]", 0}}), "f32[2]@cuda:0");
  // What is written stays.
  EXPECT_EQ(Outcome(OpId::add, {{"f32[2]", 0}, {"f32[2]", 2}}, true), "f32[2]");
}

TEST(PlaceOpTest, TwoGpusDoNotMix) {
  EXPECT_EQ(Outcome(OpId::add, {{"f32[2]", 1}, {"f32[2]", 2}}),
            "[add] Expected all tensors to be on the same device, but found at "
            "least two devices, cuda:0 and cuda:1. Got input=f32[2]@cuda:0, "
            "other=f32[2]@cuda:1.");
  EXPECT_THAT(Outcome(OpId::add, {{"f32[2]", 2}, {"f32[2]", 1}}, true),
              HasSubstr("[add_] Expected all tensors"));
  EXPECT_EQ(Outcome(OpId::copy, {{"f32[2]", 1}, {"f32[2]", 2}}, true),
            "f32[2]@cuda:0");
}

TEST(PlaceOpTest, OpsWithoutInputsAreToldWhere) {
  Attrs attrs(&GetOp(OpId::empty));
  attrs.Set("size", Dims{3});
  attrs.set_device(2);
  OutputSpecs out;
  ASSERT_TRUE(InferOp(attrs, {}, false, &out).ok());
  EXPECT_EQ(out[0].spec.ToString(), "f32[3]@cuda:1");
}

TEST(PlaceOpTest, MovingTakesADeviceThatMayBe) {
  TensorSpec spec = ParseSpec("f32[3,2]{1,3}");
  spec.device = 1;
  const TensorSpec* input = &spec;
  const auto move = [&](int64_t device) {
    Attrs attrs(&GetOp(OpId::to_device));
    attrs.Set("device", device);
    OutputSpecs out;
    const absl::Status status = InferOp(attrs, {&input, 1}, false, &out);
    return status.ok() ? OutputText(out[0]) : std::string(status.message());
  };
  EXPECT_EQ(move(2), "f32[3,2]@cuda:1");
  EXPECT_EQ(move(0), "f32[3,2]");
  for (const int64_t wrong : {int64_t{-1}, int64_t{64}, int64_t{1} << 40}) {
    EXPECT_THAT(move(wrong), HasSubstr("must be in [0, 64)"));
  }
}

}  // namespace
}  // namespace holdfast
