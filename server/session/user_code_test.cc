// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Functions and hooks of a client's: the calls that a good one gets, and what
// a bad one may send instead of an answer.
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/device.h"
#include "ops/op_id.h"
#include "proto/limits.h"
#include "server/session/scripted_session.h"
#include "server/session/session.h"

namespace holdfast {
namespace {

using testing::HasSubstr;
using V = std::vector<float>;

class UserCodeTest : public SessionTest {
 protected:
  // Handle 1: a leaf. Handle 2: a result of it, with a hook. Handle 3: its sum.
  void RecordHook() {
    Put(1, {1, 2, 3});
    v1::SetRequiresGrad* mark = Add()->mutable_set_requires_grad();
    mark->set_handle(1);
    mark->set_requires_grad(true);
    Op(OpId::mul, {1, 1}, 2)->set_record(true);
    Op(OpId::sum, {2}, 3)->set_record(true);
    v1::RegisterHook* hook = Add()->mutable_register_hook();
    hook->set_tensor(2);
    hook->set_hook(9);
  }
  void Backward(uint64_t id, uint64_t root, uint64_t gradient) {
    v1::Backward* backward = Add()->mutable_backward();
    backward->set_id(id);
    backward->set_retain_graph(true);
    backward->add_roots(root);
    backward->add_gradients(0);
    v1::Backward::Target* target = backward->add_targets();
    target->set_tensor(1);
    target->set_grad(gradient);
  }
  v1::BackwardAnswer* Answer(std::vector<uint64_t> gradients) {
    v1::BackwardAnswer* answer = Add()->mutable_backward_answer();
    for (uint64_t gradient : gradients) answer->add_gradients(gradient);
    return answer;
  }
  v1::BackwardCall LastCall() {
    return wire_.events.empty() ? v1::BackwardCall()
                                : wire_.events.back().call();
  }
};

TEST_F(UserCodeTest, AHookIsCalledAndMayReplaceTheGradient) {
  RecordHook();
  Backward(1, 3, 4);
  Deliver();
  const v1::BackwardCall call = LastCall();
  EXPECT_EQ(call.id(), 1u);
  EXPECT_EQ(call.code(), 9u);
  ASSERT_EQ(call.gradients_size(), 1);
  EXPECT_EQ(Values(call.gradients(0).handle()), (V{1, 1, 1}));
  Put(5, {1, 10, 100});
  Answer({5});
  Deliver();
  EXPECT_TRUE(LastCall().done());
  EXPECT_FALSE(LastCall().has_status());
  EXPECT_EQ(Values(4), (V{2, 40, 600}));
}

TEST_F(UserCodeTest, WhatAnOpSavesIsWithTheClient) {
  Put(1, {1, 2, 3});
  v1::SetRequiresGrad* mark = Add()->mutable_set_requires_grad();
  mark->set_handle(1);
  mark->set_requires_grad(true);
  Add()->mutable_pack_saved()->set_code(9);
  Op(OpId::mul, {1, 1}, 2)->set_record(true);
  // Of the next op alone.
  Op(OpId::mul, {2, 2}, 3)->set_record(true);
  Op(OpId::sum, {3}, 4)->set_record(true);
  Backward(1, 4, 5);
  Deliver();
  EXPECT_EQ(LastCall().code(), 9u);
  EXPECT_EQ(LastCall().gradients_size(), 0);
  Put(6, {1, 10, 100});
  Answer({6, 6});
  Deliver();
  EXPECT_TRUE(LastCall().done());
  // 2 (x x) times 2 of what was unpacked.
  EXPECT_EQ(Values(5), (V{4, 160, 3600}));
}

TEST_F(UserCodeTest, AnOpThatDoesNotRunPacksNothing) {
  Put(1, {1, 2, 3});
  v1::SetRequiresGrad* mark = Add()->mutable_set_requires_grad();
  mark->set_handle(1);
  mark->set_requires_grad(true);
  Put(2, {1, 2});
  Add()->mutable_pack_saved()->set_code(9);
  Op(OpId::mul, {1, 2}, 3)->set_record(true);  // shapes differ
  Op(OpId::mul, {3, 1}, 4)->set_record(true);  // and so has no input
  Add()->mutable_pack_saved()->set_code(9);
  Op(OpId::mul, {3, 1}, 5)->set_record(true);
  Op(OpId::mul, {1, 1}, 6)->set_record(true);
  Op(OpId::sum, {6}, 7)->set_record(true);
  Backward(1, 7, 8);
  Deliver();
  EXPECT_TRUE(LastCall().done());
  EXPECT_EQ(Values(8), (V{2, 4, 6}));
}

TEST_F(UserCodeTest, AFailedAnswerFailsItsBackwardAlone) {
  RecordHook();
  Backward(1, 3, 4);
  Deliver();
  v1::Status* status = Answer({})->mutable_status();
  status->set_code(10);
  status->set_message("the code raised");
  Deliver();
  EXPECT_TRUE(LastCall().done());
  EXPECT_THAT(LastCall().status().message(), HasSubstr("the code raised"));
  EXPECT_TRUE(Read(4).has_status());
  EXPECT_EQ(Values(1), (V{1, 2, 3}));
}

TEST_F(UserCodeTest, GradientsThatWereNotMadeStartAnewOnceTold) {
  RecordHook();
  Backward(1, 3, 4);
  Deliver();
  v1::Status* status = Answer({})->mutable_status();
  status->set_code(10);
  status->set_message("the code raised");
  Deliver();
  const v1::ReadResult told = Read(4);
  ASSERT_EQ(told.lost_size(), 1);
  EXPECT_EQ(told.lost(0), 4u);
  EXPECT_EQ(Read(4).lost_size(), 0);  // once
  Backward(2, 3, 4);
  batch_.mutable_commands(0)
      ->mutable_backward()
      ->mutable_targets(0)
      ->set_accumulate(true);
  Deliver();
  Answer({0});
  EXPECT_EQ(Values(4), (V{2, 4, 6}));
}

// Answers that do not fit fail the backward; the session goes on.
TEST_F(UserCodeTest, WrongAnswersFailTheirBackward) {
  RecordHook();
  uint64_t handle = 10;
  Put(++handle, {1, 2});
  const uint64_t too_short = handle;
  for (const std::vector<uint64_t>& wrong : std::vector<std::vector<uint64_t>>{
           {}, {0, 0}, {too_short}, std::vector<uint64_t>(5000, 0)}) {
    const uint64_t gradient = ++handle;
    Backward(gradient, 3, gradient);
    Deliver();
    ASSERT_FALSE(LastCall().done());
    Answer(wrong);
    Deliver();
    EXPECT_TRUE(LastCall().done());
    EXPECT_TRUE(LastCall().has_status());
    EXPECT_TRUE(Read(gradient).has_status());
  }
  EXPECT_FALSE(session_->ended());
  EXPECT_EQ(Values(1), (V{1, 2, 3}));
}

TEST_F(UserCodeTest, AThousandBackwardsInsideEachOther) {
  RecordHook();
  Deliver();
  // Each answers the previous call with another backward.
  for (uint64_t i = 1; i <= 1000; ++i) {
    Backward(i, 3, 3 + i);
    Deliver();
  }
  EXPECT_TRUE(LastCall().done());
  EXPECT_THAT(LastCall().status().message(), HasSubstr("at most 256"));
  EXPECT_FALSE(session_->ended());
  for (int i = 0; i < 256; ++i) {
    Answer({0});
    Deliver();
    ASSERT_TRUE(LastCall().done());
  }
  EXPECT_EQ(LastCall().id(), 1u);
  EXPECT_EQ(Values(4), (V{2, 4, 6}));
}

TEST_F(UserCodeTest, ASessionThatEndsInTheMiddleLeavesNothing) {
  RecordHook();
  Backward(1, 3, 4);
  Backward(2, 3, 5);
  Deliver();
  ASSERT_FALSE(LastCall().done());
  Add()->mutable_read()->set_handle(77);
  Deliver();
  EXPECT_THAT(SessionError(), HasSubstr("unknown handle 77"));
  EXPECT_EQ(session_->Stats().bytes_in_use(), 0u);
}

// Each ends the session, with a reason. `in_call`: while a hook is called.
struct Breach {
  const char* name;
  const char* message;
  bool in_call;
  void (*fill)(v1::Command*);
};

class UserCodeBreachTest : public UserCodeTest,
                           public testing::WithParamInterface<Breach> {};

TEST_P(UserCodeBreachTest, EndsTheSessionWithAReason) {
  RecordHook();
  if (GetParam().in_call) Backward(1, 3, 4);
  Deliver();
  GetParam().fill(Add());
  Deliver();
  EXPECT_THAT(SessionError(), HasSubstr(GetParam().message));
  EXPECT_TRUE(session_->ended());
  EXPECT_EQ(session_->Stats().bytes_in_use(), 0u);
}

INSTANTIATE_TEST_SUITE_P(
    All, UserCodeBreachTest,
    testing::Values(
        Breach{"FunctionWithoutNumber", "a function needs a number", false,
               [](v1::Command* c) {
                 c->mutable_record_function()->add_inputs(1);
               }},
        Breach{"FunctionOfAForeignInput", "unknown handle 99", false,
               [](v1::Command* c) {
                 c->mutable_record_function()->set_function(1);
                 c->mutable_record_function()->add_inputs(99);
               }},
        Breach{"FunctionOfAForeignOutput", "unknown handle 98", false,
               [](v1::Command* c) {
                 c->mutable_record_function()->set_function(1);
                 c->mutable_record_function()->add_outputs()->set_handle(98);
               }},
        Breach{"FunctionOfTooMany", "at most 1048576 tensors", false,
               [](v1::Command* c) {
                 c->mutable_record_function()->set_function(1);
                 for (int i = 0; i < 1100000; ++i) {
                   c->mutable_record_function()->add_inputs(0);
                 }
               }},
        Breach{"FunctionOfALongName", "a function needs", false,
               [](v1::Command* c) {
                 c->mutable_record_function()->set_function(1);
                 c->mutable_record_function()->set_name(std::string(5000, 'x'));
               }},
        Breach{
            "HookWithoutNumber", "a hook needs a number", false,
            [](v1::Command* c) { c->mutable_register_hook()->set_tensor(2); }},
        Breach{"HookOnAForeignTensor", "unknown handle 99", false,
               [](v1::Command* c) {
                 c->mutable_register_hook()->set_tensor(99);
                 c->mutable_register_hook()->set_hook(1);
               }},
        Breach{
            "RestoreOutsideACall", "restore_output outside", false,
            [](v1::Command* c) { c->mutable_restore_output()->set_handle(2); }},
        Breach{
            "RestoreInAHook", "restore_output outside", true,
            [](v1::Command* c) { c->mutable_restore_output()->set_handle(2); }},
        Breach{"AnswerToNoCall", "an answer to no call", false,
               [](v1::Command* c) {
                 c->mutable_backward_answer()->add_gradients(0);
               }},
        Breach{"AnswerWithAForeignTensor", "unknown handle 99", true,
               [](v1::Command* c) {
                 c->mutable_backward_answer()->add_gradients(99);
               }},
        Breach{"AnswerWithTooMany", "more than 1048576", true,
               [](v1::Command* c) {
                 for (int i = 0; i < 1100000; ++i) {
                   c->mutable_backward_answer()->add_gradients(0);
                 }
               }},
        Breach{"ReleaseOfAServersHandle", "release of unknown handle", true,
               [](v1::Command* c) { c->add_release((1ull << 63) + 500); }}),
    [](const auto& info) { return std::string(info.param.name); });

TEST_F(UserCodeTest, FunctionsOfWhatNeedsNoGradient) {
  Put(1, {1, 2});
  Put(2, {3, 4});
  v1::RecordFunction* record = Add()->mutable_record_function();
  record->set_function(5);
  record->set_name("Mine");
  record->add_inputs(1);
  record->add_inputs(0);
  record->add_outputs()->set_handle(2);
  record->add_outputs()->set_handle(0);
  Deliver();
  EXPECT_FALSE(session_->ended());
  EXPECT_EQ(Values(2), (V{3, 4}));
}

TEST_F(UserCodeTest, ATensorHasOnlySoManyHooks) {
  RecordHook();
  for (size_t i = 0; i <= kMaxHooks; ++i) {
    v1::RegisterHook* hook = Add()->mutable_register_hook();
    hook->set_tensor(2);
    hook->set_hook(10 + i);
  }
  Deliver();
  EXPECT_FALSE(session_->ended());
  EXPECT_THAT(Read(2).status().message(),
              HasSubstr("a tensor has at most 65536 hooks"));
}

}  // namespace
}  // namespace holdfast
