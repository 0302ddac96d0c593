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

bool DescriptorSink::Write(const spdlog::memory_buf_t& line) {
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

void DescriptorSink::sink_it_(const spdlog::details::log_msg& msg) {
  if (lost_ > 0) {
    const std::string text =
        absl::StrCat("the log was not read, or not written, in time: ", lost_,
                     lost_ == 1 ? " line is lost" : " lines are lost");
    spdlog::details::log_msg told("holdfastd", spdlog::level::warn, text);
    spdlog::memory_buf_t line;
    formatter_->format(told, line);
    if (!Write(line)) {
      ++lost_;
      return;
    }
    lost_ = 0;
  }
  spdlog::memory_buf_t line;
  formatter_->format(msg, line);
  if (!Write(line)) ++lost_;
}

}  // namespace holdfast
