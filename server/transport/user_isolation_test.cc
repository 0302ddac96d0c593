// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Two users over gRPC: whatever bob learns of alice's session, its token
// included, he can do nothing with it.
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>

#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "proto/admin.grpc.pb.h"
#include "proto/holdfast.grpc.pb.h"
#include "proto/version.h"
#include "server/transport/test_daemon.h"

namespace holdfast {
namespace {

// hf_1_alice and hf_2_bob.
constexpr char kTokens[] =
    "00000001 alice user "
    "e899fe6f506f654511306e8e0e01eb04029dc3d6b1f47f813f39a871e84329bb 1 0\n"
    "00000002 bob user "
    "bbdb788a890d2f1f38980796c49784754d503d11fe5be00b4558e907e5562fdc 1 0\n";

class UserIsolationTest : public testing::Test {
 protected:
  UserIsolationTest() {
    char path[] = "/tmp/holdfast_tokens_XXXXXX";
    close(mkstemp(path));
    path_ = path;
    std::ofstream(path_) << kTokens;
    Authenticator::Options options;
    options.token_file = path_;
    std::shared_ptr<Authenticator> trust = *Authenticator::Create(options);
    daemon_ = std::make_unique<TestDaemon>(TestDaemon::Limits(), trust);
  }
  ~UserIsolationTest() override { unlink(path_.c_str()); }

  void SetUp() override {
    ASSERT_TRUE(daemon_->StartGrpc().ok());
    channel_ = grpc::CreateChannel(daemon_->grpc()->address(),
                                   grpc::InsecureChannelCredentials());
    stub_ = v1::Holdfast::NewStub(channel_);
  }

  static std::unique_ptr<grpc::ClientContext> As(const std::string& token) {
    auto context = std::make_unique<grpc::ClientContext>();
    if (!token.empty()) {
      context->AddMetadata("authorization", "Bearer " + token);
    }
    context->set_deadline(std::chrono::system_clock::now() +
                          std::chrono::seconds(30));
    return context;
  }
  v1::HelloReply Hello(const std::string& user, const std::string& session = "",
                       const std::string& name = "", bool attach = false) {
    v1::HelloRequest request;
    request.set_min_version(kProtocolVersion);
    request.set_max_version(kProtocolVersion);
    request.set_session_token(session);
    request.set_session_name(name);
    request.set_attach(attach);
    request.set_grace_seconds(60);
    v1::HelloReply reply;
    EXPECT_TRUE(stub_->Hello(As(user).get(), request, &reply).ok());
    return reply;
  }
  grpc::StatusCode Stream(const std::string& user, const std::string& session) {
    auto context = As(user);
    context->AddMetadata("holdfast-session", session);
    auto stream = stub_->Stream(context.get());
    v1::Event event;
    while (stream->Read(&event)) {
    }
    return stream->Finish().error_code();
  }
  grpc::StatusCode Upload(const std::string& user, const std::string& session) {
    auto context = As(user);
    v1::UploadReply reply;
    auto writer = stub_->Upload(context.get(), &reply);
    v1::UploadChunk chunk;
    chunk.set_session_token(session);
    chunk.set_id(1);
    chunk.set_total_bytes(4);
    chunk.set_data("abcd");
    writer->Write(chunk);
    writer->WritesDone();
    return writer->Finish().error_code();
  }
  grpc::StatusCode Download(const std::string& user,
                            const std::string& session) {
    auto context = As(user);
    v1::DownloadRequest request;
    request.set_session_token(session);
    request.set_id(1);
    auto reader = stub_->Download(context.get(), request);
    v1::DownloadChunk chunk;
    while (reader->Read(&chunk)) {
    }
    return reader->Finish().error_code();
  }
  grpc::StatusCode Goodbye(const std::string& user,
                           const std::string& session) {
    v1::GoodbyeRequest request;
    request.set_session_token(session);
    v1::GoodbyeReply reply;
    return stub_->Goodbye(As(user).get(), request, &reply).error_code();
  }

  const std::string alice_ = "hf_1_alice", bob_ = "hf_2_bob";
  std::string path_;
  std::unique_ptr<TestDaemon> daemon_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Holdfast::Stub> stub_;
};

TEST_F(UserIsolationTest, AnothersSessionTokenOpensNothing) {
  const std::string session = Hello(alice_, "", "model").session_token();
  ASSERT_FALSE(session.empty());
  EXPECT_EQ(Upload(alice_, session), grpc::StatusCode::OK);
  // Exactly what a token that never was gets: bob learns nothing.
  const std::string nobody(session.size(), '0');
  for (const std::string& tried : {session, nobody}) {
    EXPECT_EQ(Hello(bob_, tried).status().code(),
              static_cast<int>(absl::StatusCode::kNotFound));
    EXPECT_EQ(Stream(bob_, tried), grpc::StatusCode::NOT_FOUND);
    EXPECT_EQ(Upload(bob_, tried), grpc::StatusCode::NOT_FOUND);
    EXPECT_EQ(Download(bob_, tried), grpc::StatusCode::NOT_FOUND);
    EXPECT_EQ(Goodbye(bob_, tried), grpc::StatusCode::NOT_FOUND);
  }
  EXPECT_EQ(Hello(bob_, "", "model", /*attach=*/true).status().code(),
            static_cast<int>(absl::StatusCode::kNotFound));
  EXPECT_EQ(Hello(alice_, session).status().code(), 0);
  EXPECT_EQ(Goodbye(alice_, session), grpc::StatusCode::OK);
}

TEST_F(UserIsolationTest, WithoutATokenNothingIsServed) {
  const std::string session = Hello(alice_).session_token();
  const int refused = static_cast<int>(absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(Hello("hf_3_eve").status().code(), refused);
  EXPECT_EQ(Hello("").status().code(), refused);
  EXPECT_EQ(Stream("", session), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(Upload("", session), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(Download("", session), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(Goodbye("", session), grpc::StatusCode::UNAUTHENTICATED);
  v1::StatsReply stats;
  EXPECT_EQ(stub_->Stats(As("").get(), {}, &stats).error_code(),
            grpc::StatusCode::UNAUTHENTICATED);
  v1::AdminReply reply;
  v1::AdminRequest request;
  request.mutable_whoami();
  EXPECT_EQ(v1::HoldfastAdmin::NewStub(channel_)
                ->Ask(As("").get(), request, &reply)
                .error_code(),
            grpc::StatusCode::UNAUTHENTICATED);
}

TEST_F(UserIsolationTest, StatsAreTheCallersOwn) {
  Hello(alice_);
  Hello(bob_);
  v1::StatsReply stats;
  ASSERT_TRUE(stub_->Stats(As(bob_).get(), {}, &stats).ok());
  ASSERT_EQ(stats.sessions_size(), 1);
  EXPECT_EQ(stats.sessions(0).user(), "bob");
}

TEST_F(UserIsolationTest, UsersAreNoAdmins) {
  const std::string session = Hello(alice_).session_token();
  const auto admin = v1::HoldfastAdmin::NewStub(channel_);
  v1::AdminRequest request;
  v1::AdminReply reply;
  request.mutable_kill_session()->set_id(1);  // alice's
  EXPECT_EQ(admin->Ask(As(bob_).get(), request, &reply).error_code(),
            grpc::StatusCode::NOT_FOUND);
  request.mutable_set_limits();
  EXPECT_EQ(admin->Ask(As(bob_).get(), request, &reply).error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
  request.mutable_list_sessions();
  ASSERT_TRUE(admin->Ask(As(bob_).get(), request, &reply).ok());
  EXPECT_EQ(reply.sessions_size(), 0);
  request.mutable_list_users();
  ASSERT_TRUE(admin->Ask(As(bob_).get(), request, &reply).ok());
  ASSERT_EQ(reply.users_size(), 1);
  EXPECT_EQ(reply.users(0).name(), "bob");
  EXPECT_EQ(reply.device_bytes(), 0u);
  request.mutable_whoami();
  ASSERT_TRUE(admin->Ask(As(bob_).get(), request, &reply).ok());
  EXPECT_EQ(reply.users(0).name(), "bob");
  EXPECT_EQ(reply.users(0).role(), "user");
  EXPECT_EQ(Goodbye(alice_, session), grpc::StatusCode::OK);
}

TEST_F(UserIsolationTest, UsersEndTheirOwn) {
  const std::string session = Hello(alice_).session_token();
  const auto admin = v1::HoldfastAdmin::NewStub(channel_);
  v1::AdminRequest request;
  v1::AdminReply reply;
  request.mutable_list_sessions();
  ASSERT_TRUE(admin->Ask(As(alice_).get(), request, &reply).ok());
  ASSERT_EQ(reply.sessions_size(), 1);
  request.mutable_kill_session()->set_id(reply.sessions(0).id());
  ASSERT_TRUE(admin->Ask(As(alice_).get(), request, &reply).ok());
  EXPECT_EQ(Goodbye(alice_, session), grpc::StatusCode::NOT_FOUND);
}

}  // namespace
}  // namespace holdfast
