// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/log/log_file_sink.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"

namespace holdfast {
namespace {

int OpenToAppend(const std::string& path) {
  return open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640);
}

}  // namespace

LogFileSink::LogFileSink(std::string path)
    : path_(std::move(path)), fd_(OpenToAppend(path_)) {
  if (fd_ < 0) throw spdlog::spdlog_ex("'" + path_ + "'", errno);
}

LogFileSink::~LogFileSink() { close(fd_); }

absl::Status LogFileSink::Reopen() {
  const int fresh = OpenToAppend(path_);
  if (fresh < 0) {
    return absl::UnavailableError(
        absl::StrCat("[log] --log_file cannot be opened anew, and the former "
                     "file is written to. Got '",
                     path_, "': ", strerror(errno), "."));
  }
  std::lock_guard<std::mutex> lock(mutex_);
  close(fd_);
  fd_ = fresh;
  return absl::OkStatus();
}

void LogFileSink::sink_it_(const spdlog::details::log_msg& msg) {
  spdlog::memory_buf_t line;
  formatter_->format(msg, line);
  size_t done = 0;
  while (done < line.size()) {
    const ssize_t n = write(fd_, line.data() + done, line.size() - done);
    // A full disk loses lines of the log, and nothing else.
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return;
    done += static_cast<size_t>(n);
  }
}

}  // namespace holdfast
