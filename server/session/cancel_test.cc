// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Commands that a client calls back (CancelRequest), by batches and without a
// clock: what is dropped, what stays, and whose numbers count.
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/op_id.h"
#include "server/session/scripted_session.h"
#include "server/session/session.h"

namespace holdfast {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

using V = std::vector<float>;

constexpr int kCancelled = static_cast<int>(absl::StatusCode::kCancelled);

class CancelTest : public SessionTest {
 protected:
  absl::Status Cancel(uint64_t through, const std::string& where = "a.py:3") {
    v1::CancelRequest request;
    request.set_session_token(session_->token());
    request.set_through(through);
    request.set_where(where);
    return session_->Cancel(request);
  }
  void AddInPlace(uint64_t target, uint64_t other) {
    Op(OpId::add, {target, other}, 0)->set_inplace(true);
  }
  void Recorded(uint64_t handle) {
    v1::SetRequiresGrad* mark = Add()->mutable_set_requires_grad();
    mark->set_handle(handle);
    mark->set_requires_grad(true);
  }
  void AddBackward(uint64_t root, uint64_t leaf, uint64_t gradient,
                   bool accumulate = false) {
    v1::Backward* backward = Add()->mutable_backward();
    backward->add_roots(root);
    backward->add_gradients(0);
    v1::Backward::Target* target = backward->add_targets();
    target->set_tensor(leaf);
    target->set_grad(gradient);
    target->set_accumulate(accumulate);
  }
  // What the client sends behind a cancellation.
  v1::ReadResult Progress() {
    v1::Read* read = Add()->mutable_read();
    read->set_id(++read_id_);
    read->set_progress(true);
    Deliver();
    return wire_.events.back().read();
  }
};

TEST_F(CancelTest, DropsWhatIsNumberedAndNothingBehindIt) {
  Put(1, {1, 2, 3});         // 1
  Op(OpId::add, {1, 1}, 2);  // 2
  Put(3, {4});               // 3: its bytes are here
  Op(OpId::add, {2, 2}, 4);  // 4
  Op(OpId::add, {1, 1}, 5);  // 5
  ASSERT_TRUE(Cancel(4).ok());
  Deliver();
  EXPECT_EQ(session_->Stats().ops(), 1u);
  for (const uint64_t handle : {2, 4}) {
    const v1::ReadResult result = Read(handle);
    EXPECT_EQ(result.status().code(), kCancelled);
    EXPECT_EQ(result.status().message(), "[add] cancelled at a.py:3");
    EXPECT_EQ(result.status().op_sequence(), handle);
  }
  EXPECT_EQ(Values(3), (V{4}));
  EXPECT_EQ(Values(5), (V{2, 4, 6}));
}

TEST_F(CancelTest, WhatComesLaterIsNotDroppedThoughItTravelsBefore) {
  Put(1, {1});
  Op(OpId::add, {1, 1}, 2);
  Deliver();
  ASSERT_TRUE(Cancel(2).ok());  // of what is done: nothing
  Op(OpId::add, {2, 2}, 3);
  EXPECT_EQ(Values(3), (V{4}));
  EXPECT_EQ(Progress().cancelled(), 0u);
}

TEST_F(CancelTest, AnEarlierNumberBringsNothingBack) {
  Put(1, {1});
  Op(OpId::add, {1, 1}, 2);
  ASSERT_TRUE(Cancel(2).ok());
  ASSERT_TRUE(Cancel(1, "elsewhere").ok());
  EXPECT_EQ(Read(2).status().message(), "[add] cancelled at a.py:3");
}

TEST_F(CancelTest, TargetsAreWholeForWhatComesLater) {
  Put(1, {1});       // 1
  AddInPlace(1, 1);  // 2
  AddInPlace(1, 1);  // 3
  Deliver();
  AddInPlace(1, 1);  // 4
  AddInPlace(1, 1);  // 5
  ASSERT_TRUE(Cancel(5).ok());
  // This one came before, and must not show what it did not ask for.
  EXPECT_EQ(Read(1).status().code(), kCancelled);
  const v1::ReadResult told = Progress();
  EXPECT_FALSE(told.has_status());
  EXPECT_EQ(told.cancelled(), 2u);
  EXPECT_EQ(Values(1), (V{4}));
  AddInPlace(1, 1);
  EXPECT_EQ(Values(1), (V{8}));
}

TEST_F(CancelTest, ALaterOpNeedsNoProgressRead) {
  Put(1, {1});
  AddInPlace(1, 1);
  ASSERT_TRUE(Cancel(2).ok());
  Op(OpId::add, {1, 1}, 2);
  EXPECT_EQ(Values(2), (V{2}));
}

TEST_F(CancelTest, AnErrorOfAnOpThatRanIsTheOneToTell) {
  Put(1, {1, 2});
  Put(2, {1, 2, 3});
  Op(OpId::add, {1, 2}, 3);  // 3: shapes do not fit
  Op(OpId::add, {3, 3}, 4);  // 4
  Deliver();
  Op(OpId::add, {3, 3}, 5);  // 5
  ASSERT_TRUE(Cancel(5).ok());
  const v1::ReadResult result = Read(5);
  EXPECT_NE(result.status().code(), kCancelled);
  EXPECT_EQ(result.status().op_sequence(), 3u);
}

TEST_F(CancelTest, ABackwardIsDroppedAndItsGradientsAreTold) {
  Put(1, {2});  // 1
  Recorded(1);
  Op(OpId::mul, {1, 1}, 2)->set_record(true);  // 2
  Deliver();
  AddBackward(2, 1, 3);  // 3
  ASSERT_TRUE(Cancel(3).ok());
  const v1::ReadResult told = Progress();
  EXPECT_THAT(told.lost(), ElementsAre(3));
  EXPECT_EQ(told.cancelled(), 1u);
  EXPECT_EQ(Progress().lost_size(), 0);  // once
  // The graph is as it was. What was not made starts anew.
  AddBackward(2, 1, 3, /*accumulate=*/true);
  EXPECT_EQ(Values(3), (V{4}));
}

TEST_F(CancelTest, ABackwardUnderWayEnds) {
  Put(1, {2});
  Recorded(1);
  uint64_t last = 1;
  for (int i = 0; i < 8; ++i, ++last) {
    Op(OpId::neg, {last}, last + 1)->set_record(true);
  }
  Deliver();
  AddBackward(last, 1, 100);
  batch_.set_sequence(++sequence_);
  wire_.batches.push_back(batch_);
  batch_.Clear();
  session_->RunSome({1, absl::ZeroDuration()});  // it has begun, and no more
  ASSERT_TRUE(session_->HasWork());
  ASSERT_TRUE(Cancel(session_->Stats().op_sequence()).ok());
  EXPECT_THAT(Progress().lost(), ElementsAre(100));
  EXPECT_EQ(Read(100).status().message(), "[backward] cancelled at a.py:3");
}

TEST_F(CancelTest, AKeepOfWhatIsDroppedLeavesWhatWasKept) {
  Put(1, {1});
  v1::Keep* keep = Add()->mutable_keep();
  keep->set_name("x");
  keep->set_handle(1);
  Op(OpId::add, {1, 1}, 2);
  keep = Add()->mutable_keep();
  keep->set_name("x");
  keep->set_handle(2);
  ASSERT_TRUE(Cancel(2).ok());
  Deliver();
  v1::HelloReply reply;
  session_->FillHello({}, /*attach=*/false, /*local=*/false, &reply);
  ASSERT_EQ(reply.kept_size(), 1);
  EXPECT_EQ(reply.kept(0).handle(), 1u);
}

TEST_F(CancelTest, AnotherClientsNumbersAreItsOwn) {
  Put(1, {1});
  Deliver();
  ASSERT_TRUE(Cancel(1000).ok());
  v1::HelloReply reply;
  session_->FillHello({}, /*attach=*/true, /*local=*/false, &reply);
  sequence_ = 0;
  Put(11, {1});
  Op(OpId::add, {11, 11}, 12);
  EXPECT_EQ(Values(12), (V{2}));
  v1::CancelRequest request;
  request.set_session_token("of another client");
  request.set_through(1000);
  EXPECT_THAT(session_->Cancel(request).message(), HasSubstr("took over"));
  Op(OpId::add, {12, 12}, 13);
  EXPECT_EQ(Values(13), (V{4}));
}

TEST_F(CancelTest, ProgressTellsNoFailure) {
  Put(1, {1, 2});
  Put(2, {1, 2, 3});
  Op(OpId::add, {1, 2}, 3);
  const v1::ReadResult told = Progress();
  EXPECT_FALSE(told.has_status());
  EXPECT_TRUE(told.has_device_seconds());
  EXPECT_TRUE(Read(0).has_status());  // this one does
}

}  // namespace
}  // namespace holdfast
