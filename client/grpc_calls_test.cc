// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "client/grpc_calls.h"

#include "gtest/gtest.h"

namespace holdfast::client {
namespace {

// kCancelled is Ctrl-C here; a daemon that ends, or starts again, cancels
// calls.
TEST(FromGrpcTest, WhatTheDaemonCancelsIsNotTheUsersDoing) {
  const absl::Status status =
      FromGrpc(grpc::Status(grpc::StatusCode::CANCELLED, "CANCELLED"));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(status.message(), "the call was cut off: CANCELLED");
}

TEST(FromGrpcTest, OtherCodesAreKept) {
  EXPECT_TRUE(FromGrpc(grpc::Status::OK).ok());
  const absl::Status status =
      FromGrpc(grpc::Status(grpc::StatusCode::NOT_FOUND, "[hello] gone"));
  EXPECT_EQ(status.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(status.message(), "[hello] gone");
}

TEST(GrpcTargetTest, ASocketIsWhatGrpcCallsIt) {
  EXPECT_EQ(GrpcTarget("grpc+unix:/run/x"), "unix:/run/x");
  EXPECT_EQ(GrpcTarget("box:50151"), "box:50151");
}

TEST(IsCutTest, WhatEndsWellWasNotCut) {
  EXPECT_FALSE(IsCut(grpc::Status::OK));
  EXPECT_TRUE(IsCut(grpc::Status(grpc::StatusCode::UNAVAILABLE, "reset")));
  EXPECT_FALSE(IsCut(grpc::Status(grpc::StatusCode::NOT_FOUND, "gone")));
}

// gRPC ends calls of whom it likes when it is short of memory.
TEST(IsCutTest, WhatTheDaemonsGrpcShedIsNotTheSessionsEnd) {
  EXPECT_TRUE(IsCut(grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED,
                                 "Received RST_STREAM with error code 11")));
  EXPECT_FALSE(IsCut(grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED,
                                  "[hello] alice may have 2 sessions")));
}

}  // namespace
}  // namespace holdfast::client
