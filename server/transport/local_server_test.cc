// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The local door, with clients that keep the protocol and clients that do not.
#include "server/transport/local_server.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "proto/steady_time.h"
#include "server/transport/test_daemon.h"
#include "server/transport/test_local_client.h"

namespace holdfast {
namespace {

using testing::HasSubstr;

constexpr int kInvalid = static_cast<int>(absl::StatusCode::kInvalidArgument);

class LocalServerTest : public testing::Test {
 protected:
  void SetUp() override {
    absl::Status status = daemon_.StartLocal();
    ASSERT_TRUE(status.ok()) << status;
  }

  // A client that behaves is served, whatever others do.
  void ExpectServes() {
    TestLocalClient client(daemon_.socket_path());
    const v1::LocalReply reply = client.Hello();
    ASSERT_TRUE(reply.has_hello()) << reply.ShortDebugString();
    v1::Batch batch;
    batch.set_sequence(1);
    batch.add_commands()->mutable_read()->set_id(77);
    ASSERT_TRUE(client.Submit(batch));
    v1::Event event;
    ASSERT_TRUE(client.NextEvent(&event));
    EXPECT_EQ(event.read().id(), 77u);
    EXPECT_EQ(event.acknowledged_batch() <= 1, true);
  }

  TestDaemon daemon_;
};

v1::LocalRequest StatsRequest() {
  v1::LocalRequest request;
  request.mutable_stats();
  return request;
}

TEST_F(LocalServerTest, HelloGivesRingsThatWork) {
  TestLocalClient client(daemon_.socket_path());
  const v1::LocalReply reply = client.Hello();
  ASSERT_TRUE(reply.has_hello()) << reply.ShortDebugString();
  EXPECT_FALSE(reply.hello().session_token().empty());
  EXPECT_EQ(reply.hello().inline_limit(), kShmInlineLimit);
  EXPECT_EQ(client.submission()->capacity(), kSubmissionRingBytes);

  // A value goes in and comes back.
  const std::vector<float> values = {1, 2, 3, 4};
  v1::Batch batch;
  batch.set_sequence(1);
  v1::Put* put = batch.add_commands()->mutable_put();
  put->set_handle(reply.hello().next_handle());
  put->mutable_spec()->set_dtype(v1::DTYPE_FLOAT32);
  put->mutable_spec()->add_shape(4);
  put->set_data(values.data(), 16);
  v1::Read* read = batch.add_commands()->mutable_read();
  read->set_id(5);
  read->set_handle(reply.hello().next_handle());
  ASSERT_TRUE(client.Submit(batch));
  v1::Event event;
  ASSERT_TRUE(client.NextEvent(&event));
  EXPECT_EQ(event.read().id(), 5u);
  ASSERT_EQ(event.read().data().size(), 16u) << event.ShortDebugString();
  EXPECT_EQ(memcmp(event.read().data().data(), values.data(), 16), 0);
}

TEST_F(LocalServerTest, ASleepingDaemonIsWokenAndWakesASleepingClient) {
  TestLocalClient client(daemon_.socket_path());
  ASSERT_TRUE(client.Hello().has_hello());
  for (int i = 1; i <= 5; ++i) {
    absl::SleepFor(absl::Milliseconds(20));  // the worker is asleep by then
    ASSERT_TRUE(client.reader()->Arm());
    v1::Batch batch;
    batch.set_sequence(i);
    batch.add_commands()->mutable_read()->set_id(i);
    ASSERT_TRUE(client.Submit(batch));
    EXPECT_TRUE(client.Rung());
    v1::Event event;
    ASSERT_TRUE(client.NextEvent(&event));
  }
}

TEST_F(LocalServerTest, BlocksAndSegmentsReachTheClient) {
  TestLocalClient client(daemon_.socket_path());
  v1::LocalRequest allocate;
  allocate.set_allocate(1 << 20);
  EXPECT_EQ(client.Call(allocate).status().code(),
            static_cast<int>(absl::StatusCode::kFailedPrecondition));
  const v1::LocalReply hello = client.Hello();
  ASSERT_TRUE(hello.has_hello());
  v1::LocalReply reply = client.Call(allocate);
  ASSERT_TRUE(reply.has_block()) << reply.ShortDebugString();
  EXPECT_GE(reply.block().place().bytes(), 1u << 20);
  const v1::Block block = reply.block();

  v1::LocalRequest map;
  map.set_map(block.place().segment());
  reply = client.Call(map);
  ASSERT_TRUE(reply.has_segment()) << reply.ShortDebugString();
  ASSERT_EQ(client.fds().size(), 1u);
  const uint64_t bytes = reply.segment().bytes();
  ASSERT_GE(bytes, block.place().offset() + block.place().bytes());
  char* memory = static_cast<char*>(mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                                         MAP_SHARED, client.fds()[0].get(), 0));
  ASSERT_NE(memory, MAP_FAILED);
  memset(memory + block.place().offset(), 42, 1 << 20);

  v1::Batch batch;
  batch.set_sequence(1);
  v1::Put* put = batch.add_commands()->mutable_put();
  put->set_handle(hello.hello().next_handle());
  put->mutable_spec()->set_dtype(v1::DTYPE_UINT8);
  put->mutable_spec()->add_shape(1000);
  put->set_block(block.id());
  v1::Read* read = batch.add_commands()->mutable_read();
  read->set_id(1);
  read->set_handle(put->handle());
  ASSERT_TRUE(client.Submit(batch));
  v1::Event event;
  ASSERT_TRUE(client.NextEvent(&event));
  EXPECT_EQ(event.read().data(), std::string(1000, 42))
      << event.read().status().ShortDebugString();
  munmap(memory, bytes);

  map.set_map(123456);
  EXPECT_TRUE(client.Call(map).has_status());
  EXPECT_EQ(client.fds().size(), 0u);
}

TEST_F(LocalServerTest, ErrorsAreRepliesAndTheSocketLivesOn) {
  TestLocalClient client(daemon_.socket_path());
  v1::LocalReply reply = client.Call(v1::LocalRequest());
  EXPECT_EQ(reply.status().code(),
            static_cast<int>(absl::StatusCode::kUnimplemented));

  v1::LocalRequest hello = TestLocalClient::HelloRequest();
  hello.mutable_hello()->set_min_version(900);
  hello.mutable_hello()->set_max_version(901);
  reply = client.Call(hello);
  EXPECT_NE(reply.status().code(), 0);
  EXPECT_THAT(reply.status().message(), HasSubstr("900"));
  EXPECT_TRUE(client.fds().empty());

  hello = TestLocalClient::HelloRequest();
  hello.mutable_hello()->set_session_token("no such token");
  EXPECT_EQ(client.Call(hello).status().code(),
            static_cast<int>(absl::StatusCode::kNotFound));

  v1::LocalRequest goodbye;
  goodbye.mutable_goodbye()->set_session_token("no such token");
  EXPECT_EQ(client.Call(goodbye).status().code(),
            static_cast<int>(absl::StatusCode::kNotFound));
  EXPECT_EQ(daemon_.sessions(), 0);

  EXPECT_TRUE(client.Hello().has_hello());
  EXPECT_EQ(client.Call(TestLocalClient::HelloRequest()).status().code(),
            static_cast<int>(absl::StatusCode::kFailedPrecondition));
  EXPECT_EQ(client.Call(StatsRequest()).stats().sessions_size(), 1);
}

TEST_F(LocalServerTest, GarbageIsAnsweredAndDropped) {
  std::mt19937 random(4);
  for (int round = 0; round < 50; ++round) {
    TestLocalClient client(daemon_.socket_path());
    std::string bytes(1 + random() % 5000, '\0');
    for (char& c : bytes) c = static_cast<char>(random());
    bytes.insert(0, std::string("\xff\xff\xff\xff", 4));
    client.SendBytes(bytes);
    v1::LocalReply reply;
    ASSERT_TRUE(client.Receive(&reply));
    EXPECT_EQ(reply.status().code(), kInvalid);
    EXPECT_TRUE(client.AtEnd());
  }
  // A frame of the right length with the wrong content.
  TestLocalClient client(daemon_.socket_path());
  client.SendBytes(std::string("\x04\0\0\0\xff\xff\xff\xff", 8));
  v1::LocalReply reply;
  ASSERT_TRUE(client.Receive(&reply));
  EXPECT_EQ(reply.status().code(), kInvalid);
  EXPECT_TRUE(client.AtEnd());
  ExpectServes();
}

TEST_F(LocalServerTest, GarbageAfterHelloEndsThatSession) {
  TestLocalClient client(daemon_.socket_path());
  ASSERT_TRUE(client.Hello().has_hello());
  client.SendBytes("\xff\xff\xff\xff rubbish");
  EXPECT_TRUE(client.AtEnd());
  EXPECT_TRUE(WaitFor([&] { return daemon_.sessions() == 0; }));
}

TEST_F(LocalServerTest, GarbageInTheRingEndsThatSession) {
  TestLocalClient other(daemon_.socket_path());
  ASSERT_TRUE(other.Hello().has_hello());
  TestLocalClient client(daemon_.socket_path());
  ASSERT_TRUE(client.Hello().has_hello());
  ASSERT_TRUE(client.Submit("\xff\xff\xff\xff"));
  v1::Event event;
  ASSERT_TRUE(client.NextEvent(&event));
  EXPECT_EQ(event.session_error().code(), kInvalid);
  EXPECT_TRUE(client.AtEnd());
  EXPECT_TRUE(WaitFor([&] { return daemon_.sessions() == 1; }));
  ExpectServes();
}

TEST_F(LocalServerTest, ASlowClientIsServedAndHoldsUpNobody) {
  TestLocalClient slow(daemon_.socket_path());
  const std::string frame = MakeFrame(StatsRequest());
  for (char c : frame) {
    ASSERT_TRUE(slow.SendBytes(std::string(1, c)));
    ExpectServes();
  }
  v1::LocalReply reply;
  ASSERT_TRUE(slow.Receive(&reply));
  EXPECT_TRUE(reply.has_stats());
}

TEST_F(LocalServerTest, HalfAFrameAndAHangUp) {
  for (int i = 0; i < 100; ++i) {
    TestLocalClient client(daemon_.socket_path());
    const std::string frame = MakeFrame(TestLocalClient::HelloRequest());
    client.SendBytes(absl::string_view(frame).substr(0, i % frame.size()));
  }
  ExpectServes();
}

TEST_F(LocalServerTest, AClientThatNeverReadsIsHeldBack) {
  TestLocalClient client(daemon_.socket_path());
  const std::string frame = MakeFrame(StatsRequest());
  fcntl(client.fd(), F_SETFL, O_NONBLOCK);
  size_t sent = 0;
  // Until the server takes no more, which it must some time.
  const SteadyTime end = SteadyNow() + absl::Seconds(60);
  size_t position = 0;
  int idle = 0;
  while (idle < 200 && SteadyNow() < end) {
    const ssize_t n = send(client.fd(), frame.data() + position,
                           frame.size() - position, MSG_NOSIGNAL);
    if (n > 0) {
      idle = 0;
      position += n;
      if (position == frame.size()) {
        position = 0;
        ++sent;
      }
    } else {
      ++idle;
      absl::SleepFor(absl::Milliseconds(1));
    }
  }
  ASSERT_LT(SteadyNow(), end) << sent;
  ExpectServes();
  // It gets all its answers once it reads.
  fcntl(client.fd(), F_SETFL, 0);
  v1::LocalReply reply;
  for (size_t i = 0; i < sent; ++i) {
    ASSERT_TRUE(client.Receive(&reply)) << i << " of " << sent;
    ASSERT_TRUE(reply.has_stats());
  }
}

TEST_F(LocalServerTest, AClientThatNeverReadsAndLeavesIsForgotten) {
  const int before = OpenDescriptors();
  {
    TestLocalClient client(daemon_.socket_path());
    ASSERT_TRUE(client.Hello().has_hello());
    const std::string frame = MakeFrame(StatsRequest());
    for (int i = 0; i < 200; ++i) client.SendBytes(frame);
  }
  EXPECT_TRUE(WaitFor(
      [&] { return daemon_.sessions() == 0 && OpenDescriptors() <= before; }));
}

TEST_F(LocalServerTest, TheSessionEndsWithItsClient) {
  TestLocalClient client(daemon_.socket_path());
  ASSERT_TRUE(client.Hello().has_hello());
  EXPECT_EQ(daemon_.sessions(), 1);
  client.Disconnect();
  EXPECT_TRUE(WaitFor([&] { return daemon_.sessions() == 0; }));
}

TEST_F(LocalServerTest, GoodbyeIsAnsweredBeforeTheEnd) {
  for (int i = 0; i < 50; ++i) {
    TestLocalClient client(daemon_.socket_path());
    const v1::LocalReply hello = client.Hello();
    v1::LocalRequest goodbye;
    goodbye.mutable_goodbye()->set_session_token(hello.hello().session_token());
    const v1::LocalReply reply = client.Call(goodbye);
    ASSERT_TRUE(reply.has_goodbye()) << reply.ShortDebugString();
    EXPECT_EQ(daemon_.sessions(), 0);
    // The socket is the client's to close: till then it may look at arrays.
    client.Disconnect();
  }
}

TEST_F(LocalServerTest, AResumedSessionLeavesTheOldSocket) {
  TestLocalClient old(daemon_.socket_path());
  v1::LocalRequest hello = TestLocalClient::HelloRequest();
  hello.mutable_hello()->set_grace_seconds(60);
  const v1::LocalReply first = old.Hello(hello);
  ASSERT_TRUE(first.has_hello());
  hello.mutable_hello()->set_session_token(first.hello().session_token());
  TestLocalClient fresh(daemon_.socket_path());
  const v1::LocalReply second = fresh.Hello(hello);
  ASSERT_TRUE(second.has_hello()) << second.ShortDebugString();
  EXPECT_EQ(second.hello().session_token(), first.hello().session_token());
  EXPECT_TRUE(old.AtEnd());
  old.Disconnect();
  absl::SleepFor(absl::Milliseconds(50));
  EXPECT_EQ(daemon_.sessions(), 1);
  v1::Batch batch;
  batch.set_sequence(1);
  batch.add_commands()->mutable_read()->set_id(3);
  ASSERT_TRUE(fresh.Submit(batch));
  v1::Event event;
  ASSERT_TRUE(fresh.NextEvent(&event));
  EXPECT_EQ(event.read().id(), 3u);
}

TEST_F(LocalServerTest, AThousandClientsComeAndGo) {
  { TestLocalClient first(daemon_.socket_path()); }
  ExpectServes();
  ASSERT_TRUE(WaitFor([&] { return daemon_.sessions() == 0; }));
  absl::SleepFor(absl::Milliseconds(20));
  const int before = OpenDescriptors();
  for (int i = 0; i < 1000; ++i) {
    TestLocalClient client(daemon_.socket_path());
    ASSERT_TRUE(client.connected());
    if (i % 5 == 0) {
      ASSERT_TRUE(client.Hello().has_hello()) << i;
    }
  }
  EXPECT_TRUE(WaitFor([&] {
    return daemon_.sessions() == 0 && OpenDescriptors() <= before;
  })) << daemon_.sessions()
      << " sessions, " << OpenDescriptors() - before << " descriptors";
  ExpectServes();
}

TEST_F(LocalServerTest, StopClosesEverySocket) {
  TestLocalClient idle(daemon_.socket_path());
  TestLocalClient busy(daemon_.socket_path());
  ASSERT_TRUE(busy.Hello().has_hello());
  daemon_.local()->Stop();
  EXPECT_TRUE(idle.AtEnd());
  EXPECT_TRUE(busy.AtEnd());
  EXPECT_FALSE(TestLocalClient(daemon_.socket_path()).connected());
  struct stat info;
  EXPECT_NE(lstat(daemon_.socket_path().c_str(), &info), 0);
}

// ---- the socket's file

TEST_F(LocalServerTest, TheSocketIsItsUsersAlone) {
  struct stat info;
  ASSERT_EQ(lstat(daemon_.socket_path().c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(LocalServerTest, ASecondDaemonIsTold) {
  auto second = LocalServer::Start(daemon_.registry(), {daemon_.socket_path()});
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(second.status().message()), HasSubstr("--socket"));
  ExpectServes();
}

TEST(SocketFile, AStaleSocketIsReplacedAndOtherFilesAreNot) {
  TestDaemon daemon;
  const std::string path = daemon.folder() + "/new/folder/d.sock";
  {
    auto first = SocketFile::Listen(path);
    ASSERT_TRUE(first.ok()) << first.status();
    struct stat info;
    ASSERT_EQ(stat((daemon.folder() + "/new/folder").c_str(), &info), 0);
    EXPECT_EQ(info.st_mode & 0777, 0700u);
    // What a killed daemon leaves: the file, without a listener.
    ASSERT_EQ(rename(path.c_str(), (path + ".stale").c_str()), 0);
  }
  ASSERT_EQ(rename((path + ".stale").c_str(), path.c_str()), 0);
  {
    auto second = SocketFile::Listen(path);
    EXPECT_TRUE(second.ok()) << second.status();
  }
  std::ofstream(path) << "somebody's thesis";
  auto third = SocketFile::Listen(path);
  EXPECT_EQ(third.status().code(), absl::StatusCode::kAlreadyExists);
  std::string text;
  std::getline(std::ifstream(path), text);
  EXPECT_EQ(text, "somebody's thesis");
  unlink(path.c_str());

  ASSERT_EQ(chmod((daemon.folder() + "/new/folder").c_str(), 0777), 0);
  EXPECT_EQ(SocketFile::Listen(path).status().code(),
            absl::StatusCode::kPermissionDenied);
  rmdir((daemon.folder() + "/new/folder").c_str());
  rmdir((daemon.folder() + "/new").c_str());
}

TEST(SocketFile, APathThatIsTooLongIsAnError) {
  auto file = SocketFile::Listen("/tmp/" + std::string(200, 'x'));
  EXPECT_EQ(file.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(SocketFile::Listen("").status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace holdfast
