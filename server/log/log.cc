// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/log/log.h"

#include <atomic>
#include <chrono>
#include <exception>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "google/protobuf/stubs/logging.h"
#include "server/log/json_string.h"
#include "spdlog/formatter.h"
#include "spdlog/sinks/basic_file_sink.h"
#include "spdlog/sinks/stdout_sinks.h"
#include "spdlog/spdlog.h"

namespace holdfast {
namespace {

constexpr char kTextPattern[] = "%Y-%m-%d %H:%M:%S.%e %l %v";
// Lines of this logger are members of a JSON object already.
constexpr char kSessionLogger[] = "session";

std::atomic<bool> g_json{false};

absl::string_view View(spdlog::string_view_t text) {
  return {text.data(), text.size()};
}

class JsonFormatter final : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& msg,
              spdlog::memory_buf_t& out) override {
    std::string line = absl::StrCat(
        "{\"time\":\"",
        absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", absl::FromChrono(msg.time),
                         absl::UTCTimeZone()),
        "\",\"level\":\"", View(spdlog::level::to_string_view(msg.level)),
        "\",");
    if (View(msg.logger_name) == kSessionLogger) {
      absl::StrAppend(&line, View(msg.payload), "}\n");
    } else {
      absl::StrAppend(&line, "\"message\":", JsonString(View(msg.payload)),
                      "}\n");
    }
    out.append(line.data(), line.data() + line.size());
  }
  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<JsonFormatter>();
  }
};

// A line stays one line, whatever a client calls itself.
std::string TextValue(absl::string_view value) {
  const bool plain =
      !value.empty() && value.find_first_not_of(
                            "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUV"
                            "WXYZ0123456789_-.:/+") == value.npos;
  return plain ? std::string(value) : JsonString(value);
}

std::string TextLine(const SessionLabel& session, absl::string_view event,
                     std::initializer_list<LogField> fields) {
  std::string line = absl::StrCat("session ", session.id, " ", event);
  for (const auto& [name, value] : fields) {
    if (!value.empty())
      absl::StrAppend(&line, " ", name, "=", TextValue(value));
  }
  return absl::StrCat(line, " trace_id=", session.trace_id);
}

std::string JsonMembers(const SessionLabel& session, absl::string_view event,
                        std::initializer_list<LogField> fields) {
  std::string members = absl::StrCat(
      "\"message\":",
      JsonString(absl::StrCat("session ", session.id, " ", event)),
      ",\"event\":", JsonString(event), ",\"session\":", session.id,
      ",\"trace_id\":", JsonString(session.trace_id));
  for (const auto& [name, value] : fields) {
    if (value.empty()) continue;
    absl::StrAppend(&members, ",", JsonString(name), ":", JsonString(value));
  }
  return members;
}

}  // namespace

absl::Status SetUpLog(const LogOptions& options) {
  const spdlog::level::level_enum level =
      spdlog::level::from_str(options.level);
  if (level == spdlog::level::off && options.level != "off") {
    return absl::InvalidArgumentError(absl::StrCat(
        "[log] --log_level must be one of trace, debug, info, warning, error, "
        "critical, off. Got '",
        options.level, "'."));
  }
  spdlog::sink_ptr sink;
  try {
    // stdout is for --print_address.
    if (options.file.empty()) {
      sink = std::make_shared<spdlog::sinks::stderr_sink_mt>();
    } else {
      sink = std::make_shared<spdlog::sinks::basic_file_sink_mt>(options.file);
    }
  } catch (const std::exception& e) {
    return absl::InvalidArgumentError(
        absl::StrCat("[log] --log_file cannot be opened: ", e.what(), "."));
  }
  // Abseil makes its table of time zones at their first use, which
  // ThreadSanitizer, blind in the system's library, takes for a race if two
  // threads come to it.
  static_cast<void>(absl::LocalTimeZone());
  absl::Status status = SetLogSink(options.format, std::move(sink));
  if (!status.ok()) return status;
  spdlog::set_level(level);
  spdlog::flush_on(spdlog::level::info);
  // It writes a line to stderr for each text of a client that is not UTF-8.
  google::protobuf::SetLogHandler(nullptr);
  return absl::OkStatus();
}

absl::Status SetLogSink(const std::string& format, spdlog::sink_ptr sink) {
  if (format != "text" && format != "json") {
    return absl::InvalidArgumentError(absl::StrCat(
        "[log] --log_format must be text or json. Got '", format, "'."));
  }
  g_json.store(format == "json");
  if (format == "json") {
    sink->set_formatter(std::make_unique<JsonFormatter>());
  } else {
    sink->set_pattern(kTextPattern);
  }
  // Not through set_default_logger and the registry's formatter, which would
  // format the sink anew.
  for (const char* name : {kSessionLogger, "holdfastd"}) {
    spdlog::drop(name);
    auto logger = std::make_shared<spdlog::logger>(name, sink);
    spdlog::register_logger(logger);
    if (name != kSessionLogger) spdlog::set_default_logger(logger);
  }
  return absl::OkStatus();
}

void LogSession(spdlog::level::level_enum level, const SessionLabel& session,
                absl::string_view event,
                std::initializer_list<LogField> fields) {
  // Where no log was set up, as in tests, spdlog's own default.
  std::shared_ptr<spdlog::logger> logger = spdlog::get(kSessionLogger);
  if (logger == nullptr) logger = spdlog::default_logger();
  if (!logger->should_log(level)) return;
  logger->log(level, g_json.load() ? JsonMembers(session, event, fields)
                                   : TextLine(session, event, fields));
}

}  // namespace holdfast
