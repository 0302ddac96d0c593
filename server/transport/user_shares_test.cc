// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Two users of one daemon, and strangers: who takes all that he can of
// connections and threads leaves the other theirs.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "proto/holdfast.grpc.pb.h"
#include "proto/version.h"
#include "server/transport/errands.h"
#include "server/transport/grpc_methods.h"
#include "server/transport/test_daemon.h"

namespace holdfast {
namespace {

// hf_1_alice and hf_2_bob.
constexpr char kTokens[] =
    "00000001 alice user "
    "e899fe6f506f654511306e8e0e01eb04029dc3d6b1f47f813f39a871e84329bb 1 0\n"
    "00000002 bob user "
    "bbdb788a890d2f1f38980796c49784754d503d11fe5be00b4558e907e5562fdc 1 0\n";
constexpr uint64_t kMaxStrangers = 8;

class UserSharesTest : public testing::Test {
 protected:
  UserSharesTest() {
    char path[] = "/tmp/holdfast_tokens_XXXXXX";
    close(mkstemp(path));
    path_ = path;
    std::ofstream(path_) << kTokens;
    Authenticator::Options options;
    options.token_file = path_;
    std::shared_ptr<Authenticator> trust = *Authenticator::Create(options);
    daemon_ = std::make_unique<TestDaemon>(TestDaemon::Limits(), trust);
  }
  ~UserSharesTest() override { unlink(path_.c_str()); }
  void SetUp() override { ASSERT_TRUE(daemon_->StartGrpc(kMaxStrangers).ok()); }

  // A connection of its own each.
  std::shared_ptr<grpc::Channel> Connect() {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel(daemon_->grpc()->address(),
                                     grpc::InsecureChannelCredentials(),
                                     arguments);
  }
  grpc::Status Ask(const std::shared_ptr<grpc::Channel>& channel,
                   const std::string& token) {
    grpc::ClientContext context;
    context.AddMetadata("authorization", "Bearer " + token);
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::seconds(60));
    v1::StatsReply reply;
    return v1::Holdfast::NewStub(channel)->Stats(&context, {}, &reply);
  }
  int Dial() {
    const std::string& address = daemon_->grpc()->address();
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in name = {};
    name.sin_family = AF_INET;
    name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    name.sin_port = htons(static_cast<uint16_t>(
        std::atoi(address.c_str() + address.rfind(':') + 1)));
    EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&name), sizeof(name)), 0);
    return fd;
  }
  static bool Open(int fd) {
    char bytes[256];
    ssize_t n;
    // gRPC says something first.
    while ((n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0) {
    }
    return n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
  }

  const std::string alice_ = "hf_1_alice", bob_ = "hf_2_bob";
  std::string path_;
  std::unique_ptr<TestDaemon> daemon_;
};

TEST_F(UserSharesTest, ConnectionsOverGrpcAreAUsers) {
  v1::AdminRequest::SetLimits limits;
  limits.mutable_limits()->set_max_connections(3);
  ASSERT_TRUE(daemon_->registry()->SetLimits(limits).ok());
  std::vector<std::shared_ptr<grpc::Channel>> taken;
  for (int i = 0; i < 3; ++i) {
    taken.push_back(Connect());
    ASSERT_TRUE(Ask(taken.back(), alice_).ok());
  }
  const auto refused = Connect();
  const grpc::Status status = Ask(refused, alice_);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_NE(status.error_message().find("has 3"), std::string::npos)
      << status.error_message();
  EXPECT_TRUE(Ask(Connect(), bob_).ok());
  // More calls on those that she has are none of it.
  EXPECT_TRUE(Ask(taken.front(), alice_).ok());
  taken.pop_back();
  EXPECT_TRUE(WaitFor([&] { return Ask(refused, alice_).ok(); }));
}

TEST_F(UserSharesTest, StrangersLeaveRoomForWhoHasAToken) {
  const auto alice = Connect();
  ASSERT_TRUE(Ask(alice, alice_).ok());
  std::vector<int> strangers;
  for (int i = 0; i < 100; ++i) strangers.push_back(Dial());
  EXPECT_TRUE(Ask(Connect(), bob_).ok());
  EXPECT_TRUE(Ask(alice, alice_).ok());
  // All of them come from one place, which has half of a stranger's share.
  const auto open = [&] {
    uint64_t count = 0;
    for (const int fd : strangers) count += Open(fd) ? 1 : 0;
    return count;
  };
  EXPECT_TRUE(WaitFor([&] { return open() <= kMaxStrangers / 2; }));
  for (const int fd : strangers) close(fd);
}

TEST_F(UserSharesTest, AConnectionIsThatOfWhoShowsCredentials) {
  // It would have been among the oldest.
  const auto alice = Connect();
  EXPECT_EQ(Ask(alice, "hf_3_eve").error_code(),
            grpc::StatusCode::UNAUTHENTICATED);
  ASSERT_TRUE(Ask(alice, alice_).ok());
  const auto state = alice->GetState(false);
  std::vector<int> strangers;
  for (int i = 0; i < 50; ++i) strangers.push_back(Dial());
  ASSERT_TRUE(Ask(Connect(), bob_).ok());
  EXPECT_EQ(alice->GetState(false), state);
  for (const int fd : strangers) close(fd);
}

// Who is to be refused is, before anything of what is asked has come: else
// strangers fill what gRPC has for the messages of all.
TEST_F(UserSharesTest, StrangersRequestsAreNotWaitedFor) {
  for (const char* method : {"Hello", "Stream", "Upload", "Download", "Goodbye",
                             "Cancel", "Stats"}) {
    const auto channel = Connect();
    grpc::GenericStub stub(channel);
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::seconds(20));
    grpc::CompletionQueue queue;
    void* tag = nullptr;
    bool ok = false;
    auto call = stub.PrepareCall(
        &context, std::string("/holdfast.v1.Holdfast/") + method, &queue);
    call->StartCall(nullptr);
    queue.Next(&tag, &ok);
    grpc::ByteBuffer reply;
    do {  // Hello refuses in a reply
      call->Read(&reply, nullptr);
      queue.Next(&tag, &ok);
    } while (ok);
    grpc::Status status;
    call->Finish(&status, nullptr);
    queue.Next(&tag, &ok);
    EXPECT_NE(status.error_code(), grpc::StatusCode::DEADLINE_EXCEEDED)
        << method;
    queue.Shutdown();
    while (queue.Next(&tag, &ok)) {
    }
  }
}

TEST(MessageTurnsTest, AUserHasSoMany) {
  MessageTurns turns(2);
  std::vector<int> begun;
  for (int i = 0; i < 5; ++i) {
    turns.Begin("alice", [&begun, i] { begun.push_back(i); });
  }
  turns.Begin("bob", [&begun] { begun.push_back(100); });
  EXPECT_EQ(begun, std::vector<int>({0, 1, 100}));
  turns.End("alice");
  turns.End("alice");
  turns.End("alice");
  EXPECT_EQ(begun, std::vector<int>({0, 1, 100, 2, 3, 4}));
  turns.End("alice");
  turns.End("alice");
  turns.Begin("alice", [&begun] { begun.push_back(5); });
  EXPECT_EQ(begun.back(), 5);
}

TEST(ErrandsTest, AUserHasSoManyThreads) {
  Errands errands(2);
  absl::Notification go;
  std::atomic<int> inside{0}, done{0};
  for (int i = 0; i < 50; ++i) {
    errands.Run("alice", [&] {
      ++inside;
      go.WaitForNotification();
      ++done;
    });
  }
  EXPECT_TRUE(WaitFor([&] { return inside == 2; }));
  absl::Notification other;
  errands.Run("bob", [&] { other.Notify(); });
  other.WaitForNotification();
  EXPECT_EQ(inside, 2);
  EXPECT_EQ(done, 0);
  go.Notify();
  errands.Finish();
  EXPECT_EQ(done, 50);
}

TEST(ErrandsTest, OnOneThreadTheyAreDoneInOrder) {
  Errands errands(1);
  std::vector<int> order;
  for (int i = 0; i < 100; ++i) {
    errands.Run("alice", [&order, i] { order.push_back(i); });
  }
  errands.Finish();
  ASSERT_EQ(order.size(), 100u);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(order[i], i);
}

}  // namespace
}  // namespace holdfast
