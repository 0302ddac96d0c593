// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The daemon's log: spdlog, as text for people or as a JSON object per line for
// programs. A message is one line whatever a client put into it: control
// characters are escaped where lines are made, so that no call can forget it.
// A session's life is told one line per event, never per op; each
// such line has the session's number and trace id. Thread-safety: SetUpLog
// before other threads run; the rest from any thread.
#ifndef HOLDFAST_SERVER_LOG_LOG_H_
#define HOLDFAST_SERVER_LOG_LOG_H_

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>

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

// Opens the file of SetUpLog anew under its name, for whoever has moved it
// (logrotate). On an error the former file stays. OK where there is none.
absl::Status ReopenLog();

// Returns when all lines until now are written: before the process ends.
void FlushLog();

// Formats as `format` says, in the place of what SetUpLog set; for tests.
absl::Status SetLogSink(const std::string& format, spdlog::sink_ptr sink);

// Whether a line about that user's doings may be written now. Each has a share
// of the log, so that nobody fills it, or has others' lines dropped. How many
// were left out is a line of its own, before the next one that is not.
bool MayLog(absl::string_view user);

struct SessionLabel {
  uint64_t id;
  absl::string_view trace_id;
  absl::string_view user = "";  // see MayLog
};
// A name and its value, which is text or a number: in JSON a number. Text may
// be a client's: it is escaped.
struct LogField {
  LogField(absl::string_view name, absl::string_view text)
      : name(name), value(text) {}
  LogField(absl::string_view name, const char* text)
      : name(name), value(text) {}
  LogField(absl::string_view name, uint64_t number);
  LogField(absl::string_view name, double number);  // three digits behind the
                                                    // point

  absl::string_view name;
  std::string value;
  bool is_number = false;
};

// As text: session 3 opened client="python" trace_id=4bf9...
// As JSON the event, the session and each field are members.
void LogSession(spdlog::level::level_enum level, const SessionLabel& session,
                absl::string_view event,
                std::initializer_list<LogField> fields = {});

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_LOG_LOG_H_
