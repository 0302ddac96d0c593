// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Pooling and its gradients against plain loops.
#include <limits>

#include "absl/strings/str_cat.h"
#include "kernels/cpu/op_testing.h"
#include "ops/op_id.h"

namespace holdfast::cpu {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

struct Case {
  Dims input;  // [N,C,H,W] or [C,H,W]
  Dims kernel, stride, padding = {0, 0}, dilation = {1, 1};
  bool ceil_mode = false;

  int64_t H() const { return input[input.size() - 2]; }
  int64_t W() const { return input.back(); }
  int64_t Planes() const { return NumElements(input) / (H() * W()); }
  AttrList Attrs(bool dilated) const {
    AttrList attrs = {{"kernel_size", AttrValue(kernel)},
                      {"stride", AttrValue(stride)},
                      {"padding", AttrValue(padding)},
                      {"ceil_mode", AttrValue(ceil_mode)}};
    if (dilated) attrs.push_back({"dilation", AttrValue(dilation)});
    return attrs;
  }
};

const Case kCases[] = {
    {{2, 3, 28, 28}, {2, 2}, {2, 2}},
    {{1, 2, 4, 4}, {2, 2}, {2, 2}},
    {{2, 2, 7, 9}, {2, 2}, {2, 2}},
    {{2, 2, 7, 9}, {2, 2}, {2, 2}, {0, 0}, {1, 1}, true},
    {{3, 7, 35}, {3, 3}, {2, 2}, {1, 1}},
    {{1, 3, 30, 31}, {3, 3}, {1, 1}, {1, 1}},
    {{1, 3, 30, 31}, {3, 2}, {3, 3}, {1, 1}},
    {{2, 1, 20, 40}, {3, 3}, {1, 2}, {1, 1}, {2, 3}},
    {{2, 1, 20, 40}, {2, 4}, {2, 1}, {1, 2}, {1, 1}, true},
    {{1, 1, 5, 70}, {5, 67}, {1, 1}, {2, 33}},
    {{1, 1, 10, 10}, {10, 10}, {1, 1}},
};

// Calls fn(plane, window, input element) for every element of every window.
template <typename F>
void ForEachElement(const Case& c, const Dims& out, F fn) {
  const int64_t oh = out[out.size() - 2], ow = out.back();
  for (int64_t p = 0; p < c.Planes(); ++p) {
    for (int64_t i = 0; i < oh * ow; ++i) {
      for (int64_t k = 0; k < c.kernel[0] * c.kernel[1]; ++k) {
        const int64_t y = i / ow * c.stride[0] - c.padding[0] +
                          k / c.kernel[1] * c.dilation[0];
        const int64_t x = i % ow * c.stride[1] - c.padding[1] +
                          k % c.kernel[1] * c.dilation[1];
        if (y < 0 || y >= c.H() || x < 0 || x >= c.W()) continue;
        fn(p, p * oh * ow + i, y * c.W() + x);
      }
    }
  }
}

TEST(PoolTest, MaxPoolAndItsGradients) {
  for (const Case& c : kCases) {
    for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
      for (int threads : {1, 2}) {
        const TestTensor x = Random(dtype, c.input);
        const auto out = TryOp(OpId::max_pool2d, c.Attrs(true), {x}, threads);
        ASSERT_TRUE(out.ok()) << out.status();
        const TestTensor &y = (*out)[0], &at = (*out)[1];
        const int64_t plane = c.H() * c.W();
        std::vector<double> max(y.numel(),
                                -std::numeric_limits<double>::infinity());
        std::vector<double> where(y.numel());
        ForEachElement(c, y.spec().shape,
                       [&](int64_t p, int64_t window, int64_t element) {
                         const double v = x.Get(p * plane + element);
                         if (v <= max[window]) return;
                         max[window] = v;
                         where[window] = static_cast<double>(element);
                       });
        const std::string what = absl::StrCat(x.spec().ToString(), " kernel ",
                                              ShapeString(c.kernel));
        ExpectEqual(y, max, what);
        ExpectEqual(at, where, what);

        const TestTensor grad = Random(dtype, y.spec().shape, 2);
        std::vector<double> dx(x.numel()), gathered(y.numel());
        const int64_t windows = y.numel() / c.Planes();
        for (int64_t i = 0; i < y.numel(); ++i) {
          const int64_t element =
              i / windows * plane + static_cast<int64_t>(where[i]);
          dx[element] += grad.Get(i);
          gathered[i] = x.Get(element);
        }
        ExpectNear(
            Op(OpId::max_pool2d_backward, {{"input_size", AttrValue(c.input)}},
               {grad, at}, threads),
            dx, 1e-5, what);
        ExpectEqual(Op(OpId::max_pool2d_gather, {}, {x, at}, threads), gathered,
                    what);
      }
    }
  }
}

TEST(PoolTest, AvgPoolAndItsGradient) {
  for (Case c : kCases) {
    if (c.dilation != Dims{1, 1}) continue;
    for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
      for (bool include_pad : {true, false}) {
        const TestTensor x = Random(dtype, c.input);
        AttrList attrs = c.Attrs(false);
        attrs.push_back({"count_include_pad", AttrValue(include_pad)});
        const TestTensor y = Op(OpId::avg_pool2d, attrs, {x}, 2);
        const int64_t plane = c.H() * c.W();
        const Dims& out = y.spec().shape;
        const int64_t ow = out.back(), oh = out[out.size() - 2];
        std::vector<double> sum(y.numel()), count(y.numel());
        ForEachElement(c, out, [&](int64_t p, int64_t window, int64_t element) {
          sum[window] += x.Get(p * plane + element);
          count[window] += 1;
        });
        for (int64_t i = 0; include_pad && i < y.numel(); ++i) {
          const auto extent = [&](int axis, int64_t position, int64_t size) {
            const int64_t start = position * c.stride[axis] - c.padding[axis];
            return std::min(start + c.kernel[axis], size + c.padding[axis]) -
                   start;
          };
          count[i] = static_cast<double>(extent(0, i / ow % oh, c.H()) *
                                         extent(1, i % ow, c.W()));
        }
        std::vector<double> mean(sum);
        for (size_t i = 0; i < sum.size(); ++i) mean[i] /= count[i];
        const std::string what = absl::StrCat(x.spec().ToString(), " kernel ",
                                              ShapeString(c.kernel));
        ExpectNear(y, mean, 1e-6, what);

        const TestTensor grad = Random(dtype, out, 2);
        std::vector<double> dx(x.numel());
        ForEachElement(c, out, [&](int64_t p, int64_t window, int64_t element) {
          dx[p * plane + element] += grad.Get(window) / count[window];
        });
        attrs.push_back({"input_size", AttrValue(c.input)});
        ExpectNear(Op(OpId::avg_pool2d_backward, attrs, {grad}, 2), dx, 1e-5,
                   what);
      }
    }
  }
}

TEST(PoolTest, NanIsTheLargest) {
  for (const Dims& stride : {Dims{1, 1}, Dims{2, 2}, Dims{3, 3}}) {
    TestTensor x = Random(DType::kFloat32, {1, 1, 20, 30});
    x.Set(5 * 30 + 7, kNan);
    const auto out = TryOp(
        OpId::max_pool2d,
        {{"kernel_size", AttrValue(Dims{3, 3})}, {"stride", AttrValue(stride)}},
        {x});
    ASSERT_TRUE(out.ok());
    const TestTensor &y = (*out)[0], &at = (*out)[1];
    int64_t nans = 0;
    for (int64_t i = 0; i < y.numel(); ++i) {
      if (!std::isnan(y.Get(i))) continue;
      ++nans;
      EXPECT_EQ(at.Get(i), 5 * 30 + 7);
    }
    EXPECT_GT(nans, 0);
  }
}

TEST(PoolTest, ViewsAndRepeatedGradients) {
  const TestTensor view =
      Random(DType::kFloat64, {2, 8, 10, 3}).Transpose(1, 3);
  const TestTensor dense(DType::kFloat64, view.spec().shape, view.Values());
  const AttrList attrs = {{"kernel_size", AttrValue(Dims{2, 2})}};
  const auto a = TryOp(OpId::max_pool2d, attrs, {view});
  const auto b = TryOp(OpId::max_pool2d, attrs, {dense});
  ASSERT_TRUE(a.ok() && b.ok());
  for (int i : {0, 1}) ExpectEqual((*a)[i], (*b)[i].Values());
  const Dims& shape = (*a)[0].spec().shape;
  const TestTensor ones(DType::kFloat64, {1, 1, 1, 1}, {1});
  const TestTensor full(DType::kFloat64, shape,
                        std::vector<double>(NumElements(shape), 1));
  const AttrList size = {{"input_size", AttrValue(view.spec().shape)}};
  ExpectEqual(
      Op(OpId::max_pool2d_backward, size, {ones.Expand(shape), (*a)[1]}),
      Op(OpId::max_pool2d_backward, size, {full, (*a)[1]}).Values());
}

TEST(PoolTest, IndicesOutOfRangeAreErrors) {
  const TestTensor grad = Random(DType::kFloat32, {1, 2, 2, 2});
  const TestTensor x = Random(DType::kFloat32, {1, 2, 4, 4});
  for (double bad : {-1.0, 16.0, 1e15, -1e15}) {
    TestTensor at = RandomIndex({1, 2, 2, 2}, 16);
    at.Set(7, bad);
    const auto backward =
        TryOp(OpId::max_pool2d_backward,
              {{"input_size", AttrValue(Dims{1, 2, 4, 4})}}, {grad, at}, 2);
    EXPECT_EQ(backward.status().code(), absl::StatusCode::kOutOfRange);
    EXPECT_NE(backward.status().message().find(
                  absl::StrCat("index ", static_cast<int64_t>(bad))),
              std::string::npos)
        << backward.status();
    EXPECT_EQ(TryOp(OpId::max_pool2d_gather, {}, {x, at}).status().code(),
              absl::StatusCode::kOutOfRange);
  }
}

TEST(PoolTest, EmptyBatch) {
  const TestTensor x(DType::kFloat32, {0, 2, 4, 4});
  const AttrList attrs = {{"kernel_size", AttrValue(Dims{2, 2})}};
  EXPECT_EQ(Op(OpId::max_pool2d, attrs, {x}).numel(), 0);
  EXPECT_EQ(Op(OpId::avg_pool2d, attrs, {x}).numel(), 0);
}

TEST(PoolTest, HugeWindowsCostWhatTheImageCosts) {
  // A kernel of 2^31 - 1 whose taps are nearly all in the padding.
  const int64_t k = (int64_t{1} << 31) - 1, p = k / 2;
  const TestTensor x(DType::kFloat32, {1, 1, 2, 2}, {1, 4, 3, 2});
  const AttrList attrs = {{"kernel_size", AttrValue(Dims{k, k})},
                          {"stride", AttrValue(Dims{k, k})},
                          {"padding", AttrValue(Dims{p, p})}};
  const auto out = TryOp(OpId::max_pool2d, attrs, {x});
  ASSERT_TRUE(out.ok()) << out.status();
  ExpectEqual((*out)[0], {4});
  ExpectEqual((*out)[1], {1});
  AttrList mean = attrs;
  mean.push_back({"count_include_pad", AttrValue(false)});
  ExpectEqual(Op(OpId::avg_pool2d, mean, {x}), {2.5});
}

}  // namespace
}  // namespace holdfast::cpu
