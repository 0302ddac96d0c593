// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The log's file, which can be opened anew after logrotate has moved it.
// Thread-safety: any thread (DescriptorSink's lock).
#ifndef HOLDFAST_SERVER_LOG_LOG_FILE_SINK_H_
#define HOLDFAST_SERVER_LOG_LOG_FILE_SINK_H_

#include <string>

#include "absl/status/status.h"
#include "server/log/descriptor_sink.h"

namespace holdfast {

class LogFileSink final : public DescriptorSink {
 public:
  // Appends to `path`. Throws spdlog_ex where it can't be opened.
  explicit LogFileSink(std::string path);
  ~LogFileSink() override;

  // Opens `path` anew. On an error lines go to the former file as before.
  absl::Status Reopen();

 private:
  const std::string path_;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_LOG_LOG_FILE_SINK_H_
