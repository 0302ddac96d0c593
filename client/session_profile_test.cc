// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Profiles as a client sees them whose daemon is odd; with a real one they are
// tested from Python.
#include "client/fake_connection_test.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/profile_clock.h"

namespace holdfast::client {
namespace {

using testing::HasSubstr;

class SessionProfileTest : public testing::Test {
 protected:
  SessionProfileTest()
      : peer_(std::make_shared<FakeConnection::Peer>()),
        session_(MakeFakeSession(peer_, {})) {}

  std::shared_ptr<FakeConnection::Peer> peer_;
  std::shared_ptr<Session> session_;
};

TEST_F(SessionProfileTest, ADaemonThatDoesNotKnowProfilesIsToldByName) {
  // It answers the read as one that names no tensor: without data.
  const absl::Status status = session_->StartProfile({}, nullptr);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
  EXPECT_THAT(std::string(status.message()), HasSubstr("must know profiling"));
  EXPECT_TRUE(session_->Synchronize(nullptr).ok());
}

TEST_F(SessionProfileTest, StopWithoutStart) {
  EXPECT_EQ(session_->StopProfile(nullptr).status().code(),
            absl::StatusCode::kFailedPrecondition);
}

TEST_F(SessionProfileTest, ClocksOfTwoMachinesBecomeOne) {
  // Its clock is an hour ahead.
  constexpr int64_t kAhead = int64_t{3600} * 1000 * 1000 * 1000;
  int records = 0;  // to come
  {
    std::lock_guard<std::mutex> lock(peer_->mutex);
    peer_->profile = [&records] {
      wire::ProfileChunk chunk;
      chunk.set_now_ns(ProfileNow() + kAhead);
      if (records == 0) return chunk;
      wire::ProfileRecord* record = chunk.add_records();
      record->set_op(1u << 31);  // one that we have never heard of
      record->set_start_ns(ProfileNow() + kAhead);
      record->set_duration_ns(5);
      record->add_input_shapes()->add_values(-1);
      chunk.set_more(--records > 0);
      chunk.set_dropped(3);
      return chunk;
    };
  }
  ASSERT_TRUE(session_->StartProfile({}, nullptr).ok());
  EXPECT_EQ(session_->StartProfile({}, nullptr).code(),
            absl::StatusCode::kFailedPrecondition);
  records = 2;
  const int64_t before = ProfileNow();
  absl::StatusOr<Profile> profile = session_->StopProfile(nullptr);
  ASSERT_TRUE(profile.ok()) << profile.status();
  ASSERT_EQ(profile->executions.size(), 2u);
  EXPECT_EQ(profile->dropped_executions, 3u);
  EXPECT_EQ(profile->executions[0].name, "2147483648");
  const int64_t error = profile->clock_error_ns;
  EXPECT_GE(error, 0);
  EXPECT_LE(std::abs(profile->clock_offset_ns + kAhead), error);
  for (const Execution& execution : profile->executions) {
    EXPECT_GE(execution.start_ns, before - error);
    EXPECT_LE(execution.start_ns, ProfileNow() + error);
  }
}

}  // namespace
}  // namespace holdfast::client
