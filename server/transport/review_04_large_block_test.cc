// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Item 4 of the server's review: while one user's large block is made, the
// local server serves others, and the session's own ops and numbers are served.
#include <poll.h>

#include "gtest/gtest.h"
#include "server/transport/test_daemon.h"
#include "server/transport/test_local_client.h"

namespace holdfast {
namespace {

bool HasAnswer(const TestLocalClient& client) {
  pollfd ready = {client.fd(), POLLIN, 0};
  return poll(&ready, 1, 0) == 1;
}

// Some ops in a row, each with its answer, in a session of `client`.
void RunOps(TestLocalClient* client, uint64_t* sequence) {
  for (int i = 0; i < 5; ++i) {
    v1::Batch batch;
    batch.set_sequence(++*sequence);
    const uint64_t handle = 1000 + *sequence;
    v1::Put* put = batch.add_commands()->mutable_put();
    put->set_handle(handle);
    put->mutable_spec()->set_dtype(v1::DTYPE_FLOAT32);
    put->mutable_spec()->add_shape(4);
    put->set_data(std::string(16, '\0'));
    v1::Read* read = batch.add_commands()->mutable_read();
    read->set_id(*sequence);
    read->set_handle(handle);
    ASSERT_TRUE(client->Submit(batch));
    v1::Event event;
    ASSERT_TRUE(client->NextEvent(&event));
    EXPECT_EQ(event.read().data().size(), 16u) << event.ShortDebugString();
  }
}

TEST(LargeBlockTest, OthersAreServedWhileItIsMade) {
  TestDaemon daemon;
  ASSERT_TRUE(daemon.StartLocal().ok());
  TestLocalClient greedy(daemon.socket_path());
  ASSERT_TRUE(greedy.Hello().has_hello());
  uint64_t sequence = 0;
  RunOps(&greedy, &sequence);
  v1::LocalRequest allocate;
  v1::LocalRequest stats;
  stats.mutable_stats();
  // Which is done first is up to the machine: once is enough.
  bool others_first = false;
  for (int attempt = 0; attempt < 5 && !others_first; ++attempt) {
    allocate.set_allocate((uint64_t{512} << 20) + (attempt << 22));
    ASSERT_TRUE(greedy.SendRequest(allocate));
    TestLocalClient other(daemon.socket_path());
    ASSERT_TRUE(other.Hello().has_hello());
    EXPECT_EQ(other.Call(stats).stats().sessions_size(), 2);
    RunOps(&greedy, &sequence);
    others_first = !HasAnswer(greedy);
    v1::LocalReply reply;
    ASSERT_TRUE(greedy.Receive(&reply));
    ASSERT_TRUE(reply.has_block()) << reply.ShortDebugString();
    EXPECT_EQ(reply.block().place().bytes(), allocate.allocate());
    other.Disconnect();
    ASSERT_TRUE(WaitFor([&] { return daemon.sessions() == 1; }));
  }
  EXPECT_TRUE(others_first);
}

TEST(LargeBlockTest, AnAnswerThatComesLaterIsStillAnError) {
  ServerLimits limits = TestDaemon::Limits();
  limits.memory_limit_bytes = 64 << 20;
  TestDaemon daemon(limits);
  ASSERT_TRUE(daemon.StartLocal().ok());
  TestLocalClient client(daemon.socket_path());
  ASSERT_TRUE(client.Hello().has_hello());
  v1::LocalRequest allocate;
  allocate.set_allocate(uint64_t{1} << 40);
  // Both were sent before the first was answered.
  ASSERT_TRUE(client.SendRequest(allocate));
  ASSERT_TRUE(client.SendRequest(allocate));
  v1::LocalReply reply;
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(client.Receive(&reply));
    EXPECT_EQ(reply.status().code(),
              static_cast<int>(absl::StatusCode::kResourceExhausted))
        << reply.ShortDebugString();
  }
  // Who leaves in between harms nobody.
  allocate.set_allocate(uint64_t{48} << 20);
  ASSERT_TRUE(client.SendRequest(allocate));
  client.Disconnect();
  EXPECT_TRUE(WaitFor([&] { return daemon.sessions() == 0; }));
}

}  // namespace
}  // namespace holdfast
