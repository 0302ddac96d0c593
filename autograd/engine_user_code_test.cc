// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Passes that come to code of the user's: functions, hooks, and passes inside
// their calls.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "autograd/engine.h"
#include "autograd/reference_sink.h"
#include "autograd/tape.h"
#include "ops/op_id.h"

namespace holdfast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Doubles = std::vector<double>;
using State = BackwardPass::State;

bool Never() { return false; }

Doubles Read(const Value& value) {
  return value ? AsReference(value).Read().v : Doubles();
}

class UserCodeTest : public testing::Test {
 protected:
  UserCodeTest() { options_.user_code = true; }

  Value Sum(const Value& x) { return RunOne(sink_, OpId::sum, {x}); }
  Value MulBy(const Value& x, double number) {
    return RunOne(sink_, OpId::mul, {x, nullptr}, {{"other", number}});
  }
  // An output of a function that was recorded as one node.
  Value Function(uint64_t code, const std::vector<Value>& inputs) {
    const TensorSpec& spec = inputs[0]->spec();
    auto node = MakeRef<Node>(code, "Mine", std::vector<TensorSpec>{spec});
    for (const Value& input : inputs) {
      node->edges.push_back(input->GradientEdge());
      node->input_specs.push_back(input->spec());
    }
    Value output = NewTensor(spec.dtype, spec.shape, Doubles(spec.numel()));
    output->SetHistory(std::move(node), 0);
    return output;
  }
  void Hook(const Value& value, uint64_t code) {
    const Edge& edge = value->GradientEdge();
    edge.node->EnsureUser().hooks.push_back({edge.output, code});
  }
  BackwardPass Start(const Value& root, std::vector<Value> targets) {
    return {sink_, {root}, {nullptr}, std::move(targets), options_};
  }
  State Run(BackwardPass& pass) {
    absl::StatusOr<State> state = pass.Run(Never);
    EXPECT_TRUE(state.ok()) << state.status();
    return state.ok() ? *state : State::kDone;
  }

  ReferenceSink sink_;
  BackwardOptions options_;
  const Value x_ = NewLeaf({2}, {1, 2});
};

TEST_F(UserCodeTest, AFunctionIsCalledWithItsGradient) {
  BackwardPass pass = Start(Sum(MulBy(Function(7, {x_}), 3)), {x_});
  ASSERT_EQ(Run(pass), State::kCalling);
  EXPECT_EQ(pass.call().code, 7u);
  EXPECT_EQ(pass.call().kind, UserCall::Kind::kFunction);
  ASSERT_EQ(pass.call().gradients.size(), 1u);
  EXPECT_THAT(Read(pass.call().gradients[0]), ElementsAre(3, 3));
  EXPECT_EQ(pass.called_node()->name(), "Mine");
  EXPECT_TRUE(pass.Answer({NewTensor(DType::kFloat64, {2}, {5, 6})}).ok());
  ASSERT_EQ(Run(pass), State::kDone);
  EXPECT_THAT(Read(pass.TakeResults()[0]), ElementsAre(5, 6));
}

TEST_F(UserCodeTest, NobodyIsThereToRunIt) {
  const Value y = Sum(Function(7, {x_}));
  options_.user_code = false;
  BackwardPass pass = Start(y, {x_});
  EXPECT_THAT(std::string(pass.Run(Never).status().message()),
              HasSubstr("only its client can run"));
}

TEST_F(UserCodeTest, AnswersMustFit) {
  const auto answer = [&](Values values) {
    BackwardPass pass = Start(Sum(Function(7, {x_})), {x_});
    EXPECT_EQ(Run(pass), State::kCalling);
    return std::string(pass.Answer(std::move(values)).message());
  };
  const Value long_one = NewTensor(DType::kFloat64, {3}, {1, 2, 3});
  EXPECT_THAT(answer({}), HasSubstr("(expected 1, got 0)"));
  EXPECT_THAT(answer({nullptr, nullptr}), HasSubstr("(expected 1, got 2)"));
  EXPECT_THAT(answer({long_one}), HasSubstr("invalid gradient at index 0"));
  EXPECT_EQ(answer({NewTensor(DType::kFloat32, {2}, {1, 2})}), "");
}

TEST_F(UserCodeTest, HooksRunInOrderAndMayReplace) {
  const Value y = MulBy(x_, 2);
  Hook(y, 1);
  Hook(y, 2);
  BackwardPass pass = Start(Sum(y), {x_, y});
  ASSERT_EQ(Run(pass), State::kCalling);
  EXPECT_EQ(pass.call().code, 1u);
  EXPECT_EQ(pass.call().kind, UserCall::Kind::kHook);
  EXPECT_TRUE(pass.Answer({NewTensor(DType::kFloat64, {2}, {8, 9})}).ok());
  ASSERT_EQ(Run(pass), State::kCalling);
  EXPECT_EQ(pass.call().code, 2u);
  EXPECT_THAT(Read(pass.call().gradients[0]), ElementsAre(8, 9));
  EXPECT_TRUE(pass.Answer({nullptr}).ok());  // as it is
  ASSERT_EQ(Run(pass), State::kDone);
  const std::vector<Value> results = pass.TakeResults();
  EXPECT_THAT(Read(results[0]), ElementsAre(16, 18));
  EXPECT_THAT(Read(results[1]), ElementsAre(8, 9));
}

TEST_F(UserCodeTest, AHooksGradientKeepsItsShape) {
  const Value y = MulBy(x_, 2);
  Hook(y, 1);
  for (const Values& wrong :
       {Values{NewTensor(DType::kFloat64, {1}, {1})}, Values{},
        Values{NewTensor(DType::kFloat32, {2}, {1, 1})}}) {
    options_.retain_graph = true;
    BackwardPass pass = Start(Sum(y), {x_});
    ASSERT_EQ(Run(pass), State::kCalling);
    EXPECT_FALSE(pass.Answer(wrong).ok());
  }
}

TEST_F(UserCodeTest, NoneReachesNothingAndZerosReachTheirTargets) {
  const Value w = NewLeaf({2}, {3, 4});
  const Value far = MulBy(w, 2);
  BackwardPass none = Start(Sum(Function(7, {x_, far})), {x_, w});
  ASSERT_EQ(Run(none), State::kCalling);
  EXPECT_TRUE(
      none.Answer({NewTensor(DType::kFloat64, {2}, {1, 1}), nullptr}).ok());
  ASSERT_EQ(Run(none), State::kDone);
  EXPECT_THAT(none.TakeUnused(), ElementsAre(false, true));
  EXPECT_FALSE(none.TakeResults()[1]);

  // The same, where a rule says zero on another path.
  const Value both = RunOne(sink_, OpId::add,
                            {Function(7, {x_, MulBy(w, 2)}),
                             RunOne(sink_, OpId::floor, {MulBy(w, 2)})});
  BackwardPass zero = Start(Sum(both), {x_, w});
  ASSERT_EQ(Run(zero), State::kCalling);
  EXPECT_TRUE(zero.Answer({nullptr, nullptr}).ok());
  ASSERT_EQ(Run(zero), State::kDone);
  EXPECT_THAT(zero.TakeUnused(), ElementsAre(true, false));
  EXPECT_THAT(Read(zero.TakeResults()[1]), ElementsAre(0, 0));
}

TEST_F(UserCodeTest, PackedValuesAreAskedFor) {
  options_.retain_graph = true;
  const Value y = RunOne(sink_, OpId::mul, {x_, x_});
  const RefPtr<Node>& node = y->GradientEdge().node;
  node->Pack(5);
  ASSERT_TRUE(node->packed());
  EXPECT_FALSE(node->saved_inputs[0].value);
  const Value root = Sum(y);
  for (int time = 0; time < 2; ++time) {
    BackwardPass pass = Start(root, {x_});
    ASSERT_EQ(Run(pass), State::kCalling);
    EXPECT_EQ(pass.call().code, 5u);
    EXPECT_EQ(pass.call().kind, UserCall::Kind::kUnpack);
    EXPECT_TRUE(pass.call().gradients.empty());
    EXPECT_EQ(pass.called_node().get(), nullptr);
    const Value first = NewTensor(DType::kFloat64, {2}, {3, 4});
    const Value second = NewTensor(DType::kFloat32, {2}, {10, 20});
    EXPECT_TRUE(pass.Answer({first, second, nullptr}).ok());
    ASSERT_EQ(Run(pass), State::kDone);
    EXPECT_THAT(Read(pass.TakeResults()[0]), ElementsAre(13, 24));
    EXPECT_FALSE(node->saved_inputs[0].value);
  }
  for (const Values& wrong :
       {Values{}, Values{x_, nullptr},
        Values{x_, NewTensor(DType::kFloat64, {1}, {1})}}) {
    BackwardPass pass = Start(root, {x_});
    ASSERT_EQ(Run(pass), State::kCalling);
    EXPECT_THAT(std::string(pass.Answer(wrong).message()),
                HasSubstr("[mul] an unpack hook must give back"));
  }
  options_.retain_graph = false;
  BackwardPass last = Start(root, {x_});
  ASSERT_EQ(Run(last), State::kCalling);
  EXPECT_TRUE(last.Answer({x_, x_}).ok());
  EXPECT_FALSE(node->packed());
  BackwardPass again = Start(root, {x_});
  EXPECT_THAT(std::string(again.Run(Never).status().message()),
              HasSubstr("a second time"));
}

TEST_F(UserCodeTest, NothingSavedIsNothingPacked) {
  const Value y = Sum(x_);
  y->GradientEdge().node->Pack(5);
  EXPECT_FALSE(y->GradientEdge().node->packed());
}

TEST_F(UserCodeTest, NobodyIsThereToUnpack) {
  const Value y = RunOne(sink_, OpId::mul, {x_, x_});
  y->GradientEdge().node->Pack(5);
  options_.user_code = false;
  BackwardPass pass = Start(Sum(y), {x_});
  EXPECT_THAT(std::string(pass.Run(Never).status().message()),
              HasSubstr("the graph holds packed tensors"));
}

TEST_F(UserCodeTest, APassInsideACallOfAnother) {
  // The inner one runs over nodes that the outer one is in the middle of.
  options_.retain_graph = true;
  const Value y = RunOne(sink_, OpId::mul, {x_, x_});
  Hook(y, 1);
  const Value root = Sum(RunOne(sink_, OpId::mul, {y, y}));  // x^4
  BackwardPass outer = Start(root, {x_});
  ASSERT_EQ(Run(outer), State::kCalling);
  {
    BackwardPass inner = Start(root, {x_, y});
    ASSERT_EQ(Run(inner), State::kCalling);  // the same hook
    EXPECT_TRUE(inner.Answer({nullptr}).ok());
    ASSERT_EQ(Run(inner), State::kDone);
    const std::vector<Value> results = inner.TakeResults();
    EXPECT_THAT(Read(results[0]), ElementsAre(4, 32));
    EXPECT_THAT(Read(results[1]), ElementsAre(2, 8));
  }
  EXPECT_TRUE(outer.Answer({nullptr}).ok());
  ASSERT_EQ(Run(outer), State::kDone);
  EXPECT_THAT(Read(outer.TakeResults()[0]), ElementsAre(4, 32));
}

TEST_F(UserCodeTest, PassesNestDeeply) {
  const Value y = MulBy(x_, 2);
  Hook(y, 1);
  const Value root = Sum(y);
  options_.retain_graph = true;
  std::vector<std::unique_ptr<BackwardPass>> passes;
  for (int i = 0; i < 1000; ++i) {
    passes.push_back(std::make_unique<BackwardPass>(
        sink_, std::vector<Value>{root}, std::vector<Value>{nullptr},
        std::vector<Value>{x_}, options_));
    ASSERT_EQ(Run(*passes.back()), State::kCalling);
  }
  while (!passes.empty()) {  // inner ones first
    ASSERT_TRUE(passes.back()->Answer({nullptr}).ok());
    ASSERT_EQ(Run(*passes.back()), State::kDone);
    ASSERT_THAT(Read(passes.back()->TakeResults()[0]), ElementsAre(2, 2));
    passes.pop_back();
  }
}

TEST_F(UserCodeTest, APassIsPutAsideAfterAnyNode) {
  BackwardPass pass = Start(Sum(MulBy(MulBy(x_, 2), 3)), {x_});
  int turns = 0;
  while (true) {
    absl::StatusOr<State> state = pass.Run([] { return true; });
    ASSERT_TRUE(state.ok());
    if (*state == State::kDone) break;
    ++turns;
  }
  EXPECT_GE(turns, 3);  // sum, mul, mul
  EXPECT_THAT(Read(pass.TakeResults()[0]), ElementsAre(6, 6));
}

TEST_F(UserCodeTest, AMarkThatIsTakenAwayAndPutBack) {
  const Value before = Sum(MulBy(x_, 2));
  x_->SetLeafRequiresGrad(false);
  EXPECT_FALSE(x_->GradientEdge());
  EXPECT_FALSE(MulBy(x_, 2)->requires_grad());
  x_->SetLeafRequiresGrad(true);
  BackwardPass pass = Start(before, {x_});  // recorded under the first mark
  ASSERT_EQ(Run(pass), State::kDone);
  EXPECT_THAT(Read(pass.TakeResults()[0]), ElementsAre(2, 2));
}

}  // namespace
}  // namespace holdfast
