// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The session against a transport that only takes notes.
#include "client/session_core.h"

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <set>
#include <thread>

#include "client/fake_connection_test.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"
#include "proto/version.h"

namespace holdfast::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

const BackwardOptions kRetain = {true, false, false, nullptr};
const BackwardOptions kCreate = {true, true, false, nullptr};

class SessionCoreTest : public ::testing::Test {
 protected:
  Tensor Put(absl::Span<const int64_t> shape, DType dtype = DType::kFloat32) {
    const std::vector<double> zeros(NumElements(shape));
    absl::StatusOr<Tensor> tensor = session_->Put(dtype, shape, zeros.data());
    EXPECT_TRUE(tensor.ok()) << tensor.status();
    return *tensor;
  }
  Tensor Leaf(absl::Span<const int64_t> shape = {}) {
    Tensor tensor = Put(shape);
    EXPECT_TRUE(session_->SetRequiresGrad(tensor, true).ok());
    return tensor;
  }
  absl::StatusOr<Tensor> TryCall(OpId op, std::vector<Tensor> inputs,
                                 bool inplace = false, bool record = true) {
    const Attrs attrs(&GetOp(op));
    Tensor output;
    absl::Status status =
        session_->Apply(attrs, inputs, inplace, record, {&output, 1});
    if (!status.ok()) return status;
    return output;
  }
  Tensor Call(OpId op, std::vector<Tensor> inputs, bool inplace = false,
              bool record = true) {
    absl::StatusOr<Tensor> output = TryCall(op, inputs, inplace, record);
    EXPECT_TRUE(output.ok()) << output.status();
    return *output;
  }
  absl::Status Backward(const Tensor& root, bool retain_graph = false) {
    BackwardOptions options;
    options.retain_graph = retain_graph;
    return session_->Backward({&root, 1}, {}, {}, options);
  }
  // Reads are then answered by Deliver alone.
  void HoldBackAnswers() {
    std::lock_guard<std::mutex> lock(peer_->mutex);
    peer_->answer_reads = false;
  }
  // The last command but for releases, which may leave at any time.
  wire::Command LastSent() {
    std::vector<wire::Command> sent = peer_->TakeSent();
    while (!sent.empty() &&
           sent.back().kind_case() == wire::Command::KIND_NOT_SET) {
      sent.pop_back();
    }
    return sent.empty() ? wire::Command() : sent.back();
  }

  // A session to a daemon that says `hello`. The one before goes first: both
  // would wait for the same peer, and take the other's wakes.
  void ConnectAgain(const wire::HelloReply& hello) {
    session_.reset();
    session_ = MakeFakeSession(peer_, hello);
  }

  const std::shared_ptr<FakeConnection::Peer> peer_ =
      std::make_shared<FakeConnection::Peer>();
  std::shared_ptr<Session> session_ = MakeFakeSession(peer_, {});
};

// ---- the stream

TEST_F(SessionCoreTest, NamesOutputsAndSendsTheOp) {
  const Tensor a = Put({2, 3}), b = Put({3});
  EXPECT_EQ(a->handle(), 1u);
  EXPECT_EQ(b->handle(), 2u);
  const Tensor c = Call(OpId::add, {a, b});
  EXPECT_EQ(c->handle(), 3u);
  EXPECT_EQ(c->spec(), ContiguousSpec(DType::kFloat32, {2, 3}));
  EXPECT_EQ(session_->last_op_sequence(), 3u);
  const wire::OpCall call = LastSent().op();
  EXPECT_EQ(call.op(), static_cast<uint32_t>(OpId::add));
  EXPECT_THAT(call.inputs(), ElementsAre(1, 2));
  EXPECT_EQ(call.outputs(), 3u);
  EXPECT_FALSE(call.record());
}

// The choice is the process's: the daemon hears of it before the next op.
TEST_F(SessionCoreTest, ChangedNumericsGoBeforeTheNextOp) {
  const Tensor a = Leaf({2, 2});
  const Tensor b = Call(OpId::exp, {a});
  const Tensor root = Call(OpId::sum, {b});
  peer_->TakeSent();
  g_numerics = kMatmulTf32 | kBenchmark | kWithoutCudnn;
  const Tensor c = Call(OpId::neg, {a});
  std::vector<wire::Command> sent = peer_->TakeSent();
  ASSERT_EQ(sent.size(), 2u);
  const wire::SetNumerics wish = sent[0].set_numerics();
  EXPECT_TRUE(wish.matmul_tf32() && wish.conv_float32() && wish.benchmark() &&
              wish.without_cudnn());
  EXPECT_FALSE(wish.deterministic());
  EXPECT_TRUE(sent[1].has_op());
  Call(OpId::neg, {a});
  for (const wire::Command& command : peer_->TakeSent()) {
    EXPECT_FALSE(command.has_set_numerics());
  }
  g_numerics = kDefaultNumerics;
  EXPECT_TRUE(Backward(root).ok());
  sent = peer_->TakeSent();
  ASSERT_GE(sent.size(), 2u);
  EXPECT_TRUE(sent[0].has_set_numerics());
  EXPECT_FALSE(sent[0].set_numerics().conv_float32());
  EXPECT_TRUE(sent[1].has_backward());
}

TEST_F(SessionCoreTest, ShapeErrorsAreToldAtTheCallAndSendNothing) {
  const Tensor a = Put({2, 3}), b = Put({4, 5});
  peer_->TakeSent();
  const absl::StatusOr<Tensor> c = TryCall(OpId::add, {a, b});
  EXPECT_EQ(c.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(c.status().message(), HasSubstr("f32[2,3]"));
  EXPECT_THAT(c.status().message(), HasSubstr("f32[4,5]"));
  EXPECT_THAT(peer_->TakeSent(), IsEmpty());
  EXPECT_EQ(session_->last_op_sequence(), 2u);
}

TEST_F(SessionCoreTest, ReleasesTravelWithTheNextCommand) {
  const Tensor a = Put({});
  Tensor b = Call(OpId::neg, {a});
  peer_->TakeSent();
  b.reset();
  const Tensor c = Call(OpId::neg, {a});
  std::vector<uint64_t> released;
  for (const wire::Command& command : peer_->TakeSent()) {
    released.insert(released.end(), command.release().begin(),
                    command.release().end());
  }
  EXPECT_THAT(released, ElementsAre(2));
}

// Nothing may stay unreleased because the program does no more ops.
TEST_F(SessionCoreTest, ReleasesLeaveAloneSoon) {
  for (int round = 0; round < 3; ++round) {
    Tensor a = Put({});
    const uint64_t handle = a->handle();
    peer_->TakeSent();
    a.reset();
    std::vector<wire::Command> sent;
    for (int i = 0; i < 60000 && sent.empty(); ++i) {
      usleep(1000);
      sent = peer_->TakeSent();
    }
    ASSERT_EQ(sent.size(), 1u);
    EXPECT_THAT(sent[0].release(), ElementsAre(handle));
    EXPECT_EQ(sent[0].kind_case(), wire::Command::KIND_NOT_SET);
    usleep(20000);  // until the attendant sleeps again
  }
}

TEST_F(SessionCoreTest, ManyThreadsShareOneStream) {
  const Tensor a = Put({4});
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      Tensor x = a;
      for (int i = 0; i < 500; ++i) x = Call(OpId::add, {x, a});
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(session_->Stats(false).ok());  // sends what is pending
  std::set<uint64_t> outputs, releases;
  for (const wire::Command& command : peer_->TakeSent()) {
    for (uint64_t handle : command.release()) {
      EXPECT_TRUE(outputs.count(handle)) << "released before it was made";
      EXPECT_TRUE(releases.insert(handle).second) << "released twice";
    }
    if (!command.has_op()) continue;
    for (uint64_t input : command.op().inputs()) {
      EXPECT_FALSE(releases.count(input)) << "used after its release";
    }
    EXPECT_TRUE(outputs.insert(command.op().outputs()).second);
  }
  EXPECT_EQ(outputs.size(), 2000u);
  EXPECT_EQ(releases.size(), 2000u);
}

TEST_F(SessionCoreTest, TensorsOfAnotherSessionAreRefused) {
  const auto other =
      MakeFakeSession(std::make_shared<FakeConnection::Peer>(), {});
  const Tensor mine = Put({}), theirs = MakeTensor(other, 1);
  const absl::StatusOr<Tensor> sum = TryCall(OpId::add, {mine, theirs});
  EXPECT_EQ(sum.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(sum.status().message(), HasSubstr("one session"));
  EXPECT_FALSE(session_->StartRead(theirs, false).ok());
  EXPECT_FALSE(session_->SetRequiresGrad(theirs, true).ok());
  EXPECT_FALSE(session_->Keep("name", theirs).ok());
}

TEST_F(SessionCoreTest, LargeValuesGoAside) {
  Put({256});
  EXPECT_EQ(LastSent().put().data().size(), 1024u);
  Put({257});
  EXPECT_EQ(LastSent().put().upload(), 1u);
  EXPECT_FALSE(session_->Put(DType::kFloat32, {-1}, nullptr).ok());
}

TEST_F(SessionCoreTest, DataGoesToItsDevice) {
  wire::HelloReply hello;
  hello.set_device("cuda");
  hello.set_devices(2);
  hello.add_features(kFeaturePlace);
  ConnectAgain(hello);
  const float zero = 0;
  absl::StatusOr<Tensor> tensor =
      session_->Put(DType::kFloat32, {}, &zero, 2, nullptr);
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_EQ((*tensor)->spec().device, 2);
  const wire::Command sent = LastSent();
  EXPECT_EQ(sent.put().spec().device(), 2u);
  EXPECT_EQ(sent.put().handle(), (*tensor)->handle());
  const absl::Status none =
      session_->Put(DType::kFloat32, {}, &zero, 3, nullptr).status();
  EXPECT_THAT(none.message(), HasSubstr("has 2 GPUs, counted from 0. Got "
                                        "cuda:2"));
}

TEST_F(SessionCoreTest, AnOlderDaemonMovesDataItself) {
  wire::HelloReply hello;
  hello.set_device("cuda");
  hello.set_devices(2);
  ConnectAgain(hello);
  const float zero = 0;
  absl::StatusOr<Tensor> tensor =
      session_->Put(DType::kFloat32, {}, &zero, 2, nullptr);
  ASSERT_TRUE(tensor.ok()) << tensor.status();
  EXPECT_EQ((*tensor)->spec().device, 2);
  std::vector<wire::Command> sent = peer_->TakeSent();
  ASSERT_GE(sent.size(), 2u);
  EXPECT_EQ(sent[0].put().spec().device(), 0u);
  EXPECT_EQ(sent[1].op().op(), static_cast<uint32_t>(OpId::to_device));
  EXPECT_THAT(sent[1].op().inputs(), ElementsAre(sent[0].put().handle()));
  EXPECT_EQ(sent[1].op().outputs(), (*tensor)->handle());
  // The first takes it as it is.
  ASSERT_TRUE(session_->Put(DType::kFloat32, {}, &zero, 1, nullptr).ok());
  EXPECT_EQ(LastSent().put().spec().device(), 1u);
}

// ---- the op table

TEST_F(SessionCoreTest, OpIdsAreTheServers) {
  wire::HelloReply hello;
  hello.set_op_fingerprint(1);
  hello.set_server("holdfastd 9.9");
  wire::OpName* op = hello.add_ops();
  op->set_id(77);
  op->set_name("neg");
  op->set_signature(GetOp(OpId::neg).signature);
  op = hello.add_ops();
  op->set_id(78);
  op->set_name("abs");
  op->set_signature("(Tensor input, int power) -> Tensor");
  ConnectAgain(hello);
  ASSERT_NE(session_, nullptr);
  const Tensor a = Put({});
  Call(OpId::neg, {a});
  EXPECT_EQ(LastSent().op().op(), 77u);
  // Another signature is another op; a missing one is missing.
  for (OpId id : {OpId::abs, OpId::exp}) {
    const absl::Status status = TryCall(id, {a}).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
    EXPECT_THAT(status.message(), HasSubstr(GetOp(id).name));
    EXPECT_THAT(status.message(), HasSubstr("holdfastd 9.9"));
  }
}

// ---- gradients

TEST_F(SessionCoreTest, RequiresGradSpreads) {
  const Tensor w = Leaf({2}), x = Put({2});
  EXPECT_TRUE(w->is_leaf);
  const Tensor y = Call(OpId::mul, {w, x});
  EXPECT_TRUE(LastSent().op().record());
  EXPECT_TRUE(y->requires_grad);
  EXPECT_FALSE(y->is_leaf);
  EXPECT_FALSE(Call(OpId::mul, {x, x})->requires_grad);
  // no_grad, ops without gradient, integers: no history.
  EXPECT_FALSE(Call(OpId::mul, {w, x}, false, /*record=*/false)->requires_grad);
  EXPECT_FALSE(LastSent().op().record());
  EXPECT_FALSE(Call(OpId::detach, {w})->requires_grad);
  EXPECT_FALSE(Call(OpId::gt, {w, x})->requires_grad);
}

TEST_F(SessionCoreTest, BackwardNamesGradientsAndAccumulates) {
  const Tensor w = Leaf({2}), x = Put({2});
  const auto loss = [&] { return Call(OpId::sum, {Call(OpId::mul, {w, x})}); };
  Tensor y = loss();
  ASSERT_TRUE(Backward(y).ok());
  wire::Backward backward = LastSent().backward();
  EXPECT_THAT(backward.roots(), ElementsAre(y->handle()));
  EXPECT_THAT(backward.gradients(), ElementsAre(0));
  ASSERT_EQ(backward.targets_size(), 1);
  EXPECT_EQ(backward.targets(0).tensor(), w->handle());
  EXPECT_FALSE(backward.targets(0).accumulate());
  const Tensor grad = session_->GetGrad(w);
  ASSERT_TRUE(grad);
  EXPECT_EQ(grad->handle(), backward.targets(0).grad());
  EXPECT_EQ(grad->spec(), w->spec());
  EXPECT_FALSE(session_->GetGrad(x));

  // Again on the same graph: an error, and nothing is sent.
  EXPECT_THAT(Backward(y).message(), HasSubstr("second time"));
  // On a new one it adds to the same tensor.
  ASSERT_TRUE(Backward(loss()).ok());
  std::vector<wire::Command> sent = peer_->TakeSent();
  const auto last =
      std::find_if(sent.rbegin(), sent.rend(),
                   [](const auto& command) { return command.has_backward(); });
  ASSERT_NE(last, sent.rend());
  EXPECT_TRUE(last->backward().targets(0).accumulate());
  EXPECT_EQ(last->backward().targets(0).grad(), grad->handle());
  EXPECT_EQ(session_->GetGrad(w), grad);
  // Dropped, and named anew.
  ASSERT_TRUE(session_->SetGrad(w, nullptr).ok());
  ASSERT_TRUE(Backward(loss()).ok());
  EXPECT_NE(session_->GetGrad(w), grad);
}

TEST_F(SessionCoreTest, BackwardErrorsAreToldAtTheCall) {
  const Tensor w = Leaf({2}), x = Put({2});
  EXPECT_THAT(Backward(x).message(),
              HasSubstr("element 0 of tensors does not require grad and does "
                        "not have a grad_fn"));
  const Tensor y = Call(OpId::mul, {w, x});
  EXPECT_THAT(
      Backward(y).message(),
      HasSubstr("grad can be implicitly created only for scalar outputs"));
  const Tensor wrong = Put({3}), right = Put({2});
  EXPECT_THAT(session_->Backward({&y, 1}, {&wrong, 1}, {}, {}).message(),
              HasSubstr("Mismatch in shape"));
  EXPECT_TRUE(session_->Backward({&y, 1}, {&right, 1}, {}, {}).ok());
  EXPECT_FALSE(session_->SetRequiresGrad(Put({2}, DType::kInt64), true).ok());
  EXPECT_FALSE(session_->SetRequiresGrad(y, false).ok());
  EXPECT_FALSE(session_->SetGrad(w, wrong).ok());
}

TEST_F(SessionCoreTest, GradReturnsOnePerInput) {
  const Tensor a = Leaf(), b = Leaf(), unused = Leaf();
  const Tensor y = Call(OpId::mul, {a, b});
  const Tensor inputs[] = {b, a};
  auto grads = session_->Grad({&y, 1}, {}, inputs, kRetain, false);
  ASSERT_TRUE(grads.ok()) << grads.status();
  const wire::Backward backward = LastSent().backward();
  EXPECT_EQ(backward.targets(0).tensor(), b->handle());
  EXPECT_EQ(backward.targets(1).grad(), (*grads)[1]->handle());
  EXPECT_FALSE(session_->GetGrad(a));  // nothing accumulates

  const Tensor more[] = {a, unused};
  EXPECT_THAT(
      session_->Grad({&y, 1}, {}, more, kRetain, false).status().message(),
      HasSubstr("not have been used in the graph"));
  grads = session_->Grad({&y, 1}, {}, more, kRetain, true);
  ASSERT_TRUE(grads.ok());
  EXPECT_TRUE((*grads)[0]);
  EXPECT_FALSE((*grads)[1]);
}

TEST_F(SessionCoreTest, GradientsOfGradients) {
  const Tensor x = Leaf();
  const Tensor y = Call(OpId::mul, {x, x});
  const auto first = session_->Grad({&y, 1}, {}, {&x, 1}, kCreate, false);
  ASSERT_TRUE(first.ok());
  EXPECT_TRUE((*first)[0]->requires_grad);
  EXPECT_TRUE(session_->Grad({&(*first)[0], 1}, {}, {&x, 1}, {}, false).ok());
}

TEST_F(SessionCoreTest, RetainGradKeepsAResultsGradient) {
  const Tensor w = Leaf();
  const Tensor y = Call(OpId::mul, {w, w}), z = Call(OpId::exp, {y});
  ASSERT_TRUE(session_->RetainGrad(y).ok());
  ASSERT_TRUE(Backward(z).ok());
  EXPECT_TRUE(session_->GetGrad(y));
  EXPECT_TRUE(session_->GetGrad(w));
  EXPECT_FALSE(session_->RetainGrad(Put({})).ok());
}

TEST_F(SessionCoreTest, DeadLeavesGetNoGradient) {
  const Tensor w = Leaf();
  Tensor gone = Leaf();
  const Tensor y = Call(OpId::mul, {w, gone});
  gone.reset();
  ASSERT_TRUE(Backward(y).ok());
  EXPECT_EQ(LastSent().backward().targets_size(), 1);
}

// ---- in place, views

TEST_F(SessionCoreTest, InplaceReturnsItsInput) {
  const Tensor a = Put({2});
  EXPECT_EQ(Call(OpId::add, {a, a}, /*inplace=*/true), a);
  const wire::OpCall call = LastSent().op();
  EXPECT_TRUE(call.inplace());
  EXPECT_EQ(call.outputs(), 0u);
}

TEST_F(SessionCoreTest, LeavesMustNotChangeInPlace) {
  const Tensor w = Leaf({2}), x = Put({2});
  EXPECT_THAT(TryCall(OpId::add, {w, x}, true).status().message(),
              HasSubstr("a leaf Variable that requires grad is being used in "
                        "an in-place operation."));
  EXPECT_TRUE(TryCall(OpId::add, {w, x}, true, /*record=*/false).ok());
  const Tensor view = Call(OpId::squeeze, {w});
  EXPECT_THAT(TryCall(OpId::add, {view, x}, true).status().message(),
              HasSubstr("a view of a leaf Variable"));
  const Tensor result = Call(OpId::mul, {w, x});
  EXPECT_TRUE(TryCall(OpId::add, {result, x}, true).ok());
}

TEST_F(SessionCoreTest, ViewsSeeHistoryWrittenThroughEachOther) {
  const Tensor base = Put({2}), w = Leaf({2});
  const Tensor view = Call(OpId::squeeze, {base});
  EXPECT_EQ(view->storage(), base->storage());
  const Tensor apart = Call(OpId::detach, {base});
  EXPECT_FALSE(base->NeedsGrad());
  Call(OpId::mul, {view, w}, /*inplace=*/true);
  EXPECT_TRUE(view->requires_grad);
  EXPECT_TRUE(base->NeedsGrad());
  EXPECT_FALSE(apart->NeedsGrad());  // same memory, no history
  ASSERT_TRUE(Backward(Call(OpId::sum, {base})).ok());
  EXPECT_TRUE(session_->GetGrad(w));
}

TEST_F(SessionCoreTest, OpsOnVisibleMemoryAreWaitedFor) {
  const Tensor a = Put({2});
  const Tensor apart = Call(OpId::detach, {a});
  peer_->TakeSent();
  {
    std::atomic<int64_t> exports{0};
    const ExportHold hold(apart, &exports);
    EXPECT_TRUE(a->storage()->exported());
    Call(OpId::neg, {a});
    EXPECT_TRUE(LastSent().has_read());
    Call(OpId::squeeze, {a});  // a view touches nothing
    EXPECT_TRUE(LastSent().has_op());
  }
  Call(OpId::neg, {a});
  EXPECT_TRUE(LastSent().has_op());
}

// ---- reads

TEST_F(SessionCoreTest, SeveralReadsMayBePending) {
  HoldBackAnswers();
  const Tensor a = Put({});
  const uint64_t first = *session_->StartRead(a, false);
  const uint64_t second = *session_->StartRead(a, false);
  EXPECT_FALSE(session_->ReadReady(second));
  wire::Event event;
  event.mutable_read()->set_id(second);
  event.mutable_read()->set_data("abcd");
  peer_->Deliver(event);
  EXPECT_TRUE(session_->ReadReady(second));
  EXPECT_FALSE(session_->ReadReady(first));
  const absl::StatusOr<ReadValue> value = session_->WaitRead(second, nullptr);
  ASSERT_TRUE(value.ok()) << value.status();
  EXPECT_EQ(std::string(static_cast<const char*>(value->data), 4), "abcd");
  EXPECT_EQ(session_->WaitRead(second, nullptr).status().code(),
            absl::StatusCode::kNotFound);

  // Interrupted: the session goes on, the late answer is dropped.
  EXPECT_EQ(session_->WaitRead(first, [] { return true; }).status().code(),
            absl::StatusCode::kCancelled);
  event.mutable_read()->set_id(first);
  peer_->Deliver(event);
  const uint64_t third = *session_->StartRead(a, false);
  event.mutable_read()->set_id(third);
  std::thread later([&] {
    usleep(20000);
    peer_->Deliver(event);
  });
  EXPECT_TRUE(session_->WaitRead(third, nullptr).ok());
  later.join();
}

TEST_F(SessionCoreTest, FailuresNameTheirOp) {
  HoldBackAnswers();
  const uint64_t id = *session_->StartRead(Put({}), false);
  wire::Event event;
  event.mutable_read()->set_id(id);
  wire::Status* status = event.mutable_read()->mutable_status();
  status->set_code(static_cast<int>(absl::StatusCode::kOutOfRange));
  status->set_message("[gather] index 9");
  status->set_op("gather");
  status->set_op_sequence(41);
  peer_->Deliver(event);
  const absl::Status failure = session_->WaitRead(id, nullptr).status();
  EXPECT_EQ(failure.code(), absl::StatusCode::kOutOfRange);
  EXPECT_EQ(failure.message(), "[gather] index 9");
  EXPECT_EQ(OpFailureOf(failure).op, "gather");
  EXPECT_EQ(OpFailureOf(failure).op_sequence, 41u);
  EXPECT_EQ(OpFailureOf(absl::InternalError("x")).op, "");
}

TEST_F(SessionCoreTest, WrongAnswersAreErrorsNotCrashes) {
  HoldBackAnswers();
  const Tensor a = Put({4});
  wire::Event event;
  event.mutable_read()->set_id(*session_->StartRead(a, false));
  event.mutable_read()->set_data("short");
  peer_->Deliver(event);
  EXPECT_EQ(session_->WaitRead(event.read().id(), nullptr).status().code(),
            absl::StatusCode::kInternal);
  event.mutable_read()->set_id(*session_->StartRead(a, false));
  event.mutable_read()->mutable_place()->set_bytes(1);
  event.mutable_read()->mutable_spec()->set_dtype(wire::DTYPE_FLOAT32);
  event.mutable_read()->mutable_spec()->add_shape(1 << 30);
  peer_->Deliver(event);
  EXPECT_EQ(session_->WaitRead(event.read().id(), nullptr).status().code(),
            absl::StatusCode::kInternal);
}

// ---- ends

TEST_F(SessionCoreTest, ALostDaemonEndsEverything) {
  HoldBackAnswers();
  const Tensor a = Put({});
  const uint64_t id = *session_->StartRead(a, false);
  std::thread later([&] {
    usleep(20000);
    peer_->Fail(absl::UnavailableError("it is gone"));
  });
  EXPECT_EQ(session_->WaitRead(id, nullptr).status().message(), "it is gone");
  later.join();
  EXPECT_TRUE(session_->closed());
  EXPECT_EQ(TryCall(OpId::neg, {a}).status().message(), "it is gone");
  EXPECT_EQ(session_->Put(DType::kFloat32, {}, "abcd").status().message(),
            "it is gone");
  EXPECT_TRUE(session_->Close(false).ok());
}

TEST_F(SessionCoreTest, ACommandThatIsTooLargeHarmsNothingElse) {
  const Tensor a = Put({});
  const auto refuse = [&](bool value) {
    std::lock_guard<std::mutex> lock(peer_->mutex);
    peer_->refuse = value;
  };
  refuse(true);
  EXPECT_FALSE(TryCall(OpId::neg, {a}).ok());
  refuse(false);
  EXPECT_TRUE(TryCall(OpId::neg, {a}).ok());
}

TEST_F(SessionCoreTest, ClosedSessionsSaySo) {
  const Tensor a = Put({});
  EXPECT_TRUE(session_->Close(false).ok());
  EXPECT_TRUE(session_->closed());
  const absl::Status status = TryCall(OpId::neg, {a}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("closed"));
  EXPECT_TRUE(session_->Close(false).ok());  // idempotent
  std::lock_guard<std::mutex> lock(peer_->mutex);
  EXPECT_EQ(peer_->goodbyes, 1);
}

TEST_F(SessionCoreTest, DroppedSessionsLeave) {
  session_.reset();
  std::lock_guard<std::mutex> lock(peer_->mutex);
  EXPECT_EQ(peer_->goodbyes, 1);
}

TEST_F(SessionCoreTest, ForkedChildrenMayNotUseIt) {
  Tensor a = Put({});
  const pid_t child = fork();
  if (child == 0) {
    const absl::Status status = TryCall(OpId::neg, {a}).status();
    bool refused = status.code() == absl::StatusCode::kFailedPrecondition;
    refused &= !session_->Synchronize(nullptr).ok();
    a.reset();         // neither sends
    session_.reset();  // nor hangs
    _exit(refused ? 0 : 1);
  }
  int result = -1;
  ASSERT_EQ(waitpid(child, &result, 0), child);
  EXPECT_TRUE(WIFEXITED(result) && WEXITSTATUS(result) == 0);
  EXPECT_TRUE(TryCall(OpId::neg, {a}).ok());
}

// ---- kept tensors

TEST_F(SessionCoreTest, KeptTensorsAreListedUnderHandlesOfTheirOwn) {
  wire::HelloReply hello;
  hello.set_next_handle(10);
  wire::KeptTensor* kept = hello.add_kept();
  kept->set_name("weights");
  kept->set_handle(4);
  kept->set_requires_grad(true);
  kept->mutable_spec()->set_dtype(wire::DTYPE_FLOAT32);
  kept->mutable_spec()->add_shape(3);
  ConnectAgain(hello);
  peer_->TakeSent();
  auto list = session_->Kept();
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0].first, "weights");
  EXPECT_EQ(list[0].second->spec(), ContiguousSpec(DType::kFloat32, {3}));
  EXPECT_TRUE(list[0].second->requires_grad);
  EXPECT_TRUE(list[0].second->is_leaf);
  EXPECT_GE(list[0].second->handle(), 10u);
  std::vector<wire::Command> sent = peer_->TakeSent();
  ASSERT_EQ(sent.size(), 2u);
  EXPECT_THAT(sent[0].op().inputs(), ElementsAre(4));
  EXPECT_TRUE(sent[1].set_requires_grad().requires_grad());

  const Tensor mine = Put({2});
  EXPECT_TRUE(session_->Keep("mine", mine).ok());
  EXPECT_EQ(session_->Kept().size(), 2u);
  EXPECT_TRUE(session_->Keep("weights", nullptr).ok());
  list = session_->Kept();
  ASSERT_EQ(list.size(), 1u);
  EXPECT_EQ(list[0].first, "mine");
}

}  // namespace
}  // namespace holdfast::client
