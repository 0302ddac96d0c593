// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Tensors that several sessions have: who keeps them alive, who pays for them,
// and what a wrong token or a dead owner does.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "ops/op_id.h"
#include "server/exec/shared_storages.h"
#include "server/session/scripted_session.h"

namespace holdfast {
namespace {

using testing::HasSubstr;

using V = std::vector<float>;

// The fixture's session is the owner; `Other` is another one of the daemon.
class SharingTest : public SessionTest {
 protected:
  SharingTest() : shared_(std::make_shared<SharedStorages>()) {
    Open(WithTable({}));
  }

  Session::Options WithTable(Session::Options options) {
    options.shared = shared_;
    return options;
  }
  v1::ReadResult ReadToken(uint64_t handle, bool hold) {
    v1::Read* read = Add()->mutable_read();
    read->set_id(++read_id_);
    read->set_handle(handle);
    read->set_share(true);
    read->set_hold(hold);
    Deliver();
    return wire_.events.back().read();
  }
  std::string Token(uint64_t handle, bool hold = false) {
    const v1::ReadResult result = ReadToken(handle, hold);
    EXPECT_FALSE(result.has_status()) << result.status().message();
    EXPECT_EQ(result.data().size(), SharedStorages::kTokenBytes);
    return result.data();
  }
  void Release(uint64_t handle) {
    Add()->add_release(handle);
    Deliver();
  }
  void OpenTensor(uint64_t handle, const std::string& token, int64_t size,
                  bool release_hold = false) {
    v1::Open* open = Add()->mutable_open();
    open->set_handle(handle);
    open->set_token(token);
    open->mutable_spec()->set_dtype(v1::DTYPE_FLOAT32);
    open->mutable_spec()->add_shape(size);
    open->set_release_hold(release_hold);
  }
  void AddInPlace(uint64_t target, uint64_t by) {
    Op(OpId::add, {target, by}, 0)->set_inplace(true);
  }
  // Swaps the fixture's session with another one.
  void Switch() {
    if (other_.session == nullptr) {
      other_.session = std::make_shared<Session>(device_.get(), WithTable({}));
      other_.wire = std::make_unique<Wire>();
      other_.session->SetConnection(
          std::make_unique<ScriptedConnection>(other_.wire.get()),
          other_.session->token());
    }
    if (mine_ == nullptr) {
      mine_ = std::make_unique<Wire>();
      session_->SetConnection(std::make_unique<ScriptedConnection>(mine_.get()),
                              session_->token());
    }
    std::swap(session_, other_.session);
    std::swap(mine_, other_.wire);
    std::swap(sequence_, other_.sequence);
  }
  void Deliver() {
    if (mine_ == nullptr) return SessionTest::Deliver();
    batch_.set_sequence(++sequence_);
    mine_->batches.push_back(batch_);
    batch_.Clear();
    session_->RunSome({1 << 20});
    wire_.events = mine_->events;
  }
  v1::ReadResult Read(uint64_t handle) {
    v1::Read* read = Add()->mutable_read();
    read->set_id(++read_id_);
    read->set_handle(handle);
    Deliver();
    return wire_.events.back().read();
  }
  V Values(uint64_t handle) {
    const v1::ReadResult result = Read(handle);
    EXPECT_FALSE(result.has_status()) << result.status().message();
    V values(result.data().size() / sizeof(float));
    std::memcpy(values.data(), result.data().data(), result.data().size());
    return values;
  }

  struct Peer {
    std::shared_ptr<Session> session;
    std::unique_ptr<Wire> wire;
    uint64_t sequence = 0;
  };
  std::shared_ptr<SharedStorages> shared_;
  std::unique_ptr<Wire> mine_;
  Peer other_;
};

TEST_F(SharingTest, BothSessionsReadAndWriteOneStorage) {
  Put(1, {1, 2, 3});
  Put(2, {10, 10, 10});
  const std::string token = Token(1);
  Switch();
  OpenTensor(1, token, 3);
  Put(2, {100, 100, 100});
  EXPECT_EQ(Values(1), (V{1, 2, 3}));
  AddInPlace(1, 2);
  Deliver();
  Switch();
  EXPECT_EQ(Values(1), (V{101, 102, 103}));
  AddInPlace(1, 2);
  Deliver();
  Switch();
  EXPECT_EQ(Values(1), (V{111, 112, 113}));
}

TEST_F(SharingTest, AStorageHasOneTokenNobodyCanGuess) {
  Put(1, {1, 2, 3});
  Put(2, {1, 2, 3});
  const std::string token = Token(1);
  EXPECT_EQ(Token(1), token);
  EXPECT_NE(Token(2), token);
  Switch();
  std::string wrong = token;
  wrong[7] ^= 1;
  const std::string tokens[] = {wrong, "", std::string(16, '\0'), token + "x"};
  uint64_t handle = 0;
  for (const std::string& bad : tokens) {
    OpenTensor(++handle, bad, 3);
    const v1::ReadResult result = Read(handle);
    EXPECT_THAT(result.status().message(), HasSubstr("no shared tensor"));
  }
  OpenTensor(++handle, token, 3);
  EXPECT_EQ(Values(handle), (V{1, 2, 3}));  // the session goes on
}

TEST_F(SharingTest, ASpecThatDoesNotFitIsRefused) {
  Put(1, {1, 2, 3});
  const std::string token = Token(1);
  Switch();
  OpenTensor(1, token, 1 << 20);
  EXPECT_THAT(Read(1).status().message(), HasSubstr("[open]"));
  OpenTensor(2, token, 3);
  batch_.mutable_commands(0)->mutable_open()->mutable_spec()->set_offset(-1);
  EXPECT_TRUE(Read(2).has_status());
  OpenTensor(3, token, -3);
  EXPECT_TRUE(Read(3).has_status());
}

TEST_F(SharingTest, TheOwnersEndPullsNoMemoryFromUnderAnother) {
  Put(1, V(1 << 18, 2.f));
  Put(2, V(1 << 18, 5.f));
  const std::string token = Token(1);
  const std::string unopened = Token(2, /*hold=*/true);
  Switch();
  OpenTensor(1, token, 1 << 18);
  Deliver();
  other_.session->End(absl::OkStatus());
  other_.session.reset();
  EXPECT_EQ(Values(1), V(1 << 18, 2.f));
  Put(2, V(1 << 18, 1.f));
  AddInPlace(1, 2);
  EXPECT_EQ(Values(1), V(1 << 18, 3.f));
  // It can be passed on; what nobody opened is gone with its owner.
  EXPECT_EQ(Token(1), token);
  OpenTensor(3, unopened, 1 << 18);
  EXPECT_TRUE(Read(3).has_status());
  EXPECT_EQ(shared_->size(), 1u);
  Release(1);
  EXPECT_EQ(shared_->size(), 0u);
}

TEST_F(SharingTest, TheMemoryIsTheOwnersWhoeverKeepsIt) {
  Put(1, V(1 << 20, 1.f));
  const std::string token = Token(1);
  Switch();
  OpenTensor(1, token, 1 << 20);
  Deliver();
  EXPECT_EQ(session_->Stats().bytes_in_use(), 0u);
  Switch();
  Release(1);
  EXPECT_GE(session_->Stats().bytes_in_use(), 4u << 20);
  Switch();
  Release(1);
  EXPECT_EQ(other_.session->Stats().bytes_in_use(), 0u);
}

TEST_F(SharingTest, AHoldKeepsWhatIsOnItsWay) {
  Put(1, {1, 2, 3});
  const std::string token = Token(1, /*hold=*/true);
  Release(1);
  Switch();
  OpenTensor(1, token, 3, /*release_hold=*/true);
  EXPECT_EQ(Values(1), (V{1, 2, 3}));
  Release(1);
  EXPECT_EQ(shared_->size(), 0u);
  OpenTensor(2, token, 3, /*release_hold=*/true);
  EXPECT_TRUE(Read(2).has_status());
}

TEST_F(SharingTest, WithoutAHoldTheLastHandleEndsIt) {
  Put(1, {1, 2, 3});
  const std::string token = Token(1);
  Release(1);
  EXPECT_EQ(shared_->size(), 0u);
  EXPECT_EQ(session_->Stats().bytes_in_use(), 0u);
}

TEST_F(SharingTest, ARefusedOpenKeepsTheHold) {
  Put(1, {1, 2, 3});
  const std::string token = Token(1, /*hold=*/true);
  Release(1);
  Switch();
  OpenTensor(1, token, 1 << 20, /*release_hold=*/true);
  EXPECT_TRUE(Read(1).has_status());
  OpenTensor(2, token, 3, /*release_hold=*/true);
  EXPECT_EQ(Values(2), (V{1, 2, 3}));
}

TEST_F(SharingTest, AFailedTensorHasNoToken) {
  Put(1, {1, 2, 3});
  Put(2, {1, 2});
  Op(OpId::add, {1, 2}, 3);
  EXPECT_EQ(ReadToken(3, false).status().op(), "add");
}

TEST_F(SharingTest, OthersWritesAreNoErrorInAGraph) {
  // y = x * x saves x; another session writes it before backward.
  Put(1, {2, 3});
  v1::SetRequiresGrad* mark = Add()->mutable_set_requires_grad();
  mark->set_handle(1);
  mark->set_requires_grad(true);
  const std::string token = Token(1);
  Op(OpId::mul, {1, 1}, 2)->set_record(true);
  Op(OpId::sum, {2}, 3)->set_record(true);
  Deliver();
  Switch();
  OpenTensor(1, token, 2);
  Put(2, {1, 1});
  AddInPlace(1, 2);
  Deliver();
  Switch();
  v1::Backward* backward = Add()->mutable_backward();
  backward->add_roots(3);
  backward->add_gradients(0);
  v1::Backward::Target* target = backward->add_targets();
  target->set_tensor(1);
  target->set_grad(4);
  EXPECT_EQ(Values(4), (V{6, 8}));  // of the values that are there now
}

}  // namespace
}  // namespace holdfast
