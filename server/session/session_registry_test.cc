// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The table of sessions, with a worker that does not run: the test says what
// time it is and whose turn.
#include "server/session/session_registry.h"

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/steady_time.h"
#include "proto/version.h"
#include "server/exec/cpu_device.h"
#include "server/exec/worker.h"
#include "server/session/scripted_session.h"

namespace holdfast {
namespace {

using testing::HasSubstr;

class SessionRegistryTest : public testing::Test {
 protected:
  SessionRegistryTest()
      : device_(NewCpuDevice(1)),
        worker_({}),
        registry_(device_.get(), &worker_, ServerLimits()),
        now_(SteadyNow()) {}

  static v1::HelloRequest Greeting(const std::string& name) {
    v1::HelloRequest request;
    request.set_min_version(kProtocolVersion);
    request.set_max_version(kProtocolVersion);
    request.set_session_name(name);
    request.set_grace_seconds(60);
    return request;
  }
  static v1::HelloRequest Attaching(const std::string& name) {
    v1::HelloRequest request = Greeting(name);
    request.set_attach(true);
    return request;
  }
  // A session with a connection over `wire`.
  std::shared_ptr<Session> Open(Wire* wire, const std::string& name = "") {
    const v1::HelloRequest request = Greeting(name);
    auto welcome = registry_.Hello(request, peer_, /*local=*/false);
    EXPECT_TRUE(welcome.ok()) << welcome.status();
    registry_.Connect(welcome->session, welcome->session->token(),
                      std::make_unique<ScriptedConnection>(wire));
    return welcome->session;
  }
  static v1::GoodbyeRequest Leaving(const std::string& token) {
    v1::GoodbyeRequest request;
    request.set_session_token(token);
    request.set_keep(true);
    return request;
  }
  static v1::Batch SomeWork() {
    v1::Batch batch;
    batch.set_sequence(1);
    batch.add_commands()->mutable_read()->set_id(1);
    return batch;
  }
  void AllowIdle(double seconds) {
    v1::AdminRequest::SetLimits request;
    request.mutable_limits()->set_idle_seconds(seconds);
    ASSERT_TRUE(registry_.SetLimits(request).ok());
  }
  // As a Ticker does it, once a second.
  void Tick(int seconds) {
    for (int i = 0; i < seconds; ++i) {
      now_ += absl::Seconds(1);
      registry_.ExpireSessions(now_);
    }
  }

  const Peer peer_ = {{"ada", Role::kUser}, "none"};
  std::unique_ptr<Device> device_;
  Worker worker_;
  SessionRegistry registry_;
  SteadyTime now_;
};

TEST_F(SessionRegistryTest, SessionsAreListedByNumber) {
  std::vector<Wire> wires(20);
  std::vector<uint64_t> opened, listed;
  for (Wire& wire : wires) opened.push_back(Open(&wire)->options().id);
  const v1::StatsReply stats = registry_.StatsFor(peer_.user, {});
  for (const v1::SessionStats& session : stats.sessions()) {
    listed.push_back(session.id());
  }
  EXPECT_EQ(listed, opened);
  registry_.Shutdown();
}

TEST_F(SessionRegistryTest, AnIdleSessionEndsAndOneWhoseWorkWaitsDoesNot) {
  AllowIdle(10);
  Wire idle_wire, busy_wire;
  const auto idle = Open(&idle_wire), busy = Open(&busy_wire);
  Tick(9);
  EXPECT_FALSE(idle->ended());
  busy_wire.batches.push_back(SomeWork());
  Tick(3);
  EXPECT_TRUE(idle->ended());
  ASSERT_FALSE(idle_wire.events.empty());
  EXPECT_THAT(idle_wire.events.back().session_error().message(),
              HasSubstr("may be idle for 10 s"));
  EXPECT_FALSE(busy->ended());
  registry_.Shutdown();
}

TEST_F(SessionRegistryTest, WhenTheDaemonIsHeldUpNobodyIsIdle) {
  AllowIdle(10);
  Wire wire;
  const auto session = Open(&wire);
  Tick(5);
  now_ += absl::Minutes(10);  // somebody's op, or the machine stood still
  Tick(1);
  EXPECT_FALSE(session->ended());
  Tick(4);
  EXPECT_FALSE(session->ended());
  Tick(3);
  EXPECT_TRUE(session->ended());
  registry_.Shutdown();
}

TEST_F(SessionRegistryTest, WhoLeavesWithWorkIsAnsweredWhenItIsDone) {
  Wire wire;
  const auto session = Open(&wire, "nine");
  wire.batches.push_back(SomeWork());
  bool answered = false;
  const std::string token = session->token();
  const auto now =
      registry_.Goodbye(Leaving(token), peer_.user, [&] { answered = true; });
  EXPECT_EQ(now, std::nullopt);
  EXPECT_TRUE(session->connected());
  EXPECT_FALSE(answered);
  session->RunSome({});
  EXPECT_FALSE(answered) << "a slice of no commands";
  session->RunSome({100});
  EXPECT_TRUE(answered);
  EXPECT_FALSE(session->connected());
  EXPECT_EQ(wire.events.size(), 1u);
  // Asked again, after a cut: yes, it has left.
  bool again = false;
  EXPECT_EQ(
      registry_.Goodbye(Leaving(token), peer_.user, [&] { again = true; }),
      std::nullopt);
  EXPECT_TRUE(again);
  registry_.Shutdown();
}

TEST_F(SessionRegistryTest, WhoLeavesIsAnsweredWhateverEndsTheSession) {
  Wire wire;
  const auto session = Open(&wire, "nine");
  wire.batches.push_back(SomeWork());
  bool answered = false;
  EXPECT_EQ(registry_.Goodbye(Leaving(session->token()), peer_.user,
                              [&] { answered = true; }),
            std::nullopt);
  registry_.End(session, absl::AbortedError("killed"));
  EXPECT_TRUE(answered);
  registry_.Shutdown();
}

TEST_F(SessionRegistryTest, WhoLeavesWithoutWorkIsAnsweredAtOnce) {
  Wire wire;
  const auto session = Open(&wire, "nine");
  bool answered = false;
  const auto now = registry_.Goodbye(Leaving(session->token()), peer_.user,
                                     [&] { answered = true; });
  EXPECT_EQ(now, std::nullopt);
  EXPECT_TRUE(answered);
  EXPECT_FALSE(session->connected());
  registry_.Shutdown();
}

// The numbers are those of a review that found the defects.

TEST_F(SessionRegistryTest, Review11WhoTakesOverAndDoesNotComeDestroysNothing) {
  Wire wire;
  const auto session = Open(&wire, "nine");
  Tick(40);  // longer ago than a new session may wait for its first connection
  ASSERT_TRUE(registry_.Hello(Attaching("nine"), peer_, false).ok());
  Tick(20);  // no stream comes
  EXPECT_FALSE(session->ended());
  EXPECT_TRUE(registry_.Hello(Attaching("nine"), peer_, false).ok());
  registry_.Shutdown();
}

TEST_F(SessionRegistryTest, Review11ALeavingSessionThatIsTakenOverStays) {
  Wire wire;
  const auto session = Open(&wire, "nine");
  Tick(40);
  wire.batches.push_back(SomeWork());
  bool answered = false;
  EXPECT_EQ(registry_.Goodbye(Leaving(session->token()), peer_.user,
                              [&] { answered = true; }),
            std::nullopt);
  ASSERT_TRUE(registry_.Hello(Attaching("nine"), peer_, false).ok());
  EXPECT_TRUE(answered);
  Tick(3600);
  EXPECT_FALSE(session->ended()) << "it was left until somebody ends it";
  registry_.Shutdown();
}

TEST_F(SessionRegistryTest, Review13NoGraceIsLongerThanTheDaemonAllows) {
  v1::HelloRequest request = Greeting("");
  request.set_grace_seconds(-1);
  auto welcome = registry_.Hello(request, peer_, false);
  ASSERT_TRUE(welcome.ok()) << welcome.status();
  EXPECT_EQ(welcome->reply.grace_seconds(), 3600);
  Tick(3601);
  EXPECT_TRUE(welcome->session->ended());
  request.set_grace_seconds(std::numeric_limits<double>::quiet_NaN());
  const absl::Status refused = registry_.Hello(request, peer_, false).status();
  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(refused.message()), HasSubstr("Got nan"));
  registry_.Shutdown();
}

TEST_F(SessionRegistryTest, Review15TwoGoodbyesAtOnceAreBothAnswered) {
  Wire wire;
  const auto session = Open(&wire, "nine");
  wire.batches.push_back(SomeWork());
  int answered = 0;
  const v1::GoodbyeRequest goodbye = Leaving(session->token());
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(registry_.Goodbye(goodbye, peer_.user, [&] { ++answered; }),
              std::nullopt);
  }
  session->RunSome({100});
  EXPECT_EQ(answered, 2);
  registry_.Shutdown();
}

TEST_F(SessionRegistryTest, Review15AGoodbyeEndsNoOtherClientsSession) {
  Wire wire;
  const auto session = Open(&wire, "nine");
  v1::GoodbyeRequest goodbye;
  goodbye.set_session_token(session->token());
  ASSERT_TRUE(registry_.Hello(Attaching("nine"), peer_, false).ok());
  EXPECT_EQ(registry_.Goodbye(goodbye, peer_.user, [] {})->code(),
            absl::StatusCode::kNotFound);
  EXPECT_FALSE(session->ended());
  registry_.Shutdown();
}

TEST_F(SessionRegistryTest, TheStreamOfAFormerClientTakesNothingOver) {
  Wire wire, late, mine;
  const auto session = Open(&wire, "nine");
  const std::string former = session->token();
  auto welcome = registry_.Hello(Attaching("nine"), peer_, false);
  ASSERT_TRUE(welcome.ok());
  registry_.Connect(session, former,
                    std::make_unique<ScriptedConnection>(&late));
  EXPECT_TRUE(late.closed);
  registry_.Connect(session, welcome->reply.session_token(),
                    std::make_unique<ScriptedConnection>(&mine));
  EXPECT_FALSE(mine.closed);
  EXPECT_TRUE(session->connected());
  registry_.Shutdown();
}

TEST_F(SessionRegistryTest, WhatIsKeptOutlivesAClientThatBreaksTheProtocol) {
  Wire wire;
  const auto session = Open(&wire, "nine");
  v1::Batch batch;
  batch.set_sequence(1);
  v1::Put* put = batch.add_commands()->mutable_put();
  put->set_handle(1);
  put->mutable_spec()->set_dtype(v1::DTYPE_FLOAT32);
  put->set_data(std::string(4, 1));
  batch.add_commands()->mutable_keep()->set_name("w");
  batch.mutable_commands(1)->mutable_keep()->set_handle(1);
  wire.batches.push_back(batch);
  batch.Clear();
  batch.set_sequence(7);  // out of order
  wire.batches.push_back(batch);
  session->RunSome({100});
  EXPECT_TRUE(wire.closed);
  EXPECT_FALSE(session->ended());
  v1::HelloRequest again = Greeting("");
  again.set_session_token(session->token());
  const absl::Status away = registry_.Hello(again, peer_, false).status();
  EXPECT_EQ(away.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(away.message(), HasSubstr("sent this client away from session"));
  auto welcome = registry_.Hello(Attaching("nine"), peer_, false);
  ASSERT_TRUE(welcome.ok()) << welcome.status();
  EXPECT_EQ(welcome->reply.kept_size(), 1);
  Tick(70);
  EXPECT_TRUE(session->ended()) << "for its grace period";
  registry_.Shutdown();
}

}  // namespace
}  // namespace holdfast
