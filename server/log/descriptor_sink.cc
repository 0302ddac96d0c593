// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/log/descriptor_sink.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/memory/heap_meter.h"
#include "server/waits/no_wait.h"
#include "spdlog/pattern_formatter.h"

namespace holdfast {
namespace {

// A descriptor that is ready takes so much without waiting: a pipe, by POSIX.
constexpr size_t kAtOnce = PIPE_BUF;

// Files are always ready. The descriptor may be shared with other programs, so
// it stays in their mode.
bool Ready(int fd) {
  pollfd ready = {fd, POLLOUT, 0};
  return poll(&ready, 1, 0) == 1 && (ready.revents & POLLOUT) != 0;
}

}  // namespace

DescriptorSink::DescriptorSink(int fd)
    : fd_(fd),
      formatter_(std::make_unique<spdlog::pattern_formatter>()),
      thread_([this] { Loop(); }) {}

DescriptorSink::~DescriptorSink() {
  {
    RankedLock lock(lines_mutex_);
    end_ = true;
  }
  waiting_.notify_one();
  thread_.join();
}

void DescriptorSink::set_pattern(const std::string& pattern) {
  set_formatter(std::make_unique<spdlog::pattern_formatter>(pattern));
}

void DescriptorSink::set_formatter(
    std::unique_ptr<spdlog::formatter> formatter) {
  RankedLock lock(lines_mutex_);
  formatter_ = std::move(formatter);
}

bool DescriptorSink::Write(const std::string& line) {
  size_t done = 0;
  while (done < line.size() && Ready(fd_)) {
    if (torn_ && write(fd_, "\n", 1) != 1) return false;
    torn_ = false;
    const size_t bytes = std::min(line.size() - done, kAtOnce);
    const ssize_t n = write(fd_, line.data() + done, bytes);
    // A full disk loses lines of the log, and nothing else.
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;
    done += static_cast<size_t>(n);
  }
  torn_ = torn_ || (done > 0 && done < line.size());
  return done == line.size();
}

void DescriptorSink::log(const spdlog::details::log_msg& msg) {
  const HeapMeter::Elsewhere elsewhere;  // another thread frees the line
  {
    RankedLock lock(lines_mutex_);
    spdlog::memory_buf_t line;
    formatter_->format(msg, line);
    if (bytes_ + line.size() > kMostBytes) {
      ++lost_;
    } else {
      lines_.emplace_back(line.data(), line.size());
      bytes_ += line.size();
    }
  }
  waiting_.notify_one();
}

void DescriptorSink::flush() {
  MayWait("writing the log");
  RankedLock writer(writer_mutex_);
  while (true) {
    std::string line;
    uint64_t lost = 0;
    {
      RankedLock lock(lines_mutex_);
      if (lines_.empty()) return;
      line = std::move(lines_.front());
      lines_.pop_front();
      bytes_ -= line.size();
      lost = std::exchange(lost_, 0);
      if (lost > 0) {
        const std::string text = absl::StrCat(
            "the log was not read, or not written, in time: ", lost,
            lost == 1 ? " line is lost" : " lines are lost");
        spdlog::memory_buf_t told;
        formatter_->format({"holdfastd", spdlog::level::warn, text}, told);
        line.insert(0, told.data(), told.size());
      }
    }
    if (Write(line)) continue;
    RankedLock lock(lines_mutex_);
    lost_ += lost + 1;
  }
}

void DescriptorSink::Loop() {
  RankedLock lock(lines_mutex_);
  while (true) {
    waiting_.wait(lock, [this] { return end_ || !lines_.empty(); });
    if (lines_.empty()) return;
    lock.unlock();
    flush();
    lock.lock();
  }
}

}  // namespace holdfast
