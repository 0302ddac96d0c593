// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "ops/tensor_spec.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "ops/infer_testing.h"

namespace holdfast {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();

// Places of all elements in row-major order, the definition of a view.
std::vector<int64_t> Places(const TensorSpec& spec) {
  std::vector<int64_t> places;
  Dims index(spec.rank(), 0);
  for (int64_t n = spec.numel(); n > 0; --n) {
    int64_t place = spec.offset;
    for (int i = 0; i < spec.rank(); ++i) place += index[i] * spec.strides[i];
    places.push_back(place);
    for (int i = spec.rank() - 1; i >= 0 && ++index[i] == spec.shape[i]; --i) {
      index[i] = 0;
    }
  }
  return places;
}

// True when some strides give `shape` the places in the same order: stride i
// follows from the place of the first element whose index i is 1.
bool ViewableByForce(const TensorSpec& spec, const Dims& shape) {
  const std::vector<int64_t> places = Places(spec);
  TensorSpec view;
  view.shape = shape;
  view.offset = spec.offset;
  view.strides = ContiguousStrides(shape);
  for (int i = 0; i < view.rank(); ++i) {
    if (shape[i] > 1) view.strides[i] = places[view.strides[i]] - places[0];
  }
  return Places(view) == places;
}

// All shapes of `numel` elements with up to `rank` dimensions.
void Shapes(int64_t numel, int rank, Dims prefix, std::vector<Dims>* out) {
  if (numel == 1) out->push_back(prefix);
  if (rank == 0) return;
  for (int64_t size = 1; size <= numel; ++size) {
    if (numel % size != 0) continue;
    Dims longer = prefix;
    longer.push_back(size);
    Shapes(numel / size, rank - 1, longer, out);
  }
}

TEST(TensorSpecTest, ContiguousIgnoresSizeOneStridesAndEmptyTensors) {
  EXPECT_TRUE(ParseSpec("f32[2,3]").contiguous());
  EXPECT_TRUE(ParseSpec("f32[]").contiguous());
  EXPECT_TRUE(ParseSpec("f32[1,3]{77,1}").contiguous());
  EXPECT_TRUE(ParseSpec("f32[3,1]{1,77}").contiguous());
  EXPECT_TRUE(ParseSpec("f32[2,0]{9,9}").contiguous());
  EXPECT_TRUE(ParseSpec("f32[0,2]{9,9}").contiguous());
  EXPECT_FALSE(ParseSpec("f32[3,2]{1,3}").contiguous());
  EXPECT_FALSE(ParseSpec("f32[2,3]{6,2}").contiguous());
  EXPECT_FALSE(ParseSpec("f32[2,3]{0,1}").contiguous());
}

TEST(TensorSpecTest, ContiguousStridesCountEmptyDimensionsAsOne) {
  EXPECT_EQ(ContiguousStrides({2, 3, 4}), (Dims{12, 4, 1}));
  EXPECT_EQ(ContiguousStrides({2, 0, 4}), (Dims{4, 4, 1}));
  EXPECT_EQ(ContiguousStrides({}), Dims{});
}

TEST(TensorSpecTest, Text) {
  EXPECT_EQ(ParseSpec("f32[2,3]").ToString(), "f32[2,3]");
  EXPECT_EQ(ParseSpec("bool[]").ToString(), "bool[]");
}

TEST(CheckShapeTest, AcceptsTheLargestAndTheEmpty) {
  EXPECT_TRUE(CheckShape(DType::kUInt8, {kMaxTensorBytes}).ok());
  EXPECT_TRUE(CheckShape(DType::kFloat32, {kMaxTensorBytes / 4}).ok());
  EXPECT_TRUE(CheckShape(DType::kFloat32, {}).ok());
  EXPECT_TRUE(CheckShape(DType::kFloat32, {0, 5}).ok());
  EXPECT_TRUE(CheckShape(DType::kFloat32, Dims(kMaxRank, 1)).ok());
}

TEST(CheckShapeTest, RefusesHostileSizes) {
  EXPECT_FALSE(CheckShape(DType::kUInt8, {kMaxTensorBytes + 1}).ok());
  EXPECT_FALSE(CheckShape(DType::kFloat64, {kMaxTensorBytes / 4}).ok());
  EXPECT_FALSE(CheckShape(DType::kFloat32, {-1}).ok());
  EXPECT_FALSE(CheckShape(DType::kFloat32, {kMin}).ok());
  EXPECT_FALSE(CheckShape(DType::kFloat32, {kMax, kMax}).ok());
  EXPECT_FALSE(CheckShape(DType::kFloat32, {int64_t{1} << 32, 1 << 30}).ok());
  // Strides of an empty tensor are computed all the same.
  EXPECT_FALSE(CheckShape(DType::kFloat32, {0, kMax, kMax}).ok());
  EXPECT_FALSE(CheckShape(DType::kFloat32, Dims(kMaxRank + 1, 1)).ok());
}

TEST(CheckShapeTest, AViewMayHaveMoreThanAnyMemory) {
  EXPECT_TRUE(CheckViewShape(DType::kUInt8, {kMaxViewBytes}).ok());
  EXPECT_TRUE(CheckViewShape(DType::kFloat32, {kMaxViewBytes / 4, 1}).ok());
  EXPECT_FALSE(CheckViewShape(DType::kUInt8, {kMaxViewBytes + 1}).ok());
  EXPECT_FALSE(CheckViewShape(DType::kFloat64, {kMaxViewBytes / 4}).ok());
  EXPECT_FALSE(CheckViewShape(DType::kFloat32, {kMax, kMax}).ok());
  EXPECT_FALSE(CheckViewShape(DType::kFloat32, {-1}).ok());
  EXPECT_FALSE(CheckViewShape(DType::kFloat32, Dims(kMaxRank + 1, 1)).ok());
  // Strides of an empty one may be any product of its sizes.
  EXPECT_FALSE(CheckViewShape(DType::kUInt8, {0, kMaxViewBytes}).ok());
  EXPECT_TRUE(CheckViewShape(DType::kUInt8, {0, kMaxTensorBytes}).ok());
}

TEST(CheckFitsTest, CountsTheLastElement) {
  EXPECT_TRUE(CheckFits(ParseSpec("f32[2,3]"), 24).ok());
  EXPECT_FALSE(CheckFits(ParseSpec("f32[2,3]"), 23).ok());
  EXPECT_TRUE(CheckFits(ParseSpec("f32[2,3]@1"), 28).ok());
  EXPECT_FALSE(CheckFits(ParseSpec("f32[2,3]@1"), 27).ok());
  EXPECT_TRUE(CheckFits(ParseSpec("f32[1000,3]{0,1}"), 12).ok());
  EXPECT_TRUE(CheckFits(ParseSpec("f32[0]@100"), 4).ok());
  TensorSpec spec = ParseSpec("f32[1]");
  spec.shape[0] = kMaxViewBytes / 4;
  spec.strides[0] = 0;
  EXPECT_TRUE(CheckFits(spec, 4).ok());
  EXPECT_FALSE(CheckFits(spec, 3).ok());
}

TEST(CheckFitsTest, RefusesHostileFields) {
  TensorSpec spec = ParseSpec("f32[2]");
  spec.offset = -1;
  EXPECT_FALSE(CheckFits(spec, 100).ok());
  spec.offset = kMax;
  EXPECT_FALSE(CheckFits(spec, kMax).ok());
  spec = ParseSpec("f32[2]");
  for (int64_t stride : {int64_t{-1}, kMin, kMax, kMax / 2}) {
    spec.strides[0] = stride;
    EXPECT_FALSE(CheckFits(spec, kMax).ok()) << stride;
  }
  spec = ParseSpec("f32[2,2]");
  spec.strides = {kMax / 2, kMax / 2 + 2};
  EXPECT_FALSE(CheckFits(spec, kMax).ok());
  spec.strides = {1};
  EXPECT_FALSE(CheckFits(spec, kMax).ok());
}

TEST(BroadcastShapesTest, FollowsNumPy) {
  EXPECT_EQ(*BroadcastShapes({2, 3}, {3}), (Dims{2, 3}));
  EXPECT_EQ(*BroadcastShapes({3}, {2, 3}), (Dims{2, 3}));
  EXPECT_EQ(*BroadcastShapes({2, 1}, {1, 3}), (Dims{2, 3}));
  EXPECT_EQ(*BroadcastShapes({}, {}), Dims{});
  EXPECT_EQ(*BroadcastShapes({}, {4}), Dims{4});
  EXPECT_EQ(*BroadcastShapes({0}, {1}), Dims{0});
  EXPECT_EQ(*BroadcastShapes({1}, {0}), Dims{0});
  EXPECT_FALSE(BroadcastShapes({0}, {2}).ok());
  EXPECT_EQ(BroadcastShapes({2, 3}, {4, 3}).status().message(),
            "The size of tensor a (2) must match the size of tensor b (4) at "
            "non-singleton dimension 0");
}

// Every shape over every layout of 24 elements: contiguous, permuted, sliced,
// expanded.
TEST(ViewStridesTest, AgreesWithBruteForce) {
  std::vector<TensorSpec> layouts;
  for (const char* text :
       {"f32[2,3,4]", "f32[4,3,2]{1,4,12}", "f32[2,4,3]{12,1,4}",
        "f32[3,2,4]{4,12,1}", "f32[2,3,4]{24,8,2}", "f32[2,3,4]{24,4,1}",
        "f32[2,3,4]{0,4,1}", "f32[2,3,4]{4,0,1}", "f32[2,3,4]{3,1,0}",
        "f32[1,24]{5,1}", "f32[24,1]{2,7}", "f32[2,1,12]{12,99,1}",
        "f32[4,1,6]{1,3,4}", "f32[24]{3}@5", "f32[2,2,6]{12,6,1}@3",
        "f32[2,2,2,3]{1,2,4,8}", "f32[2,2,2,3]{3,6,12,1}"}) {
    layouts.push_back(ParseSpec(text));
  }
  std::vector<Dims> shapes;
  Shapes(24, 5, {}, &shapes);
  ASSERT_GT(shapes.size(), 200u);
  int viewable = 0, refused = 0;
  for (const TensorSpec& layout : layouts) {
    for (const Dims& shape : shapes) {
      TensorSpec view = layout;
      view.shape = shape;
      const bool can = ViewStrides(layout, shape, &view.strides);
      ASSERT_EQ(can, ViewableByForce(layout, shape))
          << OutputText({layout, -1}) << " as " << ShapeString(shape);
      (can ? viewable : refused) += 1;
      if (can) {
        ASSERT_EQ(Places(view), Places(layout))
            << OutputText({layout, -1}) << " as " << ShapeString(shape);
      }
    }
  }
  EXPECT_GT(viewable, 500);
  EXPECT_GT(refused, 500);
}

TEST(ViewStridesTest, EmptyAndScalar) {
  Dims strides;
  EXPECT_TRUE(ViewStrides(ParseSpec("f32[0,3]{1,7}"), {5, 0}, &strides));
  EXPECT_TRUE(ViewStrides(ParseSpec("f32[]"), {1, 1}, &strides));
  EXPECT_TRUE(ViewStrides(ParseSpec("f32[1,1]{5,9}"), {}, &strides));
  EXPECT_EQ(strides, Dims{});
}

TEST(NormalizeDimTest, AcceptsNegative) {
  EXPECT_EQ(*NormalizeDim(0, 3), 0);
  EXPECT_EQ(*NormalizeDim(-1, 3), 2);
  EXPECT_EQ(*NormalizeDim(-3, 3), 0);
  EXPECT_EQ(*NormalizeDim(0, 0), 0);
  EXPECT_EQ(*NormalizeDim(-1, 0), 0);
}

TEST(NormalizeDimTest, RefusesTheRestAsIndexErrors) {
  for (int64_t dim : {int64_t{3}, int64_t{-4}, kMax, kMin}) {
    EXPECT_EQ(NormalizeDim(dim, 3).status().code(),
              absl::StatusCode::kOutOfRange)
        << dim;
  }
  EXPECT_EQ(NormalizeDim(2, 2).status().message(),
            "Dimension out of range (expected to be in range of [-2, 1], but "
            "got 2)");
}

}  // namespace
}  // namespace holdfast
