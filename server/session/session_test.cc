// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Sessions driven by batches, without a transport: what a client may send,
// what comes back, and what a bad one costs.
#include "server/session/session.h"

#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "kernels/device.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"
#include "server/session/scripted_session.h"

namespace holdfast {
namespace {

using testing::HasSubstr;

using V = std::vector<float>;

TEST_F(SessionTest, RunsOpsAndReads) {
  Put(1, {1, 2, 3});
  Op(OpId::add, {1, 1}, 2);
  EXPECT_EQ(Values(2), (V{2, 4, 6}));
}

TEST_F(SessionTest, ASliceThatIsOverEndsAfterOneCommand) {
  Put(1, {1, 2, 3});
  Deliver();
  for (uint64_t output = 2; output < 10; ++output) Op(OpId::exp, {1}, output);
  batch_.set_sequence(++sequence_);
  wire_.batches.push_back(batch_);
  batch_.Clear();
  session_->RunSome({1 << 20, absl::ZeroDuration()});
  EXPECT_EQ(session_->Stats().ops(), 1u);
}

TEST_F(SessionTest, AnOpOfFarMoreElementsThanMemoryIsRefused) {
  session_->set_op_seconds(600);
  Put(1, {1});
  v1::Attr* size = Op(OpId::expand, {1}, 2)->add_attrs();
  size->set_slot(0);
  size->mutable_ints()->add_values(int64_t{1} << 40);
  Op(OpId::sum, {2}, 3);
  const v1::ReadResult result = Read(3);
  EXPECT_EQ(result.status().op(), "sum");
  EXPECT_THAT(result.status().message(), HasSubstr("at most 600 s"));
  EXPECT_THAT(result.status().message(), HasSubstr("f32[1099511627776]"));
  EXPECT_EQ(Values(1), (V{1}));
}

TEST_F(SessionTest, ABatchOfEmptyMatricesCostsNoLoop) {
  v1::Put* put = Add()->mutable_put();
  put->set_handle(1);
  put->mutable_spec()->set_dtype(v1::DTYPE_FLOAT32);
  for (const int64_t dim : {int64_t{1} << 40, int64_t{0}, int64_t{0}}) {
    put->mutable_spec()->add_shape(dim);
  }
  put->set_data("");
  Op(OpId::linalg_cholesky, {1}, 2);
  EXPECT_FALSE(Read(2).has_status());
}

TEST_F(SessionTest, ReleasedMemoryIsFreedAtOnce) {
  Put(1, V(1 << 20, 1.f));
  Deliver();
  EXPECT_GE(session_->Stats().bytes_in_use(), 4u << 20);
  Add()->add_release(1);
  Deliver();
  EXPECT_EQ(session_->Stats().bytes_in_use(), 0u);
}

TEST_F(SessionTest, DependentsInheritTheFirstFailure) {
  Put(1, {1, 2, 3});
  Put(2, {1, 2});
  Op(OpId::add, {1, 2}, 3);  // the shapes differ
  Op(OpId::mul, {3, 3}, 4);
  Op(OpId::exp, {4}, 5);
  const v1::ReadResult result = Read(5);
  EXPECT_EQ(result.status().op(), "add");
  EXPECT_EQ(result.status().op_sequence(), 3u);
  EXPECT_THAT(result.status().message(), HasSubstr("f32[3]"));
  EXPECT_EQ(Values(1), (V{1, 2, 3}));  // the session goes on
}

TEST_F(SessionTest, FailedInplaceOpRestoresItsTargetOnceReported) {
  Put(1, {1, 2, 3});
  v1::OpCall* call = Op(OpId::add, {1, 0}, 0);
  call->set_inplace(true);
  call->add_attrs()->set_slot(1);  // `other` must be a number, not None
  call->mutable_attrs(0)->set_none(true);
  EXPECT_TRUE(Read(1).has_status());
  EXPECT_EQ(Values(1), (V{1, 2, 3}));
}

TEST_F(SessionTest, SynchronisationTellsOfUnseenFailures) {
  Put(1, {1, 2, 3});
  Put(2, {1, 2});
  Op(OpId::add, {1, 2}, 3);
  EXPECT_EQ(Read(0).status().op(), "add");
  EXPECT_FALSE(Read(0).has_status());
}

TEST_F(SessionTest, BackwardStoresGradients) {
  Put(1, {1, 2, 3});
  Add()->mutable_set_requires_grad()->set_handle(1);
  batch_.mutable_commands(1)->mutable_set_requires_grad()->set_requires_grad(
      true);
  Op(OpId::mul, {1, 1}, 2)->set_record(true);
  Op(OpId::sum, {2}, 3)->set_record(true);
  v1::Backward* backward = Add()->mutable_backward();
  backward->add_roots(3);
  backward->add_gradients(0);
  v1::Backward::Target* target = backward->add_targets();
  target->set_tensor(1);
  target->set_grad(4);
  EXPECT_EQ(Values(4), (V{2, 4, 6}));
}

TEST_F(SessionTest, ABatchResentIsAppliedOnce) {
  Put(1, {1});
  Deliver();
  v1::OpCall* call = Op(OpId::add, {1, 1}, 0);
  call->set_inplace(true);
  const v1::Batch again = batch_;
  Deliver();
  v1::Batch resent = again;
  resent.set_sequence(2);
  wire_.batches.push_back(resent);
  session_->RunSome({100});
  EXPECT_EQ(Values(1), (V{2}));
}

TEST_F(SessionTest, AForkedProcessCopiesFromItsParentsSession) {
  Put(1, {1, 2, 3});
  Deliver();
  const std::shared_ptr<Session> parent = session_;
  Session::Options options;
  options.find_session = [&](const std::string& token) {
    return token == "secret" ? parent : nullptr;
  };
  Open(options);
  sequence_ = 0;
  const auto inherit = [&](uint64_t output, const char* token, uint64_t handle,
                           uint64_t after, int size) {
    v1::Put* put = Add()->mutable_put();
    put->set_handle(output);
    put->mutable_spec()->set_dtype(v1::DTYPE_FLOAT32);
    put->mutable_spec()->add_shape(size);
    put->mutable_inherited()->set_session_token(token);
    put->mutable_inherited()->set_handle(handle);
    put->mutable_inherited()->set_op_sequence(after);
  };
  inherit(1, "secret", 1, 1, 3);
  Op(OpId::add, {1, 1}, 0)->set_inplace(true);
  EXPECT_EQ(Values(1), (V{2, 4, 6}));
  inherit(2, "guess", 1, 1, 3);
  EXPECT_THAT(Read(2).status().message(), HasSubstr("must keep its session"));
  inherit(3, "secret", 7, 1, 3);
  EXPECT_THAT(Read(3).status().message(), HasSubstr("released since"));
  inherit(4, "secret", 1, 2, 3);  // an op that has not come yet
  EXPECT_EQ(Read(4).status().code(),
            static_cast<int>(absl::StatusCode::kUnavailable));
  inherit(5, "secret", 1, 1, 4);
  EXPECT_THAT(Read(5).status().message(), HasSubstr("instead of f32[4]"));
  // The parent's is as it was; when it has ended, that is said.
  parent->End(absl::OkStatus());
  inherit(6, "secret", 1, 1, 3);
  EXPECT_THAT(Read(6).status().message(), HasSubstr("It has ended"));
  EXPECT_EQ(Values(1), (V{2, 4, 6}));
}

TEST_F(SessionTest, AMissingBatchEndsTheSession) {
  sequence_ = 5;
  Put(1, {1});
  Deliver();
  EXPECT_THAT(SessionError(), HasSubstr("batch 6 came after batch 0"));
  EXPECT_TRUE(session_->ended());
  EXPECT_TRUE(wire_.closed);
}

TEST_F(SessionTest, EventsNotReceivedAreSentAgain) {
  Put(1, {7});
  wire_.room = 0;  // the reply does not get out
  EXPECT_EQ(Read(1).id(), 0u);
  ASSERT_NE(session_->TakeConnection(nullptr), nullptr);
  v1::HelloRequest hello;
  v1::HelloReply reply;
  session_->FillHello(hello, /*attach=*/false, /*local=*/false, &reply);
  EXPECT_EQ(reply.applied_batch(), 1u);
  Connect();
  ASSERT_EQ(wire_.events.size(), 1u);
  EXPECT_EQ(wire_.events[0].sequence(), 1u);
  EXPECT_EQ(wire_.events[0].read().id(), 1u);
}

TEST_F(SessionTest, ABatchCutInTheMiddleIsAppliedOnce) {
  Put(1, {1});
  for (int i = 0; i < 10; ++i) {
    Op(OpId::add, {1, 1}, 0)->set_inplace(true);
  }
  batch_.set_sequence(1);
  const v1::Batch whole = batch_;
  wire_.batches.push_back(whole);
  session_->RunSome({3});
  // The cut does not wait for the rest, which may be minutes of work.
  ASSERT_NE(session_->TakeConnection(nullptr), nullptr);
  v1::HelloReply reply;
  session_->FillHello({}, /*attach=*/false, /*local=*/false, &reply);
  EXPECT_EQ(reply.applied_batch(), 0u);
  Connect();
  wire_.batches.push_back(whole);
  batch_.Clear();
  sequence_ = 1;
  EXPECT_EQ(Values(1), (V{1024}));
}

TEST_F(SessionTest, AttachDropsHandlesAndListsKeptTensors) {
  Put(1, {1, 2});
  Put(2, {3, 4});
  v1::Keep* keep = Add()->mutable_keep();
  keep->set_name("weights");
  keep->set_handle(2);
  Deliver();
  session_->TakeConnection(nullptr);
  v1::HelloReply reply;
  session_->FillHello({}, /*attach=*/true, /*local=*/false, &reply);
  ASSERT_EQ(reply.kept_size(), 1);
  EXPECT_EQ(reply.kept(0).name(), "weights");
  EXPECT_GT(reply.next_handle(), reply.kept(0).handle());
  Connect();
  sequence_ = 0;
  EXPECT_EQ(Values(reply.kept(0).handle()), (V{3, 4}));
  EXPECT_EQ(session_->Stats().tensors(), 1u);
}

TEST_F(SessionTest, MemoryLimitIsOneOpsError) {
  Session::Options options;
  options.memory_limit_bytes = 8 << 20;
  Open(options);
  Put(1, V(1 << 20, 1.f));
  Deliver();
  v1::OpCall* call = Op(OpId::full, {}, 2);
  v1::Attr* size = call->add_attrs();
  size->set_slot(0);
  size->mutable_ints()->add_values(100 << 20);
  v1::Attr* value = call->add_attrs();
  value->set_slot(1);
  value->set_f(1);
  const v1::ReadResult result = Read(2);
  EXPECT_EQ(result.status().code(),
            static_cast<int>(absl::StatusCode::kResourceExhausted));
  EXPECT_THAT(result.status().message(), HasSubstr("limit=8.0 MiB"));
  EXPECT_FALSE(Read(1).has_status());
}

// Everything a broken client may say ends that session, with a reason.
struct Breach {
  const char* name;
  const char* message;
  void (*fill)(v1::Batch*);
};

class ProtocolBreachTest : public SessionTest,
                           public testing::WithParamInterface<Breach> {};

TEST_P(ProtocolBreachTest, EndsTheSessionWithAReason) {
  Put(5, {1, 2, 3});
  Deliver();
  GetParam().fill(&batch_);
  Deliver();
  EXPECT_THAT(SessionError(), HasSubstr(GetParam().message));
  EXPECT_TRUE(session_->ended());
  EXPECT_EQ(session_->Stats().bytes_in_use(), 0u);
}

void FillOp(v1::Batch* batch, uint32_t op, uint64_t input, uint64_t output) {
  v1::OpCall* call = batch->add_commands()->mutable_op();
  call->set_op(op);
  call->add_inputs(input);
  call->set_outputs(output);
}

INSTANTIATE_TEST_SUITE_P(
    All, ProtocolBreachTest,
    testing::Values(
        Breach{"UnknownOp", "unknown op id",
               [](v1::Batch* b) { FillOp(b, 60000, 5, 6); }},
        Breach{"ForeignHandle", "unknown handle 99",
               [](v1::Batch* b) {
                 FillOp(b, static_cast<int>(OpId::exp), 99, 6);
               }},
        Breach{
            "ReusedHandle", "must be above 5",
            [](v1::Batch* b) { FillOp(b, static_cast<int>(OpId::exp), 5, 5); }},
        Breach{"HugeHandle", "output handle",
               [](v1::Batch* b) {
                 FillOp(b, static_cast<int>(OpId::exp), 5, UINT64_MAX);
               }},
        Breach{"StaleRelease", "release of unknown handle 4",
               [](v1::Batch* b) { b->add_commands()->add_release(4); }},
        Breach{"ForeignRead", "unknown handle 7",
               [](v1::Batch* b) {
                 b->add_commands()->mutable_read()->set_handle(7);
               }},
        Breach{"ForeignKeep", "unknown handle 7",
               [](v1::Batch* b) {
                 b->add_commands()->mutable_keep()->set_handle(7);
               }},
        Breach{"BackwardWithoutGradients", "one gradient per root",
               [](v1::Batch* b) {
                 b->add_commands()->mutable_backward()->add_roots(5);
               }}),
    [](const auto& info) { return std::string(info.param.name); });

// Field values that are only wrong, not a breach: one op's error.
TEST_F(SessionTest, WrongAttributesSpoilOnlyTheirOp) {
  Put(1, {1, 2, 3});
  v1::OpCall* call = Op(OpId::sum, {1}, 2);
  call->add_attrs()->set_slot(77);
  EXPECT_TRUE(Read(2).has_status());
  call = Op(OpId::sum, {1}, 3);
  call->add_attrs()->set_slot(0);
  call->mutable_attrs(0)->set_s("not a dimension");
  EXPECT_TRUE(Read(3).has_status());
  Op(OpId::add, {1}, 4);  // one operand short
  EXPECT_TRUE(Read(4).has_status());
  EXPECT_EQ(Values(1), (V{1, 2, 3}));
}

TEST_F(SessionTest, OverflowingShapesSpoilOnlyTheirPut) {
  uint64_t handle = 0;
  for (int64_t size : {int64_t{-1}, INT64_MAX, INT64_MIN, int64_t{1} << 40}) {
    v1::Put* put = Add()->mutable_put();
    put->set_handle(++handle);
    put->mutable_spec()->set_dtype(v1::DTYPE_FLOAT32);
    put->mutable_spec()->add_shape(size);
    put->mutable_spec()->add_shape(size);
    put->set_data("abcd");
    EXPECT_TRUE(Read(handle).has_status()) << size;
  }
  EXPECT_FALSE(session_->ended());
}

TEST_F(SessionTest, SameSeedSameNumbers) {
  auto draw = [&](uint64_t handle) {
    Add()->mutable_set_seed()->set_seed(42);
    v1::OpCall* call = Op(OpId::rand, {}, handle);
    v1::Attr* size = call->add_attrs();
    size->set_slot(0);
    size->mutable_ints()->add_values(5);
    return Values(handle);
  };
  const V first = draw(1), second = draw(2);
  EXPECT_EQ(first, second);
}

TEST_F(SessionTest, AnOpsOwnStreamLeavesTheSessionsAlone) {
  const auto draw = [&](uint64_t handle, const v1::RandomState* random) {
    v1::OpCall* call = Op(OpId::rand, {}, handle);
    v1::Attr* size = call->add_attrs();
    size->set_slot(0);
    size->mutable_ints()->add_values(5);
    if (random != nullptr) *call->mutable_random() = *random;
    return Values(handle);
  };
  Add()->mutable_set_seed()->set_seed(42);
  const V first = draw(1, nullptr), second = draw(2, nullptr);
  Add()->mutable_set_seed()->set_seed(42);
  EXPECT_EQ(draw(3, nullptr), first);
  v1::RandomState random;
  random.set_seed(42);
  random.set_offset(5);
  EXPECT_EQ(draw(4, &random), second);
  random.set_seed(7);
  random.set_offset(~uint64_t{0});  // goes on at 0
  EXPECT_NE(draw(5, &random), second);
  EXPECT_EQ(draw(6, nullptr), second);
  Add()->mutable_set_seed()->set_seed(42);
  EXPECT_EQ(draw(7, nullptr), first);
  // An op that fails leaves the session's stream alone as well.
  v1::OpCall* call = Op(OpId::rand, {}, 8);
  *call->mutable_random() = random;
  EXPECT_TRUE(Read(8).has_status());
  EXPECT_EQ(draw(9, nullptr), second);
}

TEST_F(SessionTest, AClientThatTakesNoResultsIsEnded) {
  Session::Options options;
  options.inline_limit_bytes = 64 << 20;
  Open(options);
  sequence_ = 0;
  Put(1, V(4 << 20, 1.f));
  Deliver();
  wire_.room = 0;
  for (int i = 0; i < 30 && !session_->ended(); ++i) Read(1);
  EXPECT_TRUE(session_->ended());
}

// A client over gRPC waits when it has 16 MiB on their way.
TEST_F(SessionTest, Review17LargeBatchesAreAcknowledgedSoon) {
  for (const size_t bytes : {size_t{100}, size_t{9} << 20}) {
    Connect();
    wire_.batch_bytes = bytes;
    Put(bytes, {1});
    Deliver();
    EXPECT_EQ(wire_.acknowledged, bytes == 100 ? 0 : sequence_);
  }
}

}  // namespace
}  // namespace holdfast
