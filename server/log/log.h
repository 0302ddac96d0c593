// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The daemon's log: spdlog, as text for people or as a JSON object per line for
// programs. A session's life is told one line per event, never per op; each
// such line has the session's number and trace id. Thread-safety: SetUpLog
// before other threads run; the rest from any thread.
#ifndef HOLDFAST_SERVER_LOG_LOG_H_
#define HOLDFAST_SERVER_LOG_LOG_H_

#include <initializer_list>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "spdlog/common.h"

namespace holdfast {

struct LogOptions {
  std::string level = "info";   // spdlog's names
  std::string format = "text";  // "text" or "json"
  std::string file;             // "": stderr
};

// InvalidArgument says which flag is wrong and what it may be.
absl::Status SetUpLog(const LogOptions& options);

// Formats as `format` says, in the place of what SetUpLog set; for tests.
absl::Status SetLogSink(const std::string& format, spdlog::sink_ptr sink);

struct SessionLabel {
  uint64_t id;
  absl::string_view trace_id;
};
using LogField = std::pair<absl::string_view, absl::string_view>;

// As text: session 3 opened client="python" trace_id=4bf9...
// As JSON the event, the session and each field are members.
void LogSession(spdlog::level::level_enum level, const SessionLabel& session,
                absl::string_view event,
                std::initializer_list<LogField> fields = {});

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_LOG_LOG_H_
