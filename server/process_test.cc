// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// What ends the daemon's process, tried on real processes.
#include "server/process.h"

#include <ctype.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace holdfast {
namespace {

// A pipe for processes to report through.
class Reports {
 public:
  Reports() {
    if (pipe(ends_) != 0) abort();
  }
  ~Reports() {
    close(ends_[0]);
    close(ends_[1]);
  }
  void Send(const std::string& line) const {
    if (write(ends_[1], (line + "\n").data(), line.size() + 1) < 0) _exit(9);
  }
  // The next line; "" when none comes for ten seconds.
  std::string Next() const {
    std::string line;
    char c;
    pollfd ready = {ends_[0], POLLIN, 0};
    while (poll(&ready, 1, 10000) == 1 && read(ends_[0], &c, 1) == 1) {
      if (c == '\n') return line;
      line += c;
    }
    return "";
  }

 private:
  int ends_[2];
};

pid_t Fork(const std::function<void()>& child) {
  const pid_t pid = fork();
  if (pid == 0) {
    child();
    _exit(0);
  }
  return pid;
}

int ExitStatus(pid_t pid) {
  int status = 0;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

TEST(EndOfService, ASignalIsTheReason) {
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
    Reports reports;
    const pid_t pid = Fork([&] {
      EndOfService end(/*with_parent=*/false);
      reports.Send("ready");
      reports.Send(end.Wait());
    });
    EXPECT_EQ(reports.Next(), "ready");
    kill(pid, signal);
    EXPECT_EQ(reports.Next(), strsignal(signal));
    EXPECT_EQ(ExitStatus(pid), 0);
  }
}

TEST(EndOfService, ItsParentsEndIsTheReasonAndCtrlCIsNot) {
  Reports reports;
  Reports orders;
  const pid_t parent = Fork([&] {
    const pid_t daemon = Fork([&] {
      EndOfService end(/*with_parent=*/true);
      reports.Send("ready");
      reports.Send(end.Wait());
    });
    if (orders.Next() != "interrupt") _exit(8);
    kill(daemon, SIGINT);
    reports.Send("interrupted");
    if (orders.Next() != "end") _exit(8);
  });
  EXPECT_EQ(reports.Next(), "ready");
  orders.Send("interrupt");
  EXPECT_EQ(reports.Next(), "interrupted");
  usleep(50000);
  orders.Send("end");
  EXPECT_EQ(ExitStatus(parent), 0);
  EXPECT_EQ(reports.Next(), "the parent process has ended");
}

TEST(EndOfService, OneThatIsNotNeededStaysWhileItHasSessions) {
  for (const int signal : {SIGUSR1, SIGTERM}) {
    Reports reports;
    const pid_t pid = Fork([&] {
      EndOfService end(/*with_parent=*/true);
      int left = signal == SIGUSR1 ? 3 : 100;  // looks at the sessions
      const std::string reason = [&] {
        reports.Send("ready");
        return end.Wait(nullptr, [&] {
          reports.Send(std::to_string(--left));
          return left > 0;
        });
      }();
      reports.Send(reason);
    });
    EXPECT_EQ(reports.Next(), "ready");
    kill(pid, SIGUSR1);
    EXPECT_NE(reports.Next(), "");
    if (signal == SIGUSR1) {
      EXPECT_EQ(reports.Next(), "1");
      EXPECT_EQ(reports.Next(), "0");
      EXPECT_EQ(reports.Next(), "the parent process has ended");
    } else {
      kill(pid, signal);
      std::string said = reports.Next();
      while (!said.empty() && isdigit(said[0])) said = reports.Next();
      EXPECT_EQ(said, strsignal(signal));
    }
    EXPECT_EQ(ExitStatus(pid), 0);
  }
}

TEST(EndOfService, Review17SeveralDevicesAreLostAtOnce) {
  const pid_t pid = Fork([] {
    EndOfService end(/*with_parent=*/false);
    std::vector<std::thread> devices;
    for (int i = 0; i < 4; ++i) {
      devices.emplace_back([&end, i] {
        end.Restart(absl::DataLossError("device " + std::to_string(i)));
      });
    }
    if (end.Wait() != "the device is lost") _exit(2);
    const absl::Status first = end.lost();
    for (std::thread& device : devices) device.join();
    if (first.ok() || end.lost() != first) _exit(3);
  });
  EXPECT_EQ(ExitStatus(pid), 0);
}

TEST(EndOfService, EndsWhenItIsToldTo) {
  const pid_t pid = Fork([] {
    EndOfService end(/*with_parent=*/false);
    std::thread idle([&end] {
      end.End("nobody is here");
      end.End("nor here");
    });
    const std::string why = end.Wait();
    idle.join();
    // It is no loss, after which the daemon would start again.
    if (why != "nobody is here" || !end.lost().ok()) _exit(2);
  });
  EXPECT_EQ(ExitStatus(pid), 0);
}

TEST(ExitAtTheLatest, EndsAProcessThatDoesNot) {
  const pid_t pid = Fork([] {
    ExitAtTheLatestIn(1);
    while (true) pause();
  });
  EXPECT_EQ(ExitStatus(pid), 1);
}

TEST(DefaultThreads, FollowsTheEnvironment) {
  unsetenv("OMP_NUM_THREADS");
  const int all = DefaultThreads();
  EXPECT_GE(all, 1);
  const std::string more = std::to_string(all + 1);
  setenv("OMP_NUM_THREADS", more.c_str(), 1);
  EXPECT_EQ(DefaultThreads(), all + 1);
  for (const char* nonsense : {"", "0", "-2", "many"}) {
    setenv("OMP_NUM_THREADS", nonsense, 1);
    EXPECT_EQ(DefaultThreads(), all);
  }
  unsetenv("OMP_NUM_THREADS");
}

}  // namespace
}  // namespace holdfast
