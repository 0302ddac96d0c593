// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The tape and the engine: what runs, in which order, what is kept, what is
// refused. The gradients themselves are rules_test.cc's subject.
#include "autograd/engine.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "autograd/reference_sink.h"
#include "autograd/tape.h"
#include "ops/check.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"

namespace holdfast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Doubles = std::vector<double>;

class EngineTest : public testing::Test {
 protected:
  absl::StatusOr<std::vector<Value>> Backward(
      const std::vector<Value>& roots, const std::vector<Value>& targets,
      const BackwardOptions& options = {}, std::vector<Value> gradients = {}) {
    gradients.resize(roots.size());
    return RunBackward(sink_, roots, gradients, targets, options);
  }

  // The gradients' elements; empty where there is none. Fails on an error.
  std::vector<Doubles> Gradients(const std::vector<Value>& roots,
                                 const std::vector<Value>& targets,
                                 const BackwardOptions& options = {},
                                 std::vector<Value> gradients = {}) {
    auto result = Backward(roots, targets, options, std::move(gradients));
    EXPECT_TRUE(result.ok()) << result.status();
    std::vector<Doubles> values;
    if (!result.ok()) return values;
    for (const Value& gradient : *result) {
      values.push_back(gradient ? AsReference(gradient).Read().v : Doubles());
    }
    return values;
  }

  std::string Error(const std::vector<Value>& roots,
                    const std::vector<Value>& targets,
                    const BackwardOptions& options = {},
                    std::vector<Value> gradients = {}) {
    auto result = Backward(roots, targets, options, std::move(gradients));
    return result.ok() ? "no error" : std::string(result.status().message());
  }

  Value Mul(const Value& a, const Value& b) {
    return RunOne(sink_, OpId::mul, {a, b});
  }
  Value MulBy(const Value& a, double number) {
    return RunOne(sink_, OpId::mul, {a, nullptr}, {{"other", number}});
  }
  Value Add(const Value& a, const Value& b) {
    return RunOne(sink_, OpId::add, {a, b});
  }
  Value Sum(const Value& a) { return RunOne(sink_, OpId::sum, {a}); }
  Value Slice(const Value& a, int64_t start, int64_t end) {
    return RunOne(sink_, OpId::slice, {a},
                  {{"dim", int64_t{0}},
                   {"start", start},
                   {"end", end},
                   {"step", int64_t{1}}});
  }
  // The written input with its new history.
  Value InPlace(OpId op, const std::vector<Value>& inputs,
                const std::vector<NamedAttr>& attrs = {}) {
    return RunAll(sink_, op, inputs, attrs, /*inplace=*/true)[0];
  }

  ReferenceSink sink_;
};

// One that is wrong where a rule multiplies.
class WrongSink final : public OpSink {
 public:
  absl::StatusOr<Values> Emit(const Attrs& attrs,
                              absl::Span<const Value> inputs, bool record,
                              bool inplace) override {
    HF_CHECK(attrs.schema().id != OpId::mul);
    return sink_.Emit(attrs, inputs, record, inplace);
  }
  absl::StatusOr<bool> HasNaN(const Value& value) override {
    return sink_.HasNaN(value);
  }
  Value Alias(const Value& value) override { return sink_.Alias(value); }

 private:
  ReferenceSink sink_;
};

// ---- what is recorded

TEST_F(EngineTest, OpsOnConstantsAreNotRecorded) {
  const Value x = NewTensor(DType::kFloat64, {2}, {1, 2});
  const Value y = Mul(x, x);
  EXPECT_FALSE(y->requires_grad());
  EXPECT_TRUE(y->is_leaf());
  EXPECT_FALSE(y->GradientEdge());
}

TEST_F(EngineTest, ResultsKnowTheirPlace) {
  const Value x = NewLeaf({2}, {1, 2});
  const Value y = Mul(x, x);
  EXPECT_TRUE(x->is_leaf());
  EXPECT_TRUE(y->requires_grad());
  EXPECT_FALSE(y->is_leaf());
  EXPECT_GT(y->GradientEdge().node->sequence(), 0u);
  // Integral results carry no history.
  const Value z = RunOne(sink_, OpId::to, {x}, {{"dtype", DType::kInt64}});
  EXPECT_FALSE(z->requires_grad());
}

TEST_F(EngineTest, KeepsOnlyWhatBackwardNeeds) {
  const Value x = NewLeaf({2}, {1, 2});
  const Value c = NewTensor(DType::kFloat64, {2}, {3, 4});
  // Only x needs a gradient, which is g c: x itself is not kept.
  const Value y = Mul(x, c);
  const auto& saved = y->GradientEdge().node->saved_inputs;
  ASSERT_EQ(saved.size(), 2u);
  EXPECT_FALSE(saved[0].value);
  EXPECT_EQ(saved[1].value, c);
  EXPECT_TRUE(Add(x, c)->GradientEdge().node->saved_inputs.empty());
  EXPECT_TRUE(MulBy(x, 2)->GradientEdge().node->saved_inputs.empty() ||
              !MulBy(x, 2)->GradientEdge().node->saved_inputs[0].value);
}

TEST_F(EngineTest, GraphsDieWithTheirResult) {
  const Value x = NewLeaf({2}, {1, 2});
  Value middle = RunOne(sink_, OpId::exp, {x});
  const std::weak_ptr<ReferenceTensor::Storage> memory =
      AsReference(middle).storage;
  Value y = Mul(middle, middle);
  middle.reset();
  EXPECT_FALSE(memory.expired());  // mul saved it
  y.reset();
  EXPECT_TRUE(memory.expired());
}

// ---- what runs

TEST_F(EngineTest, Diamond) {
  const Value x = NewLeaf({2}, {2, 3});
  const Value a = RunOne(sink_, OpId::exp, {x});
  const Value b = Mul(a, x);
  const Value c = Add(b, Mul(a, a));  // x e^x + e^2x
  const std::vector<Doubles> g = Gradients({Sum(c)}, {x});
  const double e2 = std::exp(2), e3 = std::exp(3);
  EXPECT_NEAR(g[0][0], e2 + 2 * e2 + 2 * e2 * e2, 1e-9);
  EXPECT_NEAR(g[0][1], e3 + 3 * e3 + 2 * e3 * e3, 1e-9);
}

TEST_F(EngineTest, ASharedResultRunsOnce) {
  const Value x = NewLeaf({1}, {0.5});
  Value y = x;
  for (int i = 0; i < 40; ++i) y = Add(y, y);  // 2^40 paths
  const int before = sink_.count(OpId::add);
  EXPECT_THAT(Gradients({y}, {x}), ElementsAre(Doubles{std::exp2(40)}));
  EXPECT_EQ(sink_.count(OpId::add) - before, 40);
}

TEST_F(EngineTest, MultipleRootsAddUp) {
  const Value x = NewLeaf({2}, {2, 3});
  const Value y = Mul(x, x);
  const Value z = Sum(y);
  const Value weight = NewTensor(DType::kFloat64, {2}, {10, 100});
  EXPECT_THAT(Gradients({z, y}, {x}, {}, {nullptr, weight}),
              ElementsAre(Doubles{44, 606}));
}

TEST_F(EngineTest, ARootMayBeATarget) {
  const Value x = NewLeaf({}, {2});
  const Value y = MulBy(x, 3);
  EXPECT_THAT(Gradients({x}, {x}), ElementsAre(Doubles{1}));
  EXPECT_THAT(Gradients({y}, {y, x}), ElementsAre(Doubles{1}, Doubles{3}));
  EXPECT_THAT(Gradients({y, y}, {y}), ElementsAre(Doubles{2}));
}

TEST_F(EngineTest, IntermediateTargetsAreCapturedOnTheWay) {
  const Value x = NewLeaf({2}, {2, 3});
  const Value y = Mul(x, x);
  const Value z = Sum(Mul(y, y));
  // The same target twice, too.
  EXPECT_THAT(Gradients({z}, {y, x, y}),
              ElementsAre(Doubles{8, 18}, Doubles{32, 108}, Doubles{8, 18}));
}

// Of many views of parts, only the first has its zeros made.
TEST_F(EngineTest, PartsAreAddedInTheirPlaces) {
  const Value x = NewLeaf({4}, {1, 2, 3, 4});
  const Value z =
      Add(Sum(MulBy(Slice(x, 0, 3), 2)), Sum(MulBy(Slice(x, 1, 4), 10)));
  EXPECT_THAT(Gradients({z}, {x}), ElementsAre(Doubles{2, 12, 12, 10}));
  EXPECT_EQ(sink_.count(OpId::slice_backward), 1);

  const Value row = RunOne(sink_, OpId::select, {x},
                           {{"dim", int64_t{0}}, {"index", int64_t{-1}}});
  const Value slice = Sum(Slice(x, 0, 2));
  const Value whole = Sum(x);  // the last one recorded, the first that arrives
  const Value beside = Add(Add(row, slice), whole);
  EXPECT_THAT(Gradients({beside}, {x}), ElementsAre(Doubles{2, 2, 1, 2}));
  EXPECT_EQ(sink_.count(OpId::slice_backward), 1);
  EXPECT_EQ(sink_.count(OpId::select_backward), 0);
}

TEST_F(EngineTest, PartsAreNotAddedToWhatIsTheUsers) {
  const Value x = NewLeaf({3}, {1, 2, 3});
  const Value whole = MulBy(x, 1);
  const Value given = NewTensor(DType::kFloat64, {3}, {5, 6, 7});
  const Value part = NewTensor(DType::kFloat64, {2}, {10, 20});
  EXPECT_THAT(
      Gradients({whole, Slice(whole, 1, 3)}, {whole}, {}, {given, part}),
      ElementsAre(Doubles{5, 16, 27}));
  EXPECT_THAT(AsReference(given).Read().v, ElementsAre(5, 6, 7));
  EXPECT_THAT(AsReference(part).Read().v, ElementsAre(10, 20));
}

TEST_F(EngineTest, OnlyNodesOnAPathToATargetRun) {
  const Value x = NewLeaf({2}, {2, 3});
  const Value w = NewLeaf({2}, {5, 7});
  const Value y = RunOne(sink_, OpId::sin, {x});  // its gradient is a cos
  const Value z = Sum(Mul(y, w));
  EXPECT_THAT(Gradients({z}, {w}),
              ElementsAre(Doubles{std::sin(2), std::sin(3)}));
  EXPECT_EQ(sink_.count(OpId::cos), 0);
  // Nor do the nodes below an intermediate target.
  const Value again = Sum(Mul(y, w));
  Gradients({again}, {y});
  EXPECT_EQ(sink_.count(OpId::cos), 0);
}

TEST_F(EngineTest, UnreachedTargetsHaveNoGradient) {
  const Value x = NewLeaf({2}, {2, 3});
  const Value other = NewLeaf({2}, {1, 1});
  const Value later = MulBy(x, 2);
  EXPECT_THAT(Gradients({Sum(x)}, {other, x, later}),
              ElementsAre(Doubles{}, Doubles{1, 1}, Doubles{}));
}

TEST_F(EngineTest, ReachedTargetsWithoutInfluenceHaveZeros) {
  const Value x = NewLeaf({2}, {2.5, 3.5});
  const Value y = MulBy(RunOne(sink_, OpId::floor, {x}), 3);
  EXPECT_THAT(Gradients({Sum(y)}, {x}), ElementsAre(Doubles{0, 0}));
}

TEST_F(EngineTest, OutputsWithoutAGradientAreSkipped) {
  // Only max_pool2d's first output is differentiable; dropout's likewise.
  const Value x = NewLeaf({1, 1, 2, 2}, {1, 4, 3, 2});
  const Values pooled =
      RunAll(sink_, OpId::max_pool2d, {x}, {{"kernel_size", Dims{2, 2}}});
  EXPECT_TRUE(pooled[0]->requires_grad());
  EXPECT_FALSE(pooled[1]->requires_grad());
  EXPECT_THAT(Gradients({pooled[0]}, {x}), ElementsAre(Doubles{0, 1, 0, 0}));
}

TEST_F(EngineTest, ManyPartsAreAddedInPlace) {
  const Value x = NewLeaf({2}, {1, 2});
  Value total = MulBy(x, 1);
  for (int i = 2; i <= 5; ++i) total = Add(total, MulBy(x, i));
  const Value root = Sum(total);
  const int adds = sink_.count(OpId::add);
  EXPECT_THAT(Gradients({root}, {x}, {true, false}),
              ElementsAre(Doubles{15, 15}));
  EXPECT_EQ(sink_.count(OpId::add) - adds, 4);
  EXPECT_EQ(sink_.inplace_count(), 3);  // all but the first
  // A recorded sum must stay.
  EXPECT_THAT(Gradients({root}, {x}, {true, true}),
              ElementsAre(Doubles{15, 15}));
  EXPECT_EQ(sink_.inplace_count(), 3);
}

TEST_F(EngineTest, ASharedGradientIsNotOverwrittenByASum) {
  // add hands the same gradient to both inputs; x then receives more.
  const Value x = NewLeaf({2}, {1, 2});
  const Value y = NewLeaf({2}, {3, 4});
  const Value s = Add(x, y);
  const Value total = Add(Add(s, MulBy(x, 10)), MulBy(x, 100));
  const Value given = NewTensor(DType::kFloat64, {2}, {1, 2});
  EXPECT_THAT(Gradients({total}, {x, y, s}, {}, {given}),
              ElementsAre(Doubles{111, 222}, Doubles{1, 2}, Doubles{1, 2}));
  EXPECT_EQ(AsReference(given).Read().v, (Doubles{1, 2}));
}

// ---- higher orders

TEST_F(EngineTest, CreateGraphToTheFourthOrder) {
  const Value x = NewLeaf({}, {2});
  Value y = RunOne(sink_, OpId::pow, {x, nullptr}, {{"other", int64_t{5}}});
  const double expected[] = {80, 160, 240, 240};  // 5x^4, 20x^3, 60x^2, 120x
  for (double value : expected) {
    auto result = Backward({y}, {x}, {true, true});
    ASSERT_TRUE(result.ok()) << result.status();
    y = (*result)[0];
    EXPECT_NEAR(AsReference(y).Read().v[0], value, 1e-9);
  }
}

TEST_F(EngineTest, WithoutCreateGraphGradientsAreConstants) {
  const Value x = NewLeaf({}, {2});
  auto result = Backward({Mul(x, x)}, {x}, {true, false});
  ASSERT_TRUE(result.ok());
  EXPECT_FALSE((*result)[0]->requires_grad());
}

TEST_F(EngineTest, SavedOutputsKeepTheirHistoryForHigherOrders) {
  const Value x = NewLeaf({}, {0.3});
  const Value y = RunOne(sink_, OpId::tanh, {x});
  auto first = Backward({y}, {x}, {true, true});
  ASSERT_TRUE(first.ok());
  const double t = std::tanh(0.3);
  const std::vector<Doubles> second = Gradients({(*first)[0]}, {x});
  EXPECT_NEAR(second[0][0], -2 * t * (1 - t * t), 1e-12);
}

// ---- freeing

TEST_F(EngineTest, ASecondBackwardNeedsRetainGraph) {
  const Value x = NewLeaf({2}, {2, 3});
  const Value y = Sum(Mul(x, x));
  EXPECT_THAT(Gradients({y}, {x}, {true, false}), ElementsAre(Doubles{4, 6}));
  EXPECT_THAT(Gradients({y}, {x}), ElementsAre(Doubles{4, 6}));
  const std::string error = Error({y}, {x});
  EXPECT_THAT(error, HasSubstr("[mul] Trying to backward through the graph a "
                               "second time"));
  EXPECT_THAT(error, HasSubstr("Specify retain_graph=True"));
}

TEST_F(EngineTest, AGraphThatSavedNothingCanRunAgain) {
  const Value x = NewLeaf({2}, {2, 3});
  const Value y = Sum(MulBy(x, 3));
  EXPECT_THAT(Gradients({y}, {x}), ElementsAre(Doubles{3, 3}));
  EXPECT_THAT(Gradients({y}, {x}), ElementsAre(Doubles{3, 3}));
}

TEST_F(EngineTest, BackwardFreesSavedTensors) {
  const Value x = NewLeaf({2}, {2, 3});
  Value a = RunOne(sink_, OpId::exp, {x});
  const std::weak_ptr<ReferenceTensor::Storage> memory = AsReference(a).storage;
  const Value y = Sum(Mul(a, a));
  a.reset();
  Gradients({y}, {x}, {true, false});
  EXPECT_FALSE(memory.expired());
  Gradients({y}, {x});
  EXPECT_TRUE(memory.expired());
}

TEST_F(EngineTest, BackwardToOneTargetLeavesTheRestOfTheGraph) {
  const Value x = NewLeaf({}, {2});
  const Value a = Mul(x, x);
  const Value b = Mul(a, a);
  EXPECT_THAT(Gradients({b}, {a}), ElementsAre(Doubles{8}));
  EXPECT_THAT(Gradients({a}, {x}), ElementsAre(Doubles{4}));
}

// ---- in-place ops

TEST_F(EngineTest, ChangedSavedTensorsAreReported) {
  const Value x = NewLeaf({3}, {1, 2, 3});
  const Value a = MulBy(x, 2);
  const Value y = Mul(a, a);
  InPlace(OpId::add, {a, nullptr}, {{"other", 1.0}});
  InPlace(OpId::add, {a, nullptr}, {{"other", 1.0}});
  EXPECT_EQ(Error({Sum(y)}, {x}),
            "[mul] one of the variables needed for gradient computation has "
            "been modified by an inplace operation: saved f64[3] is at version "
            "2 after [add_]; expected version 0 instead. Hint: use the "
            "out-of-place form of [add_], or write to a clone.");
}

TEST_F(EngineTest, ChangedSavedOutputsAreReported) {
  const Value x = NewLeaf({3}, {1, 2, 3});
  const Value y = RunOne(sink_, OpId::exp, {x});
  InPlace(OpId::mul, {y, nullptr}, {{"other", 2.0}});
  EXPECT_THAT(Error({Sum(y)}, {x}), HasSubstr("[exp] one of the variables"));
}

TEST_F(EngineTest, ChangesThatNobodyNeedsAreFine) {
  const Value x = NewLeaf({3}, {1, 2, 3});
  Value y = MulBy(x, 2);
  y = InPlace(OpId::add, {y, nullptr}, {{"other", 1.0}});
  y = InPlace(OpId::relu, {y});
  EXPECT_FALSE(y->is_leaf());
  EXPECT_THAT(Gradients({Sum(y)}, {x}), ElementsAre(Doubles{2, 2, 2}));
}

TEST_F(EngineTest, WritingIntoAConstantPutsItOnTheTape) {
  Value buffer = NewTensor(DType::kFloat64, {3}, {0, 0, 0});
  const Value x = NewLeaf({1}, {5});
  buffer = InPlace(OpId::copy, {buffer, x});
  EXPECT_TRUE(buffer->requires_grad());
  EXPECT_THAT(Gradients({Sum(Mul(buffer, buffer))}, {x}),
              ElementsAre(Doubles{30}));
}

TEST_F(EngineTest, OverwrittenInputsAreClonedForTheirOwnGradient) {
  const Value x = NewLeaf({2}, {1, 2});
  const Value w = NewLeaf({2}, {3, 4});
  Value y = MulBy(x, 1);
  y = InPlace(OpId::mul, {y, w});
  EXPECT_THAT(Gradients({Sum(y)}, {x, w}),
              ElementsAre(Doubles{3, 4}, Doubles{1, 2}));
  Value z = MulBy(x, 1);
  z = InPlace(OpId::mul, {z, z});
  EXPECT_THAT(Gradients({Sum(z)}, {x}), ElementsAre(Doubles{2, 4}));
}

TEST_F(EngineTest, AWrittenTensorThatWasSavedBeforeIsFreed) {
  const Value x = NewLeaf({2}, {1, 2});
  Value a = MulBy(x, 1);
  const std::weak_ptr<ReferenceTensor::Storage> memory = AsReference(a).storage;
  // The sine keeps a; then a comes to depend on the sine.
  Value y = RunOne(sink_, OpId::sin, {a});
  a = InPlace(OpId::add, {a, y});
  EXPECT_THAT(Error({Sum(a)}, {x}), HasSubstr("at version 1 after [add_]"));
  y.reset();
  a.reset();
  EXPECT_TRUE(memory.expired());  // no cycle through the tape
}

// ---- refusals

TEST_F(EngineTest, RootsMustNeedAGradient) {
  const Value x = NewLeaf({}, {2});
  const Value c = NewTensor(DType::kFloat64, {}, {1});
  EXPECT_THAT(Error({c}, {x}),
              HasSubstr("element 0 of tensors does not require grad and does "
                        "not have a grad_fn. Got root=f64[]."));
  EXPECT_THAT(Error({x, nullptr}, {x}), HasSubstr("Got root=None."));
  EXPECT_THAT(Error({x}, {c}), HasSubstr("Got inputs[0]=f64[]."));
  EXPECT_THAT(Error({x}, {x, nullptr}), HasSubstr("Got inputs[1]=None."));
}

TEST_F(EngineTest, OnlyScalarRootsHaveAnImplicitGradient) {
  const Value x = NewLeaf({2}, {2, 3});
  EXPECT_THAT(Error({x}, {x}),
              HasSubstr("grad can be implicitly created only for scalar "
                        "outputs. Got root=f64[2], gradient=None."));
  const Value one = NewLeaf({1, 1}, {2});
  EXPECT_THAT(Gradients({one}, {one}), ElementsAre(Doubles{1}));
}

TEST_F(EngineTest, GradientsMustFitTheirRoots) {
  const Value x = NewLeaf({2}, {2, 3});
  const Value wrong = NewTensor(DType::kFloat64, {2, 1}, {1, 1});
  EXPECT_EQ(Error({x}, {x}, {}, {wrong}),
            "[backward] a gradient must have its root's shape. Got "
            "root=f64[2], gradient=f64[2,1].");
  const Value integral = NewTensor(DType::kInt64, {2}, {1, 1});
  EXPECT_THAT(Error({x}, {x}, {}, {integral}),
              HasSubstr("must be floating point"));
  const Value single = NewTensor(DType::kFloat32, {2}, {1, 2});
  auto result = Backward({x}, {x}, {}, {single});
  ASSERT_TRUE(result.ok());
  EXPECT_EQ((*result)[0]->spec().dtype, DType::kFloat64);
  EXPECT_FALSE(RunBackward(sink_, {x}, {}, {x}, {}).ok());  // no gradient list
}

TEST_F(EngineTest, AFailedRuleEndsThePass) {
  // A gradient that the rule cannot use: indices out of nowhere would crash
  // the reference, so break the saved tensor's version instead, deep down.
  const Value x = NewLeaf({2}, {2, 3});
  const Value a = RunOne(sink_, OpId::exp, {x});
  Value y = a;
  for (int i = 0; i < 3; ++i) y = MulBy(y, 2);
  ++AsReference(a).storage->version;
  const int muls = sink_.count(OpId::mul);
  EXPECT_THAT(Error({Sum(y)}, {x}), HasSubstr("[exp]"));
  EXPECT_EQ(sink_.count(OpId::mul) - muls, 3);  // none after the error
}

// ---- size

TEST_F(EngineTest, DeepChainsTakeLinearTime) {
  // Quadratic time would be hours, and recursion the end of the stack.
  constexpr int kDepth = 1000000;
  const Value x = NewLeaf({}, {1});
  Value y = x;
  for (int i = 0; i < kDepth; ++i) y = Add(y, x);
  EXPECT_EQ(Gradients({y}, {x})[0][0], kDepth + 1.0);
}

TEST_F(EngineTest, AMillionNodesAreFreedWithoutRecursion) {
  const Value x = NewLeaf({}, {1});
  // sin saves its input, so that chain runs through variables as well.
  for (OpId op : {OpId::neg, OpId::sin}) {
    Value y = NewLeaf({}, {1});
    const Attrs attrs(&GetOp(op));
    for (int i = 0; i < 1000000; ++i) {
      const Value next = sink_.Alias(y);
      const RefPtr<Node> node = BeginRecord(attrs, {y});
      EndRecord(node, sink_, {next});
      y = next;
    }
    // Walked without recursion too.
    EXPECT_THAT(Gradients({Mul(y, x)}, {x}), ElementsAre(Doubles{1}));
    y.reset();
  }
}

// ---- mistakes of ours

TEST_F(EngineTest, AFailedCheckInARuleNamesItsOp) {
  const Value x = NewLeaf({2}, {1, 2});
  const Value y = Mul(x, NewTensor(DType::kFloat32, {2}, {3, 4}));
  y->GradientEdge().node->op_sequence = 7;
  const Value root = Sum(y);
  WrongSink wrong;
  BackwardOptions options;
  options.retain_graph = true;
  const absl::Status status =
      RunBackward(wrong, {root}, {nullptr}, {x}, options).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(status.message()),
              HasSubstr("a check failed in backward of mul at "
                        "autograd/engine_test.cc:"));
  EXPECT_EQ(status.GetPayload(kForwardOpPayload), absl::Cord("7"));
  // The graph and its nodes are fit for another pass.
  EXPECT_THAT(Gradients({root}, {x}), ElementsAre(ElementsAre(3, 4)));
}

}  // namespace
}  // namespace holdfast
