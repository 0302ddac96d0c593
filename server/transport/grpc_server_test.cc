// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The gRPC door: what the service does, and what a bad client costs.
#include "server/transport/grpc_server.h"

#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"
#include "gtest/gtest.h"
#include "proto/holdfast.grpc.pb.h"
#include "proto/steady_time.h"
#include "proto/version.h"
#include "server/session/session.h"
#include "server/transport/grpc_stream.h"
#include "server/transport/test_daemon.h"

namespace holdfast {
namespace {

using testing::HasSubstr;
using BatchStream = grpc::ClientReaderWriter<v1::Batch, v1::Event>;

class GrpcServerTest : public testing::Test {
 protected:
  void SetUp() override {
    absl::Status status = daemon_.StartGrpc();
    ASSERT_TRUE(status.ok()) << status;
    channel_ = grpc::CreateChannel(daemon_.grpc()->address(),
                                   grpc::InsecureChannelCredentials());
    stub_ = v1::Holdfast::NewStub(channel_);
  }

  v1::HelloReply Hello(const std::string& token = "", double grace = 0) {
    grpc::ClientContext context;
    v1::HelloRequest request;
    request.set_min_version(kProtocolVersion);
    request.set_max_version(kProtocolVersion);
    request.set_session_token(token);
    request.set_grace_seconds(grace);
    v1::HelloReply reply;
    const grpc::Status status = stub_->Hello(&context, request, &reply);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return reply;
  }

  struct Stream {
    explicit Stream(v1::Holdfast::Stub* stub, const std::string& token) {
      context.AddMetadata("holdfast-session", token);
      // A test that would hang fails instead.
      context.set_deadline(std::chrono::system_clock::now() +
                           std::chrono::seconds(60));
      stream = stub->Stream(&context);
    }
    grpc::Status Finish() {
      v1::Event event;
      while (stream->Read(&event)) {
        if (event.has_session_error()) error = event.session_error();
      }
      return stream->Finish();
    }
    grpc::ClientContext context;
    std::unique_ptr<BatchStream> stream;
    v1::Status error;
  };
  std::unique_ptr<Stream> Open(const std::string& token) {
    return std::make_unique<Stream>(stub_.get(), token);
  }

  // The next event that carries something.
  static bool NextEvent(Stream* stream, v1::Event* event) {
    while (stream->stream->Read(event)) {
      if (event->kind_case() != v1::Event::KIND_NOT_SET) return true;
    }
    return false;
  }

  void ExpectServes() {
    const v1::HelloReply hello = Hello();
    ASSERT_FALSE(hello.has_status()) << hello.status().ShortDebugString();
    std::unique_ptr<Stream> stream = Open(hello.session_token());
    v1::Batch batch;
    batch.set_sequence(1);
    batch.add_commands()->mutable_read()->set_id(9);
    ASSERT_TRUE(stream->stream->Write(batch));
    v1::Event event;
    ASSERT_TRUE(NextEvent(stream.get(), &event));
    EXPECT_EQ(event.read().id(), 9u);
    stream->stream->WritesDone();
    EXPECT_TRUE(stream->Finish().ok());
  }

  grpc::Status Upload(const std::string& token, uint64_t id,
                      const std::string& data, uint64_t total,
                      size_t chunk_bytes) {
    grpc::ClientContext context;
    v1::UploadReply reply;
    auto writer = stub_->Upload(&context, &reply);
    size_t at = 0;
    do {
      v1::UploadChunk chunk;
      if (at == 0) {
        chunk.set_session_token(token);
        chunk.set_id(id);
        chunk.set_total_bytes(total);
      }
      chunk.set_data(data.substr(at, chunk_bytes));
      at += chunk_bytes;
      if (!writer->Write(chunk)) break;
    } while (at < data.size());
    writer->WritesDone();
    const grpc::Status status = writer->Finish();
    EXPECT_TRUE(!status.ok() || reply.bytes() == total);
    return status;
  }
  grpc::Status Download(const std::string& token, uint64_t id,
                        std::string* data) {
    grpc::ClientContext context;
    v1::DownloadRequest request;
    request.set_session_token(token);
    request.set_id(id);
    auto reader = stub_->Download(&context, request);
    v1::DownloadChunk chunk;
    while (reader->Read(&chunk)) data->append(chunk.data());
    return reader->Finish();
  }

  TestDaemon daemon_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Holdfast::Stub> stub_;
};

v1::Batch PutUpload(uint64_t sequence, uint64_t handle, int64_t bytes,
                    uint64_t upload) {
  v1::Batch batch;
  batch.set_sequence(sequence);
  v1::Put* put = batch.add_commands()->mutable_put();
  put->set_handle(handle);
  put->mutable_spec()->set_dtype(v1::DTYPE_UINT8);
  put->mutable_spec()->add_shape(bytes);
  put->set_upload(upload);
  v1::Read* read = batch.add_commands()->mutable_read();
  read->set_id(handle);
  read->set_handle(handle);
  return batch;
}

TEST_F(GrpcServerTest, AStreamOfBatches) {
  const v1::HelloReply hello = Hello();
  ASSERT_FALSE(hello.has_status());
  EXPECT_EQ(hello.version(), kProtocolVersion);
  std::unique_ptr<Stream> stream = Open(hello.session_token());
  // Many in flight, beyond what waits in the server.
  constexpr int kBatches = 1000;
  for (int i = 1; i <= kBatches; ++i) {
    v1::Batch batch;
    batch.set_sequence(i);
    for (int k = 0; k < 50; ++k) {
      batch.add_commands()->mutable_set_seed()->set_seed(k);
    }
    batch.add_commands()->mutable_read()->set_id(i);
    ASSERT_TRUE(stream->stream->Write(batch));
  }
  uint64_t last = 0;
  for (int i = 1; i <= kBatches; ++i) {
    v1::Event event;
    ASSERT_TRUE(NextEvent(stream.get(), &event));
    EXPECT_EQ(event.read().id(), static_cast<uint64_t>(i));
    EXPECT_GT(event.sequence(), last);
    last = event.sequence();
  }
  stream->stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_TRUE(WaitFor([&] { return daemon_.sessions() == 0; }));
}

TEST_F(GrpcServerTest, WhoClosesASessionIsNotCutOff) {
  const v1::HelloReply hello = Hello("", 60);
  std::unique_ptr<Stream> stream = Open(hello.session_token());
  v1::Batch batch;
  batch.set_sequence(1);
  batch.add_commands()->mutable_read()->set_id(1);
  ASSERT_TRUE(stream->stream->Write(batch));
  v1::Event event;
  ASSERT_TRUE(NextEvent(stream.get(), &event));
  grpc::ClientContext context;
  v1::GoodbyeRequest goodbye;
  goodbye.set_session_token(hello.session_token());
  v1::GoodbyeReply reply;
  EXPECT_TRUE(stub_->Goodbye(&context, goodbye, &reply).ok());
  // A stream that ended well would be one to resume.
  EXPECT_EQ(stream->Finish().error_code(),
            grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(stream->error.code(), 0);
}

TEST_F(GrpcServerTest, ATokenThatIsUnknownOrMissing) {
  std::unique_ptr<Stream> stream = Open("nobody's");
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::NOT_FOUND);

  grpc::ClientContext context;
  auto bare = stub_->Stream(&context);
  v1::Event event;
  EXPECT_FALSE(bare->Read(&event));
  const grpc::Status status = bare->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(status.error_message(), HasSubstr("holdfast-session"));
  // A session may be closed before its stream comes: nobody was refused one.
  EXPECT_TRUE(daemon_.registry()->Totals().refused.empty());

  EXPECT_EQ(Hello("nobody's").status().code(),
            static_cast<int>(absl::StatusCode::kNotFound));
  EXPECT_EQ(daemon_.registry()->Totals().refused[absl::StatusCode::kNotFound],
            1);
  grpc::ClientContext goodbye_context;
  v1::GoodbyeRequest goodbye;
  v1::GoodbyeReply reply;
  EXPECT_EQ(stub_->Goodbye(&goodbye_context, goodbye, &reply).error_code(),
            grpc::StatusCode::NOT_FOUND);
}

TEST_F(GrpcServerTest, ASessionIsTakenBeforeItsStreamComes) {
  v1::HelloRequest request;
  request.set_min_version(kProtocolVersion);
  request.set_max_version(kProtocolVersion);
  request.set_session_name("mine");
  request.set_attach_if_away(true);
  request.set_grace_seconds(30);
  v1::HelloReply first, second;
  grpc::ClientContext one, other;
  ASSERT_TRUE(stub_->Hello(&one, request, &first).ok());
  ASSERT_FALSE(first.has_status()) << first.status().ShortDebugString();
  ASSERT_TRUE(stub_->Hello(&other, request, &second).ok());
  EXPECT_EQ(second.status().code(),
            static_cast<int>(absl::StatusCode::kAlreadyExists));
  EXPECT_THAT(second.status().message(), HasSubstr("a program uses it"));
}

TEST_F(GrpcServerTest, AVersionMismatchNamesBoth) {
  grpc::ClientContext context;
  v1::HelloRequest request;
  request.set_min_version(70);
  request.set_max_version(71);
  v1::HelloReply reply;
  ASSERT_TRUE(stub_->Hello(&context, request, &reply).ok());
  EXPECT_EQ(reply.status().code(),
            static_cast<int>(absl::StatusCode::kFailedPrecondition));
  EXPECT_THAT(reply.status().message(), HasSubstr("70"));
  EXPECT_EQ(daemon_.sessions(), 0);
}

TEST_F(GrpcServerTest, BytesThatAreNoBatchEndThatSession) {
  ExpectServes();
  std::mt19937 random(5);
  for (int round = 0; round < 20; ++round) {
    const v1::HelloReply hello = Hello("", 60);
    grpc::GenericStub generic(channel_);
    grpc::ClientContext context;
    context.AddMetadata("holdfast-session", hello.session_token());
    context.set_deadline(std::chrono::system_clock::now() +
                         std::chrono::seconds(30));
    grpc::CompletionQueue queue;
    auto call =
        generic.PrepareCall(&context, "/holdfast.v1.Holdfast/Stream", &queue);
    const auto wait = [&](void* tag) {
      void* got = nullptr;
      bool ok = false;
      queue.Next(&got, &ok);
      EXPECT_EQ(got, tag);
      return ok;
    };
    call->StartCall(reinterpret_cast<void*>(1));
    ASSERT_TRUE(wait(reinterpret_cast<void*>(1)));
    std::string bytes(1 + random() % 100, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    bytes[0] = '\x07';  // a wire type that does not exist
    grpc::Slice slice(bytes);
    call->Write(grpc::ByteBuffer(&slice, 1), reinterpret_cast<void*>(2));
    wait(reinterpret_cast<void*>(2));
    v1::Status error;
    while (true) {
      grpc::ByteBuffer buffer;
      call->Read(&buffer, reinterpret_cast<void*>(3));
      if (!wait(reinterpret_cast<void*>(3))) break;
      grpc::Slice whole;
      ASSERT_TRUE(buffer.DumpToSingleSlice(&whole).ok());
      v1::Event event;
      ASSERT_TRUE(event.ParseFromArray(whole.begin(), whole.size()));
      if (event.has_session_error()) error = event.session_error();
    }
    EXPECT_EQ(error.code(),
              static_cast<int>(absl::StatusCode::kInvalidArgument));
    grpc::Status status;
    call->Finish(&status, reinterpret_cast<void*>(4));
    wait(reinterpret_cast<void*>(4));
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  }
  EXPECT_TRUE(WaitFor([&] { return daemon_.sessions() == 0; }));
  ExpectServes();
}

TEST_F(GrpcServerTest, ABatchOutOfTurnEndsThatSession) {
  const v1::HelloReply hello = Hello("", 60);
  std::unique_ptr<Stream> stream = Open(hello.session_token());
  v1::Batch batch;
  batch.set_sequence(12);
  ASSERT_TRUE(stream->stream->Write(batch));
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(stream->error.message(), HasSubstr("12"));
}

TEST_F(GrpcServerTest, ANewStreamReplacesTheOld) {
  const v1::HelloReply hello = Hello("", 60);
  std::unique_ptr<Stream> old = Open(hello.session_token());
  v1::Batch batch;
  batch.set_sequence(1);
  batch.add_commands()->mutable_read()->set_id(1);
  ASSERT_TRUE(old->stream->Write(batch));
  v1::Event event;
  ASSERT_TRUE(NextEvent(old.get(), &event));

  const v1::HelloReply again = Hello(hello.session_token(), 60);
  EXPECT_EQ(again.session_token(), hello.session_token());
  EXPECT_EQ(again.applied_batch(), 1u);
  std::unique_ptr<Stream> fresh = Open(hello.session_token());
  EXPECT_EQ(old->Finish().error_code(), grpc::StatusCode::ABORTED);
  batch.set_sequence(2);
  batch.mutable_commands(0)->mutable_read()->set_id(2);
  ASSERT_TRUE(fresh->stream->Write(batch));
  do {  // the first answer comes again: nobody said that it had arrived
    ASSERT_TRUE(NextEvent(fresh.get(), &event));
  } while (event.read().id() == 1);
  EXPECT_EQ(event.read().id(), 2u);
  EXPECT_EQ(daemon_.sessions(), 1);
}

TEST_F(GrpcServerTest, ACutStreamCanBeTakenUpAgain) {
  const v1::HelloReply hello = Hello("", 60);
  for (int i = 1; i <= 20; ++i) {
    ASSERT_FALSE(Hello(hello.session_token(), 60).has_status());
    std::unique_ptr<Stream> stream = Open(hello.session_token());
    v1::Batch batch;
    batch.set_sequence(i);
    batch.set_acknowledged_event(i - 1);
    batch.add_commands()->mutable_read()->set_id(i);
    ASSERT_TRUE(stream->stream->Write(batch));
    v1::Event event;
    do {
      ASSERT_TRUE(NextEvent(stream.get(), &event));
    } while (event.read().id() != static_cast<uint64_t>(i));
    stream->context.TryCancel();
    stream->Finish();
  }
  EXPECT_EQ(Hello(hello.session_token(), 60).applied_batch(), 20u);
}

TEST_F(GrpcServerTest, AClientThatNeverReadsHoldsUpNobody) {
  const v1::HelloReply hello = Hello();
  std::unique_ptr<Stream> stuck = Open(hello.session_token());
  // 60 MB of answers: more than HTTP/2 and the stream's queue take together.
  v1::Batch put = v1::Batch();
  put.set_sequence(1);
  v1::Put* value = put.add_commands()->mutable_put();
  value->set_handle(hello.next_handle());
  value->mutable_spec()->set_dtype(v1::DTYPE_UINT8);
  value->mutable_spec()->add_shape(200000);
  value->set_data(std::string(200000, 'x'));
  ASSERT_TRUE(stuck->stream->Write(put));
  for (int i = 0; i < 300; ++i) {
    v1::Batch batch;
    batch.set_sequence(i + 2);
    v1::Read* read = batch.add_commands()->mutable_read();
    read->set_id(i + 1);
    read->set_handle(hello.next_handle());
    ASSERT_TRUE(stuck->stream->Write(batch));
  }
  ExpectServes();
  // All of them arrive once it reads.
  v1::Event event;
  for (int i = 1; i <= 300; ++i) {
    ASSERT_TRUE(NextEvent(stuck.get(), &event)) << i;
    EXPECT_EQ(event.read().id(), static_cast<uint64_t>(i));
    EXPECT_EQ(event.read().data().size(), 200000u);
  }
}

TEST_F(GrpcServerTest, AClientThatNeverReadsAndIsToldToGoIsCutOff) {
  const v1::HelloReply hello = Hello();
  std::unique_ptr<Stream> stuck = Open(hello.session_token());
  v1::Batch batch;
  batch.set_sequence(1);
  v1::Put* value = batch.add_commands()->mutable_put();
  value->set_handle(hello.next_handle());
  value->mutable_spec()->set_dtype(v1::DTYPE_UINT8);
  value->mutable_spec()->add_shape(200000);
  value->set_data(std::string(200000, 'x'));
  for (int i = 0; i < 300; ++i) {
    v1::Read* read = batch.add_commands()->mutable_read();
    read->set_id(i + 1);
    read->set_handle(hello.next_handle());
  }
  ASSERT_TRUE(stuck->stream->Write(batch));
  batch.Clear();
  batch.set_sequence(99);
  stuck->stream->Write(batch);
  EXPECT_TRUE(WaitFor([&] { return daemon_.sessions() == 0; }));
  // Five seconds later the stream has gone, unread events and all, so that
  // stopping waits for nobody.
  absl::SleepFor(absl::Seconds(6));
  const SteadyTime start = SteadyNow();
  daemon_.grpc()->Stop(absl::Minutes(5));
  EXPECT_LT(SteadyNow() - start, absl::Minutes(2));
}

TEST_F(GrpcServerTest, BulkBytesGoInAndComeBack) {
  const v1::HelloReply hello = Hello();
  const std::string& token = hello.session_token();
  std::unique_ptr<Stream> stream = Open(token);
  std::mt19937 random(6);
  std::string data(5 << 20, '\0');
  for (char& c : data) c = static_cast<char>(random());
  uint64_t sequence = 0, handle = hello.next_handle();
  for (const size_t chunk :
       {size_t{1} << 20, size_t{777777}, size_t{3} << 20}) {
    ASSERT_TRUE(Upload(token, 3, data, data.size(), chunk).ok());
    ASSERT_TRUE(
        stream->stream->Write(PutUpload(++sequence, ++handle, data.size(), 3)));
    v1::Event event;
    ASSERT_TRUE(NextEvent(stream.get(), &event));
    ASSERT_NE(event.read().download(), 0u) << event.ShortDebugString();
    std::string back;
    ASSERT_TRUE(Download(token, event.read().download(), &back).ok());
    EXPECT_TRUE(back == data);
    // Dropped once fetched, which the server notes after the client has it.
    EXPECT_TRUE(WaitFor([&] {
      std::string again;
      return Download(token, event.read().download(), &again).error_code() ==
             grpc::StatusCode::NOT_FOUND;
    }));
  }
}

TEST_F(GrpcServerTest, ACutDownloadCanBeRepeated) {
  const v1::HelloReply hello = Hello();
  const std::string& token = hello.session_token();
  std::unique_ptr<Stream> stream = Open(token);
  const std::string data(20 << 20, 'q');
  ASSERT_TRUE(Upload(token, 3, data, data.size(), 1 << 20).ok());
  ASSERT_TRUE(
      stream->stream->Write(PutUpload(1, hello.next_handle(), data.size(), 3)));
  v1::Event event;
  ASSERT_TRUE(NextEvent(stream.get(), &event));
  for (int i = 0; i < 3; ++i) {
    grpc::ClientContext context;
    v1::DownloadRequest request;
    request.set_session_token(token);
    request.set_id(event.read().download());
    auto reader = stub_->Download(&context, request);
    v1::DownloadChunk chunk;
    ASSERT_TRUE(reader->Read(&chunk));
    context.TryCancel();
    EXPECT_FALSE(reader->Finish().ok());
  }
  std::string back;
  ASSERT_TRUE(Download(token, event.read().download(), &back).ok());
  EXPECT_TRUE(back == data);
}

TEST_F(GrpcServerTest, BadUploadsAreRefused) {
  const std::string token = Hello().session_token();
  const std::string data(1000, 'x');
  EXPECT_EQ(Upload("nobody's", 1, data, 1000, 1000).error_code(),
            grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(Upload(token, 1, data, 999, 100).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Upload(token, 1, data, 1001, 100).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Upload(token, 1, data, ~0ull, 100).error_code(),
            grpc::StatusCode::RESOURCE_EXHAUSTED);
  {
    grpc::ClientContext context;
    v1::UploadReply reply;
    auto writer = stub_->Upload(&context, &reply);
    writer->WritesDone();
    EXPECT_EQ(writer->Finish().error_code(),
              grpc::StatusCode::INVALID_ARGUMENT);
  }
  std::string none;
  EXPECT_EQ(Download(token, 4, &none).error_code(),
            grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(Download("nobody's", 4, &none).error_code(),
            grpc::StatusCode::NOT_FOUND);
}

TEST_F(GrpcServerTest, HealthAndReflectionAreServed) {
  grpc::GenericStub generic(channel_);
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  // HealthCheckRequest{service: "holdfast.v1.Holdfast"}; the reply's field 1
  // says SERVING with 1.
  const std::string name = v1::Holdfast::service_full_name();
  grpc::Slice slice(std::string("\x0a") + static_cast<char>(name.size()) +
                    name);
  grpc::ByteBuffer request(&slice, 1), reply;
  auto call = generic.PrepareUnaryCall(&context, "/grpc.health.v1.Health/Check",
                                       request, &queue);
  call->StartCall();
  grpc::Status status;
  call->Finish(&reply, &status, nullptr);
  void* tag;
  bool ok;
  queue.Next(&tag, &ok);
  ASSERT_TRUE(status.ok()) << status.error_message();
  grpc::Slice whole;
  ASSERT_TRUE(reply.DumpToSingleSlice(&whole).ok());
  EXPECT_EQ(std::string(whole.begin(), whole.end()), "\x08\x01");

  // ServerReflectionRequest{list_services: ""}.
  grpc::ClientContext reflection_context;
  auto stream = generic.PrepareCall(
      &reflection_context,
      "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", &queue);
  stream->StartCall(nullptr);
  queue.Next(&tag, &ok);
  grpc::Slice list(std::string("\x3a\x00", 2));
  stream->Write(grpc::ByteBuffer(&list, 1), nullptr);
  queue.Next(&tag, &ok);
  stream->Read(&reply, nullptr);
  queue.Next(&tag, &ok);
  ASSERT_TRUE(ok);
  ASSERT_TRUE(reply.DumpToSingleSlice(&whole).ok());
  EXPECT_THAT(std::string(whole.begin(), whole.end()), HasSubstr(name));
  reflection_context.TryCancel();
  stream->Finish(&status, nullptr);
  queue.Next(&tag, &ok);
}

TEST_F(GrpcServerTest, AStopEndsOpenStreams) {
  const v1::HelloReply hello = Hello("", 60);
  std::unique_ptr<Stream> stream = Open(hello.session_token());
  v1::Batch batch;
  batch.set_sequence(1);
  batch.add_commands()->mutable_read()->set_id(1);
  ASSERT_TRUE(stream->stream->Write(batch));
  v1::Event event;
  ASSERT_TRUE(NextEvent(stream.get(), &event));
  daemon_.grpc()->Stop(absl::ZeroDuration());
  EXPECT_FALSE(stream->Finish().ok());
}

TEST_F(GrpcServerTest, APortThatIsTakenIsAnError) {
  auto second =
      GrpcServer::Start(daemon_.registry(), {daemon_.grpc()->address()});
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(std::string(second.status().message()),
              HasSubstr(daemon_.grpc()->address()));
  ExpectServes();
}

TEST(ListenAddress, OnlyThisMachineUnlessAllowed) {
  std::string host;
  for (const char* good :
       {"127.0.0.1:0", "localhost:50151", "[::1]:1", "127.1.2.3:65535"}) {
    EXPECT_TRUE(CheckListenAddress(good, false, &host).ok()) << good;
  }
  for (const char* remote :
       {"0.0.0.0:1", "[::]:1", "10.0.0.1:1", "example.org:1",
        "127.0.0.1.example.org:1", "*:1"}) {
    const absl::Status status = CheckListenAddress(remote, false, &host);
    EXPECT_THAT(std::string(status.message()), HasSubstr("--allow_remote"))
        << remote;
    EXPECT_TRUE(CheckListenAddress(remote, true, &host).ok()) << remote;
  }
  for (const char* bad : {"", "localhost", ":1", "localhost:", "localhost:x",
                          "localhost:65536", "localhost:-1"}) {
    EXPECT_FALSE(CheckListenAddress(bad, true, &host).ok()) << bad;
  }
}

}  // namespace
}  // namespace holdfast
