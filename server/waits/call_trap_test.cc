// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/waits/call_trap.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "server/exec/worker.h"
#include "server/waits/wait_reports.h"

namespace holdfast {
namespace {

// On a thread that may not wait; "": done.
std::string Trapped(const std::function<void()>& call) {
  PrepareCallTrap();
  std::string why;
  std::thread([&] {
    const absl::Status status = TrapCalls();
    if (!status.ok()) {
      why = std::string(status.message());
      return;
    }
    call();
  }).join();
  return why;
}

class CallTrapTest : public testing::Test {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    if (!ChecksWaits()) {
      GTEST_SKIP() << "HOLDFAST_CHECK_WAITS is not set";
    }
    const std::string why = Trapped([] {});
    if (!why.empty()) GTEST_SKIP() << why;
  }
};

TEST_F(CallTrapTest, WhatReturnsAtOnceIsLetThrough) {
  const int bell = eventfd(0, EFD_NONBLOCK);
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_DGRAM, 0, pair), 0);
  ssize_t wrote = 0, sent = 0, full = 0;
  uint64_t number = 1;
  Trapped([&] {
    std::vector<std::vector<char>> blocks;
    for (int i = 0; i < 100; ++i) blocks.emplace_back(1 << i % 24);
    wrote = write(bell, &number, sizeof number);
    sent = send(pair[0], &number, sizeof number, MSG_DONTWAIT);
    std::thread([] {}).join();
    // A result that is an error arrives as one.
    number = UINT64_MAX;
    full = write(bell, &number, sizeof number);
    if (errno != EINVAL) full = 0;
  });
  EXPECT_EQ(wrote, 8);
  // Sockets are read, set and closed.
  int other[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, other), 0);
  int refused = 0;
  Trapped([&] {
    char byte;
    refused = recv(other[0], &byte, 1, 0) < 0 ? errno : 0;
    close(other[0]);
  });
  EXPECT_EQ(refused, EAGAIN);
  close(other[1]);
  EXPECT_EQ(sent, 8);
  EXPECT_EQ(full, -1);
}

TEST_F(CallTrapTest, WhatMayWaitEndsTheProcess) {
  EXPECT_DEATH(Trapped([] { usleep(5000); }),
               "system call that may wait: clock_nanosleep");
  EXPECT_DEATH(Trapped([] { open("/dev/null", O_RDONLY); }),
               "may wait: openat");
  const int blocking = eventfd(0, 0);
  EXPECT_DEATH(Trapped([&] {
                 const uint64_t one = 1;
                 [[maybe_unused]] ssize_t n = write(blocking, &one, sizeof one);
               }),
               "may wait: write");
}

TEST_F(CallTrapTest, MemoryIsTakenInPieces) {
  constexpr size_t kMuch = size_t{256} << 20;
  void* const much =
      mmap(nullptr, kMuch, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  EXPECT_DEATH(Trapped([&] { munmap(much, kMuch); }), "may wait: munmap");
  EXPECT_EQ(Trapped([&] { munmap(much, 1 << 20); }), "");
}

// A page of the file, at its second: all six arguments arrive.
char SecondPage() {
  const int fd = memfd_create("file", 0);
  if (pwrite(fd, "x", 1, 4096) != 1) return 0;
  char found = 0;
  Trapped([&] {
    void* const page = mmap(nullptr, 1, PROT_READ, MAP_SHARED, fd, 4096);
    if (page != MAP_FAILED) found = *static_cast<char*>(page);
  });
  return found;
}

TEST_F(CallTrapTest, WhatIsOnlyReportedIsDone) {
  setenv("HOLDFAST_CHECK_WAITS", "report", 1);  // read by the child
  EXPECT_EXIT(
      {
        const char found = SecondPage();
        sleep(1);  // the other thread tells
        _exit(found);
      },
      testing::ExitedWithCode('x'), "may wait: mmap.*stack.*mmap");
  setenv("HOLDFAST_CHECK_WAITS", "abort", 1);
}

void Wait() { usleep(5000); }

TEST_F(CallTrapTest, TheWorkerIsTrappedWithItsStack) {
  EXPECT_DEATH(
      {
        Worker::Options options;
        options.trap_calls = true;
        Worker worker(options);
        worker.Start();
        worker.Run([] { Wait(); });
      },
      "clock_nanosleep.*stack.*RunPosted");
}

// 40 MiB of heap are unmapped by free: another thread does it.
TEST_F(CallTrapTest, LargeHeapIsGivenBackAside) {
  Worker::Options options;
  options.trap_calls = true;
  Worker worker(options);
  worker.Start();
  worker.Run([] { std::vector<char>(size_t{100} << 20)[1] = 1; });
  worker.Stop();
}

}  // namespace
}  // namespace holdfast
