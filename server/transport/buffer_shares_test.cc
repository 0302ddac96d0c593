// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// What transports hold for sessions is bounded by their user's memory limit:
// rings, and messages of gRPC's that have come in part.
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "proto/holdfast.grpc.pb.h"
#include "proto/version.h"
#include "server/transport/test_daemon.h"
#include "server/transport/test_local_client.h"

namespace holdfast {
namespace {

constexpr uint64_t kLimit = uint64_t{100} << 20;
// A few may be had in any case, and the others find room in the limit.
constexpr size_t kLeast = 16, kMost = 32;

class BufferSharesTest : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(daemon_.StartLocal().ok());
    ASSERT_TRUE(daemon_.StartGrpc().ok());
    v1::AdminRequest::SetLimits limits;
    limits.mutable_limits()->set_memory_bytes(kLimit);
    ASSERT_TRUE(daemon_.registry()->SetLimits(limits).ok());
  }
  // Opens sessions until one is refused; how many there are then.
  size_t OpenAll(const std::function<v1::Status()>& open) {
    for (size_t count = 0; count < 4 * kMost; ++count) {
      const v1::Status status = open();
      if (status.code() == 0) continue;
      EXPECT_EQ(status.code(),
                static_cast<int>(absl::StatusCode::kResourceExhausted));
      EXPECT_NE(status.message().find("buffers"), std::string::npos)
          << status.message();
      return count;
    }
    return 4 * kMost;
  }

  TestDaemon daemon_;
};

TEST_F(BufferSharesTest, Rings) {
  std::vector<std::unique_ptr<TestLocalClient>> clients;
  const auto open = [&] {
    auto client = std::make_unique<TestLocalClient>(daemon_.socket_path());
    const v1::LocalReply reply = client->Hello();
    clients.push_back(std::move(client));
    return reply.status();
  };
  const size_t count = OpenAll(open);
  EXPECT_GE(count, kLeast);
  EXPECT_LE(count, kMost);
  // One that leaves makes room.
  clients.erase(clients.begin(), clients.begin() + 3);
  EXPECT_TRUE(WaitFor([&] { return open().code() == 0; }));
}

TEST_F(BufferSharesTest, MessagesOfStreams) {
  struct Client {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReaderWriter<v1::Batch, v1::Event>> stream;
  };
  std::vector<std::unique_ptr<Client>> clients;
  const auto stub = v1::Holdfast::NewStub(grpc::CreateChannel(
      daemon_.grpc()->address(), grpc::InsecureChannelCredentials()));
  const auto open = [&] {
    grpc::ClientContext context;
    v1::HelloReply reply;
    EXPECT_TRUE(
        stub->Hello(&context, TestLocalClient::HelloRequest().hello(), &reply)
            .ok());
    if (reply.has_status()) return reply.status();
    auto client = std::make_unique<Client>();
    client->context.AddMetadata("holdfast-session", reply.session_token());
    client->stream = stub->Stream(&client->context);
    clients.push_back(std::move(client));
    return v1::Status();
  };
  const size_t count = OpenAll(open);
  EXPECT_GE(count, kLeast);
  EXPECT_LE(count, kMost);
  for (const auto& client : clients) client->context.TryCancel();
  for (const auto& client : clients) client->stream->Finish();
}

}  // namespace
}  // namespace holdfast
