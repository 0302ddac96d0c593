// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Whoever asks for a session in the moment in which the program before it has
// died gets it, over all pairs of transports: the worker, which is held here,
// hears of the death later.
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <tuple>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "proto/holdfast.grpc.pb.h"
#include "proto/version.h"
#include "server/transport/test_daemon.h"
#include "server/transport/test_local_client.h"

namespace holdfast {
namespace {

constexpr absl::Duration kMoment = absl::Milliseconds(100);
const char* const kTransports[] = {"shm", "grpc"};

v1::HelloRequest WantsWork(double grace) {
  v1::HelloRequest request = TestLocalClient::HelloRequest().hello();
  request.set_session_name("work");
  request.set_attach_if_away(true);
  request.set_grace_seconds(grace);
  return request;
}

// A program with a session, or that asks for one.
class Program {
 public:
  virtual ~Program() = default;
  virtual v1::HelloReply Hello(const v1::HelloRequest& request) = 0;
  virtual void Die() = 0;
};

class LocalProgram final : public Program {
 public:
  explicit LocalProgram(const std::string& path) : client_(path) {}
  v1::HelloReply Hello(const v1::HelloRequest& hello) override {
    v1::LocalRequest request;
    *request.mutable_hello() = hello;
    const v1::LocalReply reply = client_.Call(request);
    v1::HelloReply answer = reply.hello();
    if (!reply.has_hello()) *answer.mutable_status() = reply.status();
    return answer;
  }
  void Die() override { client_.Disconnect(); }

 private:
  TestLocalClient client_;
};

class RemoteProgram final : public Program {
 public:
  explicit RemoteProgram(const std::string& address) {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    stub_ = v1::Holdfast::NewStub(grpc::CreateCustomChannel(
        address, grpc::InsecureChannelCredentials(), arguments));
  }
  ~RemoteProgram() override { Die(); }
  v1::HelloReply Hello(const v1::HelloRequest& request) override {
    grpc::ClientContext context;
    v1::HelloReply reply;
    const grpc::Status status = stub_->Hello(&context, request, &reply);
    if (!status.ok()) reply.mutable_status()->set_code(status.error_code());
    if (reply.has_status()) return reply;
    context_ = std::make_unique<grpc::ClientContext>();
    context_->AddMetadata("holdfast-session", reply.session_token());
    stream_ = stub_->Stream(context_.get());
    return reply;
  }
  void Die() override {
    if (stream_ == nullptr) return;
    context_->TryCancel();
    stream_->Finish();
    stream_.reset();
    stub_.reset();  // and its connection
  }

 private:
  std::unique_ptr<v1::Holdfast::Stub> stub_;
  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<grpc::ClientReaderWriter<v1::Batch, v1::Event>> stream_;
};

class DeadClientTest
    : public testing::TestWithParam<std::tuple<const char*, const char*>> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(daemon_.StartLocal().ok());
    ASSERT_TRUE(daemon_.StartGrpc().ok());
    first_ = New(std::get<0>(GetParam()));
    second_ = New(std::get<1>(GetParam()));
  }
  void TearDown() override {
    go_.store(true);
    if (let_go_.joinable()) let_go_.join();
  }

  std::unique_ptr<Program> New(const std::string& transport) {
    if (transport == "shm") {
      return std::make_unique<LocalProgram>(daemon_.socket_path());
    }
    return std::make_unique<RemoteProgram>(daemon_.grpc()->address());
  }
  std::shared_ptr<Session> session() {
    return daemon_.registry()->Sessions().at(0);
  }
  void Use(double grace) {
    const v1::HelloReply reply = first_->Hello(WantsWork(grace));
    ASSERT_FALSE(reply.has_status()) << reply.ShortDebugString();
    ASSERT_TRUE(WaitFor([&] { return session()->life()->connected(); }));
  }
  // The worker hears of nothing meanwhile.
  void HoldWorkerFor(absl::Duration time) {
    std::atomic<bool> held{false};
    daemon_.registry()->worker()->Post([this, &held] {
      held.store(true);
      while (!go_.load()) std::this_thread::yield();
    });
    while (!held.load()) std::this_thread::yield();
    let_go_ = std::thread([this, time] {
      absl::SleepFor(time);
      go_.store(true);
    });
  }
  void Die() {
    first_->Die();
    // A connection within this process takes a moment to be seen as closed.
    ASSERT_TRUE(WaitFor([&] { return session()->client_is_gone(); }));
  }

  TestDaemon daemon_;
  std::unique_ptr<Program> first_, second_;
  std::atomic<bool> go_{false};
  std::thread let_go_;
};

TEST_P(DeadClientTest, ItsSessionIsTheNextOnes) {
  Use(/*grace=*/60);
  HoldWorkerFor(kMoment);
  Die();
  const v1::HelloReply reply = second_->Hello(WantsWork(60));
  EXPECT_FALSE(reply.has_status()) << reply.ShortDebugString();
  EXPECT_TRUE(reply.attached());
  EXPECT_EQ(daemon_.sessions(), 1);
}

TEST_P(DeadClientTest, WithoutGraceThereIsANewOne) {
  Use(/*grace=*/0);
  HoldWorkerFor(kMoment);
  Die();
  const v1::HelloReply reply = second_->Hello(WantsWork(0));
  EXPECT_FALSE(reply.has_status()) << reply.ShortDebugString();
  EXPECT_FALSE(reply.attached());
}

// As when the worker is at a long op of the program that is dead.
TEST_P(DeadClientTest, TheWorkerMayTakeLong) {
  Use(/*grace=*/60);
  HoldWorkerFor(absl::Seconds(3));
  Die();
  const v1::HelloReply reply = second_->Hello(WantsWork(60));
  EXPECT_FALSE(reply.has_status()) << reply.ShortDebugString();
  EXPECT_TRUE(reply.attached());
}

TEST_P(DeadClientTest, WhoLivesKeepsIt) {
  Use(/*grace=*/60);
  EXPECT_FALSE(session()->client_is_gone());
  const v1::HelloReply reply = second_->Hello(WantsWork(60));
  EXPECT_EQ(reply.status().code(),
            static_cast<int>(absl::StatusCode::kAlreadyExists))
      << reply.ShortDebugString();
}

INSTANTIATE_TEST_SUITE_P(Transports, DeadClientTest,
                         testing::Combine(testing::ValuesIn(kTransports),
                                          testing::ValuesIn(kTransports)),
                         [](const auto& info) {
                           return std::string(std::get<0>(info.param)) +
                                  "_to_" + std::get<1>(info.param);
                         });

}  // namespace
}  // namespace holdfast
