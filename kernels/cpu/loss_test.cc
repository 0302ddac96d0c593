// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// nll_loss and its gradient.
#include <limits>

#include "kernels/cpu/op_testing.h"
#include "ops/op_id.h"

namespace holdfast::cpu {
namespace {

AttrList Options(const std::string& reduction, int64_t ignore_index = -100) {
  return {{"reduction", AttrValue(reduction)},
          {"ignore_index", AttrValue(ignore_index)}};
}

TEST(NllLossTest, ReductionsWeightsAndIgnoredClasses) {
  const int64_t n = 37, classes = 6;
  const TestTensor target = RandomIndex({n}, classes);
  for (DType dtype : {DType::kFloat32, DType::kFloat64}) {
    const TestTensor wide = Random(dtype, {classes, n}).Transpose(0, 1);
    for (const TestTensor& x : {Random(dtype, {n, classes}), wide}) {
      for (const TestTensor& weight :
           {TestTensor(), TestTensor(dtype, {classes}, {1, 2, 3, 0.5, 4, 5})}) {
        for (int64_t ignore : {-100, 3}) {
          std::vector<double> each(n);
          double sum = 0, total = 0;
          std::vector<double> w(n);
          for (int64_t i = 0; i < n; ++i) {
            const int64_t t = static_cast<int64_t>(target.Get(i));
            if (t == ignore) continue;
            w[i] = weight.view().data == nullptr ? 1 : weight.Get(t);
            each[i] = -w[i] * x.Get(i * classes + t);
            sum += each[i];
            total += w[i];
          }
          const auto gradient = [&](auto grad_of) {
            std::vector<double> out(n * classes);
            for (int64_t i = 0; i < n; ++i) {
              const int64_t t = static_cast<int64_t>(target.Get(i));
              if (t != ignore) out[i * classes + t] = -w[i] * grad_of(i);
            }
            return out;
          };
          const auto check = [&](const std::string& reduction,
                                 const std::vector<double>& want,
                                 const TestTensor& grad,
                                 const std::vector<double>& want_grad) {
            const auto out = TryOp(OpId::nll_loss, Options(reduction, ignore),
                                   {x, target, weight});
            ASSERT_TRUE(out.ok()) << out.status();
            ExpectNear((*out)[0], want, 1e-6, reduction);
            if (reduction != "none") ExpectNear((*out)[1], {total}, 1e-6);
            AttrList attrs = Options(reduction, ignore);
            attrs.push_back({"input_size", AttrValue(Dims{n, classes})});
            ExpectNear(Op(OpId::nll_loss_backward, attrs,
                          {grad, target, weight, (*out)[1]}),
                       want_grad, 1e-6, reduction);
          };
          const TestTensor one(dtype, {}, {0.75});
          const TestTensor many = Random(dtype, {n}, 5);
          check("sum", {sum}, one, gradient([](int64_t) { return 0.75; }));
          check("mean", {sum / total}, one,
                gradient([&](int64_t) { return 0.75 / total; }));
          check("none", each, many,
                gradient([&](int64_t i) { return many.Get(i); }));
          check("none", each, one.Expand({n}),
                gradient([](int64_t) { return 0.75; }));
        }
      }
    }
  }
}

TEST(NllLossTest, OneSampleWithoutABatch) {
  const TestTensor x(DType::kFloat32, {3}, {-1, -2, -3});
  const TestTensor target(DType::kInt64, {}, {2});
  for (const char* reduction : {"none", "mean", "sum"}) {
    const auto out =
        TryOp(OpId::nll_loss, Options(reduction), {x, target, TestTensor()});
    ASSERT_TRUE(out.ok()) << out.status();
    ExpectEqual((*out)[0], {3}, reduction);
    AttrList attrs = Options(reduction);
    attrs.push_back({"input_size", AttrValue(Dims{3})});
    ExpectEqual(Op(OpId::nll_loss_backward, attrs,
                   {TestTensor(DType::kFloat32, {}, {2}), target, TestTensor(),
                    TestTensor(DType::kFloat32, {}, {1})}),
                {0, 0, -2}, reduction);
  }
}

TEST(NllLossTest, TargetsOutOfRangeAreErrors) {
  const TestTensor x = Random(DType::kFloat32, {4, 10});
  for (double bad : {10.0, -1.0, 1e18, -1e18}) {
    TestTensor target = RandomIndex({4}, 10);
    target.Set(2, bad);
    const absl::Status s =
        TryOp(OpId::nll_loss, Options("mean"), {x, target, TestTensor()})
            .status();
    EXPECT_EQ(s.code(), absl::StatusCode::kOutOfRange);
    EXPECT_EQ(s.message().find("[nll_loss] Target "), 0) << s;
    EXPECT_NE(s.message().find("is out of bounds. Got classes=10"),
              std::string::npos)
        << s;
    AttrList attrs = Options("mean");
    attrs.push_back({"input_size", AttrValue(Dims{4, 10})});
    const TestTensor one(DType::kFloat32, {}, {1});
    EXPECT_EQ(
        TryOp(OpId::nll_loss_backward, attrs, {one, target, TestTensor(), one})
            .status()
            .code(),
        absl::StatusCode::kOutOfRange);
  }
}

TEST(NllLossTest, IgnoredTargetsMayBeOutOfRange) {
  const TestTensor x(DType::kFloat32, {2, 2}, {-1, -2, -3, -4});
  const TestTensor target(DType::kInt64, {2}, {-100, 1});
  ExpectEqual(Op(OpId::nll_loss, Options("mean"), {x, target, TestTensor()}),
              {4});
  // A mean over nothing.
  const TestTensor none(DType::kInt64, {2}, {-100, -100});
  ExpectEqual(Op(OpId::nll_loss, Options("mean"), {x, none, TestTensor()}),
              {std::numeric_limits<double>::quiet_NaN()});
}

TEST(NllLossTest, EmptyBatch) {
  const TestTensor x(DType::kFloat32, {0, 3});
  const TestTensor target(DType::kInt64, {0});
  ExpectEqual(Op(OpId::nll_loss, Options("sum"), {x, target, TestTensor()}),
              {0});
}

}  // namespace
}  // namespace holdfast::cpu
