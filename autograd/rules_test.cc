// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Every gradient rule against finite differences, to the second order.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "autograd/engine.h"
#include "autograd/gradient_cases.h"
#include "autograd/reference_sink.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"

namespace holdfast {
namespace {

std::vector<double> Random(std::mt19937_64& bits, int64_t n, double low,
                           double high) {
  std::uniform_real_distribution<double> draw(low, high);
  std::vector<double> values(n);
  for (double& v : values) v = draw(bits);
  return values;
}

double Dot(const Value& a, const Value& b) {
  const Dense x = AsReference(a).Read(), y = AsReference(b).Read();
  double sum = 0;
  for (size_t i = 0; i < x.v.size(); ++i) sum += x.v[i] * y.v[i];
  return sum;
}

class RuleTest : public testing::TestWithParam<GradientCase> {
 protected:
  void SetUp() override {
    for (const CaseInput& in : GetParam().inputs) {
      if (in.absent) {
        inputs_.push_back(nullptr);
        continue;
      }
      const int64_t n = NumElements(in.shape);
      Value value = NewTensor(
          in.dtype, in.shape,
          in.values.empty() ? Random(bits_, n, in.low, in.high) : in.values);
      if (IsFloat(in.dtype) && !in.constant) {
        value->SetLeafRequiresGrad(true);
        leaves_.push_back(value);
      }
      inputs_.push_back(std::move(value));
    }
    weight_ = OnesLike(Forward());
    AsReference(weight_).storage->data =
        Random(bits_, weight_->spec().numel(), 0.5, 1.5);
  }

  Value Forward() {
    std::vector<Value> inputs = inputs_;
    if (GetParam().inplace) inputs[0] = RunOne(sink_, OpId::clone, {inputs[0]});
    return RunAll(sink_, GetParam().op, inputs, GetParam().attrs,
                  GetParam().inplace)[0];
  }

  static Value OnesLike(const Value& like) {
    return NewTensor(DType::kFloat64, like->spec().shape,
                     std::vector<double>(like->spec().numel(), 1.0));
  }

  // d <weight, op(inputs)> / d leaves
  std::vector<Value> Gradients(bool create_graph) {
    const Value out = Forward();
    const Value roots[] = {out};
    const Value weights[] = {weight_};
    absl::StatusOr<std::vector<Value>> result =
        RunBackward(sink_, roots, weights, leaves_,
                    {/*retain_graph=*/create_graph, create_graph});
    EXPECT_TRUE(result.ok()) << result.status();
    if (!result.ok()) return {};
    for (size_t i = 0; i < leaves_.size(); ++i) {
      EXPECT_TRUE((*result)[i]) << "no gradient for leaf " << i;
      if (!(*result)[i]) return {};
      EXPECT_EQ((*result)[i]->spec().shape, leaves_[i]->spec().shape);
      EXPECT_EQ((*result)[i]->spec().dtype, leaves_[i]->spec().dtype);
    }
    return *std::move(result);
  }

  // Compares `gradient` with differences of `f` over `leaf`'s elements.
  template <typename F>
  void CheckAgainstDifferences(const Value& leaf, const Value& gradient, F f) {
    constexpr double kStep = 1e-6;
    std::vector<double>& data = AsReference(leaf).storage->data;
    const Dense got = AsReference(gradient).Read();
    ASSERT_EQ(got.v.size(), data.size());
    for (size_t i = 0; i < data.size(); ++i) {
      const double at = data[i];
      data[i] = at + kStep;
      const double above = f();
      data[i] = at - kStep;
      const double below = f();
      data[i] = at;
      const double expected = (above - below) / (2 * kStep);
      EXPECT_NEAR(got.v[i], expected, 2e-6 * (1 + std::fabs(expected)))
          << "element " << i;
    }
  }

  std::mt19937_64 bits_{20240229};
  ReferenceSink sink_;
  std::vector<Value> inputs_;
  std::vector<Value> leaves_;
  Value weight_;
};

TEST_P(RuleTest, FirstOrder) {
  const std::vector<Value> gradients = Gradients(/*create_graph=*/false);
  ASSERT_EQ(gradients.size(), leaves_.size());
  for (size_t i = 0; i < leaves_.size(); ++i) {
    SCOPED_TRACE(testing::Message() << "leaf " << i);
    CheckAgainstDifferences(leaves_[i], gradients[i],
                            [&] { return Dot(Forward(), weight_); });
  }
}

TEST_P(RuleTest, SecondOrder) {
  // h = sum_i <v_i, gradient_i>, as a function of the leaves and the weight.
  weight_->SetLeafRequiresGrad(true);
  const std::vector<Value> gradients = Gradients(/*create_graph=*/true);
  ASSERT_EQ(gradients.size(), leaves_.size());
  std::vector<Value> roots, weights, directions;
  for (const Value& gradient : gradients) {
    directions.push_back(
        NewTensor(DType::kFloat64, gradient->spec().shape,
                  Random(bits_, gradient->spec().numel(), 0.5, 1.5)));
    if (!gradient->requires_grad()) continue;  // a constant
    roots.push_back(gradient);
    weights.push_back(directions.back());
  }
  std::vector<Value> targets = leaves_;
  targets.push_back(weight_);
  std::vector<Value> second(targets.size());
  if (!roots.empty()) {
    absl::StatusOr<std::vector<Value>> result =
        RunBackward(sink_, roots, weights, targets, {false, false});
    ASSERT_TRUE(result.ok()) << result.status();
    second = *std::move(result);
  }
  for (size_t i = 0; i < targets.size(); ++i) {
    SCOPED_TRACE(testing::Message() << "target " << i);
    if (!second[i]) {
      second[i] = NewTensor(DType::kFloat64, targets[i]->spec().shape,
                            std::vector<double>(targets[i]->spec().numel()));
    }
    CheckAgainstDifferences(targets[i], second[i], [&] {
      const std::vector<Value> moved = Gradients(/*create_graph=*/false);
      double h = 0;
      for (size_t k = 0; k < moved.size(); ++k)
        h += Dot(moved[k], directions[k]);
      return h;
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Table, RuleTest, testing::ValuesIn(GradientCases()),
                         [](const testing::TestParamInfo<GradientCase>& info) {
                           return info.param.name;
                         });

// Cases here are for rules that are best checked without a daemon; that every
// differentiable op has some is tests/test_op_cases.py's to see.
TEST(RuleTableTest, EveryDifferentiableOpHasARule) {
  for (const GradientCase& c : GradientCases()) {
    EXPECT_FALSE(GetOp(c.op).has(kNoGrad)) << c.name;
  }
  for (const OpSchema& schema : AllOps()) {
    EXPECT_EQ(FindGradRule(schema.id) != nullptr, !schema.has(kNoGrad))
        << schema.name;
  }
}

// ---- points where differences say nothing

class RuleAtPointTest : public testing::Test {
 protected:
  // d sum(op(inputs)) / d inputs that are leaves
  std::vector<double> Gradient(OpId op, const std::vector<Value>& inputs,
                               const std::vector<NamedAttr>& attrs,
                               const Value& leaf) {
    const Value roots[] = {
        RunOne(sink_, OpId::sum, {RunOne(sink_, op, inputs, attrs)})};
    const Value gradients[] = {nullptr};
    const Value targets[] = {leaf};
    absl::StatusOr<std::vector<Value>> result =
        RunBackward(sink_, roots, gradients, targets, {});
    EXPECT_TRUE(result.ok()) << result.status();
    if (!result.ok()) return {};
    gradient_dtype_ = (*result)[0]->spec().dtype;
    return AsReference((*result)[0]).Read().v;
  }

  ReferenceSink sink_;
  DType gradient_dtype_ = DType::kBool;
};

using Doubles = std::vector<double>;

TEST_F(RuleAtPointTest, ExtremaShareTheGradientAmongEquals) {
  const Value x = NewLeaf({4}, {3, 1, 3, 2});
  EXPECT_EQ(Gradient(OpId::amax, {x}, {}, x), (Doubles{0.5, 0, 0.5, 0}));
  const Value y = NewLeaf({2, 2}, {1, 1, 2, 1});
  EXPECT_EQ(Gradient(OpId::amin, {y}, {{"dim", Dims{1}}}, y),
            (Doubles{0.5, 0.5, 0, 1}));
}

TEST_F(RuleAtPointTest, MaximumSplitsTies) {
  const Value a = NewLeaf({3}, {1, 2, 3});
  const Value b = NewLeaf({3}, {3, 2, 1});
  EXPECT_EQ(Gradient(OpId::maximum, {a, b}, {}, a), (Doubles{0, 0.5, 1}));
  EXPECT_EQ(Gradient(OpId::minimum, {a, b}, {}, b), (Doubles{0, 0.5, 1}));
}

TEST_F(RuleAtPointTest, ClampPassesTheGradientOnItsBounds) {
  const Value x = NewLeaf({4}, {-1, 0, 1, 2});
  EXPECT_EQ(Gradient(OpId::clamp, {x}, {{"min", 0.0}, {"max", 1.0}}, x),
            (Doubles{0, 1, 1, 0}));
}

TEST_F(RuleAtPointTest, ReluIsFlatAtZero) {
  const Value x = NewLeaf({3}, {-1, 0, 1});
  EXPECT_EQ(Gradient(OpId::relu, {x}, {}, x), (Doubles{0, 0, 1}));
}

TEST_F(RuleAtPointTest, PowAtZero) {
  const Value a = NewLeaf({3}, {0, 0, 2});
  const Value b = NewLeaf({3}, {0, 2, 0});
  EXPECT_EQ(Gradient(OpId::pow, {a, b}, {}, a), (Doubles{0, 0, 0}));
  EXPECT_EQ(Gradient(OpId::pow, {a, b}, {}, b), (Doubles{0, 0, std::log(2.0)}));
  EXPECT_EQ(Gradient(OpId::pow, {nullptr, b}, {{"input", 0.0}}, b),
            (Doubles{0, 0, 0}));
}

TEST_F(RuleAtPointTest, ToReturnsTheGradientInTheInputsType) {
  const Value x = NewLeaf({2}, {1, 2});
  EXPECT_EQ(Gradient(OpId::to, {x}, {{"dtype", DType::kFloat32}}, x),
            (Doubles{1, 1}));
  EXPECT_EQ(gradient_dtype_, DType::kFloat64);
}

TEST_F(RuleAtPointTest, MixedTypesReturnTheGradientInTheInputsType) {
  const Value x = NewTensor(DType::kFloat32, {2}, {1, 2});
  x->SetLeafRequiresGrad(true);
  const Value y = NewLeaf({2}, {3, 4});
  EXPECT_EQ(Gradient(OpId::mul, {x, y}, {}, x), (Doubles{3, 4}));
  EXPECT_EQ(gradient_dtype_, DType::kFloat32);
  EXPECT_EQ(Gradient(OpId::sum, {x}, {{"dtype", DType::kFloat64}}, x),
            (Doubles{1, 1}));
  EXPECT_EQ(gradient_dtype_, DType::kFloat32);
}

TEST_F(RuleAtPointTest, AViewOfAGradientThatCannotBeViewedIsCopied) {
  // transpose(view(x)): the gradient of the view arrives transposed.
  const Value x = NewLeaf({2, 3}, {1, 2, 3, 4, 5, 6});
  const Value y = RunOne(sink_, OpId::view, {x}, {{"size", Dims{3, 2}}});
  const Value z = RunOne(sink_, OpId::transpose, {y},
                         {{"dim0", int64_t{0}}, {"dim1", int64_t{1}}});
  const Value roots[] = {z};
  const Value gradients[] = {
      NewTensor(DType::kFloat64, {2, 3}, {1, 3, 5, 2, 4, 6})};
  const Value targets[] = {x};
  auto result = RunBackward(sink_, roots, gradients, targets, {});
  ASSERT_TRUE(result.ok()) << result.status();
  EXPECT_EQ(AsReference((*result)[0]).Read().v, (Doubles{1, 2, 3, 4, 5, 6}));
}

TEST_F(RuleAtPointTest, BroadcastingWithoutRepetitionNeedsNoSum) {
  const Value x = NewLeaf({3}, {1, 2, 3});
  const Value y = NewLeaf({1, 3}, {4, 5, 6});
  EXPECT_EQ(Gradient(OpId::mul, {x, y}, {}, x), (Doubles{4, 5, 6}));
  EXPECT_EQ(sink_.count(OpId::sum), 1);  // the forward one
}

TEST_F(RuleAtPointTest, EmptyTensors) {
  const Value x = NewLeaf({0, 3}, {});
  EXPECT_EQ(Gradient(OpId::sum, {x}, {{"dim", Dims{1}}}, x), Doubles());
  const Value row = NewLeaf({1, 3}, {1, 2, 3});
  EXPECT_EQ(Gradient(OpId::mul, {x, row}, {}, row), (Doubles{0, 0, 0}));
}

TEST_F(RuleAtPointTest, DropoutOfEverything) {
  const Value x = NewLeaf({2}, {1, 2});
  // The reference keeps by position, whatever p is; what was dropped counts.
  EXPECT_EQ(Gradient(OpId::dropout, {x}, {{"p", 0.5}}, x), (Doubles{2, 0}));
}

}  // namespace
}  // namespace holdfast
