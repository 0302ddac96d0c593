// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Item 2 of the server's review: what a client does to the descriptors that it
// shares with the daemon must make no thread of the daemon wait.
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <string>

#include "gtest/gtest.h"
#include "server/transport/test_daemon.h"
#include "server/transport/test_local_client.h"

namespace holdfast {
namespace {

class DoorbellsTest : public testing::Test {
 protected:
  void SetUp() override {
    absl::Status status = daemon_.StartLocal();
    ASSERT_TRUE(status.ok()) << status;
  }

  void ExpectServes() {
    TestLocalClient client(daemon_.socket_path());
    ASSERT_TRUE(client.Hello().has_hello());
    v1::Event event;
    ASSERT_TRUE(client.Submit(BatchOf(1)));
    ASSERT_TRUE(client.NextEvent(&event));
    EXPECT_EQ(event.read().id(), 1u);
  }

  static v1::Batch BatchOf(uint64_t sequence) {
    v1::Batch batch;
    batch.set_sequence(sequence);
    batch.add_commands()->mutable_read()->set_id(sequence);
    return batch;
  }

  TestDaemon daemon_;
};

void MakeBlocking(int fd) {
  ASSERT_EQ(fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) & ~O_NONBLOCK), 0);
}

// As far as it goes without waiting.
void Fill(int fd) {
  const int flags = fcntl(fd, F_GETFL);
  ASSERT_EQ(fcntl(fd, F_SETFL, flags | O_NONBLOCK), 0);
  const uint64_t most = ~uint64_t{0} - 1;  // an eventfd's
  for (int i = 0; i < 100000; ++i) {
    if (write(fd, &most, sizeof(most)) < 0) break;
  }
  ASSERT_EQ(fcntl(fd, F_SETFL, flags), 0);
}

TEST_F(DoorbellsTest, ABellThatBlocksAndIsFullStopsNobody) {
  TestLocalClient client(daemon_.socket_path());
  ASSERT_TRUE(client.Hello().has_hello());
  Fill(client.client_bell());
  MakeBlocking(client.client_bell());
  v1::Event event;
  for (int i = 1; i <= 3; ++i) {
    // It waits for events and for room: the daemon rings for both.
    client.reader()->Arm();
    client.submission()->header()->producer_waiting.store(1);
    ASSERT_TRUE(client.Submit(BatchOf(i)));
    ASSERT_TRUE(client.NextEvent(&event)) << "the worker hangs";
  }
  client.Disconnect();
  ExpectServes();
}

TEST_F(DoorbellsTest, AClientThatNeverHearsItsBellStopsNobody) {
  TestLocalClient client(daemon_.socket_path());
  ASSERT_TRUE(client.Hello().has_hello());
  MakeBlocking(client.client_bell());
  v1::Event event;
  for (int i = 1; i <= 2000; ++i) {
    client.reader()->Arm();
    ASSERT_TRUE(client.Submit(BatchOf(i)));
    ASSERT_TRUE(client.NextEvent(&event)) << "the worker hangs at ring " << i;
  }
  EXPECT_TRUE(client.Rung());
  ExpectServes();
}

TEST_F(DoorbellsTest, AServersBellThatBlocksAndIsStolenStopsNobody) {
  TestLocalClient client(daemon_.socket_path());
  ASSERT_TRUE(client.Hello().has_hello());
  MakeBlocking(client.server_bell());
  for (int i = 0; i < 2000; ++i) {
    client.RingServer();
    uint64_t count;  // before the worker comes to it
    ASSERT_EQ(read(client.server_bell(), &count, sizeof(count)), 8);
    if (i % 100 == 0) absl::SleepFor(absl::Milliseconds(1));
  }
  ExpectServes();
  v1::Event event;
  ASSERT_TRUE(client.Submit(BatchOf(1)));
  ASSERT_TRUE(client.NextEvent(&event));
}

TEST_F(DoorbellsTest, ABellThatIsClosedOrConnectedElsewhereStopsNobody) {
  TestLocalClient client(daemon_.socket_path());
  ASSERT_TRUE(client.Hello().has_hello());
  sockaddr unspecified = {};
  unspecified.sa_family = AF_UNSPEC;
  connect(client.client_bell(), &unspecified, sizeof(unspecified));
  shutdown(client.client_bell(), SHUT_RDWR);
  v1::Event event;
  for (int i = 1; i <= 3; ++i) {
    client.reader()->Arm();
    ASSERT_TRUE(client.Submit(BatchOf(i)));
    ASSERT_TRUE(client.NextEvent(&event));
  }
  ExpectServes();
}

// A connection whose close waits: its peer takes nothing.
UniqueFd Lingering(UniqueFd* listener, int seconds) {
  *listener = UniqueFd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const int least = 1;
  setsockopt(listener->get(), SOL_SOCKET, SO_RCVBUF, &least, sizeof(least));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(bind(listener->get(), generic, size), 0);
  EXPECT_EQ(listen(listener->get(), 1), 0);
  EXPECT_EQ(getsockname(listener->get(), generic, &size), 0);
  UniqueFd client(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  EXPECT_EQ(connect(client.get(), generic, size), 0);
  const std::string bytes(1 << 16, 'x');
  while (send(client.get(), bytes.data(), bytes.size(), MSG_DONTWAIT) > 0) {
  }
  const linger wait = {1, seconds};
  setsockopt(client.get(), SOL_SOCKET, SO_LINGER, &wait, sizeof(wait));
  return client;
}

bool SendDescriptor(int to, int fd) {
  char byte = 0;
  iovec vector = {&byte, 1};
  msghdr message = {};
  message.msg_iov = &vector;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  message.msg_control = control;
  message.msg_controllen = sizeof(control);
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(sizeof(int));
  memcpy(CMSG_DATA(header), &fd, sizeof(fd));
  return sendmsg(to, &message, MSG_NOSIGNAL | MSG_DONTWAIT) > 0;
}

TEST_F(DoorbellsTest, DescriptorsWhoseCloseWaitsStopNobody) {
  constexpr int kMinute = 60;  // longer than the test takes by far
  for (const bool hangs_up : {false, true}) {
    TestLocalClient client(daemon_.socket_path());
    if (hangs_up) {
      ASSERT_TRUE(client.Hello().has_hello());
    }
    UniqueFd listener;
    UniqueFd lingering = Lingering(&listener, kMinute);
    ASSERT_TRUE(SendDescriptor(client.fd(), lingering.get()));
    lingering.Reset();
    const SteadyTime begin = SteadyNow();
    if (hangs_up) {
      client.Disconnect();
    } else {
      EXPECT_TRUE(client.AtEnd()) << "who sends descriptors is dropped";
    }
    ExpectServes();
    EXPECT_LT(SteadyNow() - begin, absl::Seconds(kMinute - 20));
  }
  // To the bell the daemon listens to nothing.
  TestLocalClient client(daemon_.socket_path());
  ASSERT_TRUE(client.Hello().has_hello());
  UniqueFd listener;
  UniqueFd lingering = Lingering(&listener, kMinute);
  EXPECT_FALSE(SendDescriptor(client.client_bell(), lingering.get()));
  // This process does not wait for it.
  const linger at_once = {1, 0};
  setsockopt(lingering.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
}

}  // namespace
}  // namespace holdfast
