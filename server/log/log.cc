// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/log/log.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <map>
#include <mutex>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "google/protobuf/stubs/logging.h"
#include "proto/steady_time.h"
#include "server/log/descriptor_sink.h"
#include "server/log/json_string.h"
#include "server/log/log_file_sink.h"
#include "spdlog/formatter.h"
#include "spdlog/pattern_formatter.h"
#include "spdlog/spdlog.h"

namespace holdfast {
namespace {

constexpr char kTextPattern[] = "%Y-%m-%d %H:%M:%S.%e %l %v";
// Lines of this logger are members of a JSON object already.
constexpr char kSessionLogger[] = "session";

std::atomic<bool> g_json{false};
// Set once, by SetUpLog; null: the log goes to stderr.
LogFileSink* g_file = nullptr;

absl::string_view View(spdlog::string_view_t text) {
  return {text.data(), text.size()};
}

// How many bytes of `rest` are a character that could end a line, move the
// cursor or hide text: C0, DEL, C1 and Unicode's separators. 0: none.
size_t ControlBytes(absl::string_view rest) {
  const auto byte = [&](size_t i) {
    return i < rest.size() ? static_cast<unsigned char>(rest[i]) : 0;
  };
  if (byte(0) < 0x20 || byte(0) == 0x7f) return 1;
  if (byte(0) == 0xc2 && byte(1) >= 0x80 && byte(1) < 0xa0) return 2;
  if (byte(0) == 0xe2 && byte(1) == 0x80 && (byte(2) & 0xfe) == 0xa8) return 3;
  return 0;
}

// The message with such characters as C writes them; what is none is not
// copied.
absl::string_view OneLine(absl::string_view text, std::string* escaped) {
  size_t clean = 0;
  while (clean < text.size() && ControlBytes(text.substr(clean)) == 0) ++clean;
  if (clean == text.size()) return text;
  *escaped = std::string(text.substr(0, clean));
  for (text.remove_prefix(clean); !text.empty();) {
    const size_t control = ControlBytes(text);
    const size_t bytes = std::max<size_t>(control, 1);
    if (control == 0) {
      *escaped += text[0];
    } else {
      absl::StrAppend(escaped, absl::CHexEscape(text.substr(0, bytes)));
    }
    text.remove_prefix(bytes);
  }
  return *escaped;
}

class TextFormatter final : public spdlog::formatter {
 public:
  TextFormatter() : lines_(kTextPattern) {}
  void format(const spdlog::details::log_msg& msg,
              spdlog::memory_buf_t& out) override {
    std::string escaped;
    const absl::string_view text = OneLine(View(msg.payload), &escaped);
    spdlog::details::log_msg line = msg;
    line.payload = spdlog::string_view_t(text.data(), text.size());
    lines_.format(line, out);
  }
  std::unique_ptr<spdlog::formatter> clone() const override {
    return std::make_unique<TextFormatter>();
  }

 private:
  spdlog::pattern_formatter lines_;
};

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
  for (const LogField& field : fields) {
    if (field.value.empty()) continue;
    absl::StrAppend(&line, " ", field.name, "=", TextValue(field.value));
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
  for (const LogField& field : fields) {
    if (field.value.empty()) continue;
    absl::StrAppend(&members, ",", JsonString(field.name), ":",
                    field.is_number ? field.value : JsonString(field.value));
  }
  return members;
}

}  // namespace

LogField::LogField(absl::string_view name, uint64_t number)
    : name(name), value(absl::StrCat(number)), is_number(true) {}

LogField::LogField(absl::string_view name, double number)
    : name(name), value(absl::StrFormat("%.3f", number)), is_number(true) {}

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
      sink = std::make_shared<DescriptorSink>(STDERR_FILENO);
    } else {
      // Never destroyed: threads may log until the process ends.
      static auto& file = *new std::shared_ptr<LogFileSink>(
          std::make_shared<LogFileSink>(options.file));
      g_file = file.get();
      sink = file;
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
  spdlog::flush_on(spdlog::level::critical);
  // It writes a line to stderr for each text of a client that is not UTF-8.
  google::protobuf::SetLogHandler(nullptr);
  return absl::OkStatus();
}

absl::Status ReopenLog() {
  return g_file == nullptr ? absl::OkStatus() : g_file->Reopen();
}

void FlushLog() { spdlog::default_logger()->flush(); }

absl::Status SetLogSink(const std::string& format, spdlog::sink_ptr sink) {
  if (format != "text" && format != "json") {
    return absl::InvalidArgumentError(absl::StrCat(
        "[log] --log_format must be text or json. Got '", format, "'."));
  }
  g_json.store(format == "json");
  if (format == "json") {
    sink->set_formatter(std::make_unique<JsonFormatter>());
  } else {
    sink->set_formatter(std::make_unique<TextFormatter>());
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

bool MayLog(absl::string_view user) {
  // Of a user; more come from nobody who works.
  constexpr double kLinesPerSecond = 20;
  constexpr double kLinesAtOnce = 500;
  constexpr size_t kMaxUsers = 4096;
  struct Share {
    double left = kLinesAtOnce;
    SteadyTime at = SteadyTime::Past();
    uint64_t left_out = 0;
  };
  static std::mutex mutex;
  static auto& shares = *new std::map<std::string, Share>;
  const SteadyTime now = SteadyNow();
  uint64_t left_out = 0;
  {
    std::lock_guard<std::mutex> lock(mutex);
    if (shares.size() >= kMaxUsers) shares.clear();
    Share& share = shares[std::string(user)];
    if (share.at != SteadyTime::Past()) {
      share.left = std::min(
          kLinesAtOnce,
          share.left + kLinesPerSecond * absl::ToDoubleSeconds(now - share.at));
    }
    share.at = now;
    if (share.left < 1) {
      ++share.left_out;
      return false;
    }
    share.left -= 1;
    left_out = std::exchange(share.left_out, 0);
  }
  if (left_out != 0) {
    spdlog::warn("log: {} lines about {} were left out: a user has {} a second",
                 left_out, std::string(user), kLinesPerSecond);
  }
  return true;
}

void LogSession(spdlog::level::level_enum level, const SessionLabel& session,
                absl::string_view event,
                std::initializer_list<LogField> fields) {
  // Where no log was set up, as in tests, spdlog's own default.
  std::shared_ptr<spdlog::logger> logger = spdlog::get(kSessionLogger);
  if (logger == nullptr) logger = spdlog::default_logger();
  if (!logger->should_log(level) || !MayLog(session.user)) return;
  logger->log(level, g_json.load() ? JsonMembers(session, event, fields)
                                   : TextLine(session, event, fields));
}

}  // namespace holdfast
