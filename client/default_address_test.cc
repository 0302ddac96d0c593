// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "client/default_address.h"

#include <cstdlib>
#include <string>

#include "client/session.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace holdfast::client {
namespace {

using ::testing::HasSubstr;

class DefaultAddressTest : public ::testing::Test {
 protected:
  void SetUp() override {
    unsetenv("HOLDFAST_ADDRESS");
    setenv("HOLDFAST_SOCKET", "/nowhere/default.sock", 1);
  }
};

TEST_F(DefaultAddressTest, NothingMeansAnyDaemon) {
  const absl::StatusOr<Target> target = ParseAddress("");
  ASSERT_TRUE(target.ok());
  EXPECT_EQ(target->kind, Target::kAny);
  EXPECT_EQ(target->where, "/nowhere/default.sock");
}

TEST_F(DefaultAddressTest, TheVariableStandsIn) {
  setenv("HOLDFAST_ADDRESS", "box:50151", 1);
  EXPECT_EQ(ParseAddress("")->where, "box:50151");
  // What the program says comes first.
  EXPECT_EQ(ParseAddress("unix:/a.sock")->where, "/a.sock");
  setenv("HOLDFAST_ADDRESS", "", 1);
  EXPECT_EQ(ParseAddress("")->kind, Target::kAny);
}

TEST_F(DefaultAddressTest, Spellings) {
  EXPECT_EQ(ParseAddress("unix:/run/x")->kind, Target::kSocket);
  EXPECT_EQ(ParseAddress("unix:///run/x")->where, "/run/x");
  EXPECT_EQ(ParseAddress("unix:relative.sock")->where, "relative.sock");
  for (const char* address :
       {"localhost:1", "10.0.0.1:65535", "[::1]:50151", "a.b.c:80"}) {
    const absl::StatusOr<Target> target = ParseAddress(address);
    ASSERT_TRUE(target.ok()) << address;
    EXPECT_EQ(target->kind, Target::kNetwork);
    EXPECT_EQ(target->where, address);
  }
  EXPECT_EQ(ParseAddress("grpc://box:9")->where, "box:9");
  // gRPC over a socket, which ssh forwards: another thing than shared memory.
  const absl::StatusOr<Target> forwarded = ParseAddress("grpc+unix:/run/x");
  ASSERT_TRUE(forwarded.ok());
  EXPECT_EQ(forwarded->kind, Target::kNetwork);
  EXPECT_EQ(forwarded->where, "grpc+unix:/run/x");
}

TEST_F(DefaultAddressTest, MistakesNameTheirOrigin) {
  for (const char* address :
       {"box", "box:", ":1", "box:x", "box:0", "box:65536", "http://box:1",
        "unix:", "/path", "grpc+unix:"}) {
    const absl::StatusOr<Target> target = ParseAddress(address);
    ASSERT_FALSE(target.ok()) << address;
    EXPECT_THAT(target.status().message(), HasSubstr(address));
  }
  setenv("HOLDFAST_ADDRESS", "nonsense", 1);
  EXPECT_THAT(ParseAddress("").status().message(),
              HasSubstr("HOLDFAST_ADDRESS"));
}

// No daemon and none to start: the error says what can be done.
TEST_F(DefaultAddressTest, NoDaemonAnywhere) {
  setenv("HOLDFAST_DAEMON", "/nowhere/holdfastd", 1);
  absl::Status status = Session::Connect({}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("HOLDFAST_DAEMON"));

  unsetenv("HOLDFAST_DAEMON");
  setenv("PATH", "/nowhere", 1);
  status = Session::Connect({}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(status.message(), HasSubstr("HOLDFAST_ADDRESS"));

  ConnectOptions attach;
  attach.attach = true;
  EXPECT_EQ(Session::Connect(attach).status().code(),
            absl::StatusCode::kUnavailable);
  ConnectOptions socket;
  socket.address = "unix:/nowhere/x.sock";
  status = Session::Connect(socket).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("/nowhere/x.sock"));
}

// A daemon that ends at once is told with its last words.
TEST_F(DefaultAddressTest, DaemonThatFails) {
  setenv("HOLDFAST_DAEMON", "/bin/false", 1);
  EXPECT_THAT(Session::Connect({}).status().message(),
              HasSubstr("ended at once"));
}

}  // namespace
}  // namespace holdfast::client
