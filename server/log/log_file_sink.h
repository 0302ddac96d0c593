// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The log's file, which can be opened anew after logrotate has moved it.
// Thread-safety: any thread (spdlog's base_sink locks).
#ifndef HOLDFAST_SERVER_LOG_LOG_FILE_SINK_H_
#define HOLDFAST_SERVER_LOG_LOG_FILE_SINK_H_

#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "spdlog/sinks/base_sink.h"

namespace holdfast {

class LogFileSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  // Appends to `path`. Throws spdlog_ex where it can't be opened.
  explicit LogFileSink(std::string path);
  ~LogFileSink() override;

  // Opens `path` anew. On an error lines go to the former file as before.
  absl::Status Reopen();

 private:
  void sink_it_(const spdlog::details::log_msg& msg) override;
  void flush_() override {}  // written at once

  const std::string path_;
  int fd_;  // guarded by base_sink's mutex_
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_LOG_LOG_FILE_SINK_H_
