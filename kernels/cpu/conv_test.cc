// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// conv2d and its gradients against plain loops, in float32 (oneDNN) and
// float64 (unfolded).
#include "absl/strings/str_cat.h"
#include "kernels/cpu/op_testing.h"
#include "ops/op_id.h"

namespace holdfast::cpu {
namespace {

struct Case {
  int64_t n, c, h, w, o, kh, kw;
  Dims stride = {1, 1}, padding = {0, 0}, dilation = {1, 1};
  int64_t groups = 1;

  Dims Input() const { return {n, c, h, w}; }
  Dims Weight() const { return {o, c / groups, kh, kw}; }
  Dims Output() const {
    return {n, o,
            (h + 2 * padding[0] - dilation[0] * (kh - 1) - 1) / stride[0] + 1,
            (w + 2 * padding[1] - dilation[1] * (kw - 1) - 1) / stride[1] + 1};
  }
  AttrList Attrs() const {
    return {{"stride", AttrValue(stride)},
            {"padding", AttrValue(padding)},
            {"dilation", AttrValue(dilation)},
            {"groups", AttrValue(groups)}};
  }
};

const Case kCases[] = {
    {2, 1, 9, 8, 16, 3, 3},
    {2, 3, 9, 8, 5, 3, 2, {1, 1}, {1, 1}},
    {1, 16, 7, 7, 32, 5, 5, {1, 1}, {2, 2}},
    {3, 4, 10, 11, 6, 3, 3, {2, 3}, {1, 2}},
    {2, 4, 12, 11, 6, 3, 3, {1, 1}, {2, 1}, {2, 3}},
    {2, 6, 8, 8, 9, 3, 3, {2, 1}, {1, 1}, {1, 1}, 3},
    {2, 8, 6, 6, 8, 3, 3, {1, 1}, {1, 1}, {1, 1}, 8},  // depthwise
    {2, 8, 6, 6, 24, 1, 1},
    {1, 32, 14, 14, 64, 3, 3, {1, 1}, {1, 1}},
    {1, 2, 5, 5, 3, 5, 5},
    {2, 2, 4, 4, 3, 2, 2, {3, 3}},          // elements that no window reaches
    {1, 1, 3, 3, 2, 3, 3, {1, 1}, {5, 5}},  // windows all in the padding
    {1, 3, 20, 20, 4, 1, 7, {1, 2}, {0, 3}},
};

// Calls fn(input, weight, output element) for every product.
template <typename F>
void ForEachProduct(const Case& c, F fn) {
  const Dims in = c.Input(), we = c.Weight(), out = c.Output();
  const int64_t group_out = c.o / c.groups;
  for (int64_t i = 0; i < NumElements(out); ++i) {
    const Dims at = Unravel(i, out);
    for (int64_t j = 0; j < NumElements(Dims{we[1], we[2], we[3]}); ++j) {
      const Dims tap = Unravel(j, {we[1], we[2], we[3]});
      const int64_t y =
          at[2] * c.stride[0] - c.padding[0] + tap[1] * c.dilation[0];
      const int64_t x =
          at[3] * c.stride[1] - c.padding[1] + tap[2] * c.dilation[1];
      if (y < 0 || y >= c.h || x < 0 || x >= c.w) continue;
      const int64_t channel = at[1] / group_out * we[1] + tap[0];
      fn(Ravel({at[0], channel, y, x}, in),
         Ravel({at[1], tap[0], tap[1], tap[2]}, we), i);
    }
  }
}

void CheckCase(const Case& c, DType dtype, int threads) {
  const double tolerance = dtype == DType::kFloat32 ? 1e-4 : 1e-12;
  const std::string what =
      absl::StrCat(ShapeString(c.Input()), " * ", ShapeString(c.Weight()),
                   " groups ", c.groups, " ", DTypeName(dtype));
  const TestTensor x = Random(dtype, c.Input(), 1);
  const TestTensor w = Random(dtype, c.Weight(), 2);
  const TestTensor bias = Random(dtype, {c.o}, 3);
  const TestTensor grad = Random(dtype, c.Output(), 4);
  std::vector<double> out(grad.numel()), dx(x.numel()), dw(w.numel());
  ForEachProduct(c, [&](int64_t i, int64_t k, int64_t o) {
    out[o] += x.Get(i) * w.Get(k);
    dx[i] += grad.Get(o) * w.Get(k);
    dw[k] += grad.Get(o) * x.Get(i);
  });
  ExpectNear(Op(OpId::conv2d, c.Attrs(), {x, w, TestTensor()}, threads), out,
             tolerance, what);
  const int64_t plane = c.Output()[2] * c.Output()[3];
  for (size_t i = 0; i < out.size(); ++i) out[i] += bias.Get(i / plane % c.o);
  ExpectNear(Op(OpId::conv2d, c.Attrs(), {x, w, bias}, threads), out, tolerance,
             what);
  AttrList attrs = c.Attrs();
  attrs.push_back({"input_size", AttrValue(c.Input())});
  ExpectNear(Op(OpId::conv2d_backward_input, attrs, {grad, w}, threads), dx,
             tolerance, "input gradient of " + what);
  attrs.back() = {"weight_size", AttrValue(c.Weight())};
  ExpectNear(Op(OpId::conv2d_backward_weight, attrs, {grad, x}, threads), dw,
             tolerance * 4, "weight gradient of " + what);
}

TEST(ConvTest, ForwardAndGradients) {
  for (const Case& c : kCases) {
    for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
      for (int threads : {1, 2}) CheckCase(c, dtype, threads);
    }
  }
}

TEST(ConvTest, RepeatedCallsUseTheirOwnData) {
  // The second call of a shape runs a kept primitive on other tensors.
  const Case c = {2, 16, 6, 6, 16, 3, 3};
  for (int seed : {1, 2, 3}) {
    const TestTensor x = Random(DType::kFloat32, c.Input(), seed);
    const TestTensor w = Random(DType::kFloat32, c.Weight(), seed + 10);
    const TestTensor x64(DType::kFloat64, c.Input(), x.Values());
    const TestTensor w64(DType::kFloat64, c.Weight(), w.Values());
    ExpectNear(Op(OpId::conv2d, c.Attrs(), {x, w, TestTensor()}),
               Op(OpId::conv2d, c.Attrs(), {x64, w64, TestTensor()}).Values(),
               1e-5);
  }
}

TEST(ConvTest, ManyShapesInTurn) {
  // More shapes than are kept, twice.
  for (int round = 0; round < 2; ++round) {
    for (int64_t h = 1; h <= 600; ++h) {
      const TestTensor x(DType::kFloat32, {1, 1, h, 1},
                         std::vector<double>(h, 2));
      const TestTensor w(DType::kFloat32, {1, 1, 1, 1}, {3});
      const TestTensor y = Op(OpId::conv2d, {}, {x, w, TestTensor()});
      ASSERT_EQ(y.Get(0), 6);
      ASSERT_EQ(y.Get(h - 1), 6);
    }
  }
}

TEST(ConvTest, ViewsAndMissingBatch) {
  const Case c = {2, 3, 8, 7, 4, 3, 3};
  for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
    const TestTensor x =
        Random(dtype, {3, 2, 7, 8}).Transpose(0, 1).Transpose(2, 3);
    const TestTensor w = Random(dtype, {3, 4, 3, 3}).Transpose(0, 1);
    const TestTensor bias = Random(dtype, {1}).Expand({4});
    const TestTensor want = Op(OpId::conv2d, {},
                               {TestTensor(dtype, c.Input(), x.Values()),
                                TestTensor(dtype, c.Weight(), w.Values()),
                                TestTensor(dtype, {4}, bias.Values())});
    ExpectNear(Op(OpId::conv2d, {}, {x, w, bias}), want.Values(), 1e-6);
    // One image without a batch dimension.
    const TestTensor image(dtype, {3, 8, 7}, x.Slice(0, 0, 1).Values());
    const TestTensor one = Op(OpId::conv2d, {}, {image, w, bias});
    EXPECT_EQ(one.spec().shape, (Dims{4, 6, 5}));
    ExpectNear(one, want.Slice(0, 0, 1).Values(), 1e-6);
    // A gradient that is one number everywhere.
    const TestTensor grad = TestTensor(dtype, {1, 1, 1, 1}, {0.5});
    AttrList attrs = c.Attrs();
    attrs.push_back({"weight_size", AttrValue(c.Weight())});
    const TestTensor full(dtype, c.Output(),
                          std::vector<double>(NumElements(c.Output()), 0.5));
    ExpectNear(
        Op(OpId::conv2d_backward_weight, attrs, {grad.Expand(c.Output()), x}),
        Op(OpId::conv2d_backward_weight, attrs, {full, x}).Values(), 1e-6);
  }
}

TEST(ConvTest, EmptyBatch) {
  const Case c = {0, 3, 8, 7, 4, 3, 3};
  for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
    const TestTensor x(dtype, c.Input()), grad(dtype, c.Output());
    const TestTensor w = Random(dtype, c.Weight());
    EXPECT_EQ(Op(OpId::conv2d, {}, {x, w, TestTensor()}).numel(), 0);
    AttrList attrs = c.Attrs();
    attrs.push_back({"input_size", AttrValue(c.Input())});
    EXPECT_EQ(Op(OpId::conv2d_backward_input, attrs, {grad, w}).numel(), 0);
    attrs.back() = {"weight_size", AttrValue(c.Weight())};
    ExpectEqual(Op(OpId::conv2d_backward_weight, attrs, {grad, x}),
                std::vector<double>(w.numel(), 0));
  }
}

TEST(ConvTest, WindowsFarOutsideOneDnnsRange) {
  // The unfolded path: strides and dilations of any size.
  Case c = {1,
            2,
            5,
            5,
            3,
            2,
            2,
            {100'000, 100'000},
            {70'000, 70'000},
            {70'000, 70'000}};
  CheckCase(c, DType::kFloat32, 1);
  CheckCase(c, DType::kFloat64, 1);
}

TEST(ConvTest, ScratchShortageIsAnError) {
  const Case c = {2, 16, 6, 6, 16, 3, 3};
  for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
    TestContext context;
    context.limit = 64;
    const absl::Status s = RunKernel(
        Cpu_conv2d, context, MakeAttrs(OpId::conv2d, c.Attrs()),
        {Random(dtype, c.Input()), Random(dtype, c.Weight()), TestTensor()},
        {TestTensor(dtype, c.Output())});
    EXPECT_EQ(s.code(), absl::StatusCode::kResourceExhausted) << s;
  }
}

}  // namespace
}  // namespace holdfast::cpu
