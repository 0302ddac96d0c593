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
    : DescriptorSink(OpenToAppend(path)), path_(std::move(path)) {
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
  RankedLock lock(writer_mutex_);
  close(fd_);
  fd_ = fresh;
  return absl::OkStatus();
}

}  // namespace holdfast
