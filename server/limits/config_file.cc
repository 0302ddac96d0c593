// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/limits/config_file.h"

#include <errno.h>
#include <string.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <sstream>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"
#include "proto/config.pb.h"

namespace holdfast {
namespace {

using google::protobuf::TextFormat;

constexpr double kLeastWeight = 0.01;
constexpr double kMostWeight = 100;

absl::Status Mistake(const std::string& path, int line,
                     absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(
      "[config] ", path, ":", line, ": ", what,
      ". docs/operating.md (section Limits) says what a configuration may "
      "hold."));
}

// Keeps the first mistake.
class FirstError final : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, google::protobuf::io::ColumnNumber,
                const std::string& message) override {
    if (message_.empty()) {
      line_ = line + 1;
      message_ = message;
    }
  }
  int line() const { return line_; }
  const std::string& message() const { return message_; }

 private:
  int line_ = 0;
  std::string message_;
};

// A message's fields with the lines they are on.
struct Place {
  const std::string& path;
  const google::protobuf::Descriptor* type;
  const TextFormat::ParseInfoTree* tree;

  int LineOf(const char* field, int index = -1) const {
    const auto* descriptor = type->FindFieldByName(field);
    return tree == nullptr ? 0 : tree->GetLocation(descriptor, index).line + 1;
  }
  absl::Status Bad(const char* field, const absl::Status& status) const {
    return Mistake(path, LineOf(field),
                   absl::StrCat(field, ": ", status.message()));
  }
};

absl::Status ReadSize(const Place& place, const char* field,
                      const std::string& text, bool there,
                      const std::function<void(uint64_t)>& set) {
  if (!there) return absl::OkStatus();
  absl::StatusOr<uint64_t> bytes = ParseSize(text);
  if (!bytes.ok()) return place.Bad(field, bytes.status());
  set(*bytes);
  return absl::OkStatus();
}

absl::StatusOr<v1::Limits> ReadLimits(const v1::LimitsConfig& config,
                                      const Place& place) {
  v1::Limits limits;
  absl::Status status =
      ReadSize(place, "memory", config.memory(), config.has_memory(),
               [&](uint64_t b) { limits.set_memory_bytes(b); });
  if (status.ok()) {
    status = ReadSize(place, "memory_share", config.memory_share(),
                      config.has_memory_share(),
                      [&](uint64_t b) { limits.set_memory_share_bytes(b); });
  }
  if (status.ok()) {
    status = ReadSize(place, "session_memory", config.session_memory(),
                      config.has_session_memory(),
                      [&](uint64_t b) { limits.set_session_memory_bytes(b); });
  }
  if (!status.ok()) return status;
  if (config.has_weight()) {
    limits.set_weight(config.weight());
    status = CheckLimits(limits);
    if (!status.ok()) return place.Bad("weight", status);
  }
  if (config.has_max_sessions()) limits.set_max_sessions(config.max_sessions());
  if (config.has_max_handles()) limits.set_max_handles(config.max_handles());
  if (config.has_max_graph_nodes()) {
    limits.set_max_graph_nodes(config.max_graph_nodes());
  }
  if (config.has_max_names()) limits.set_max_names(config.max_names());
  if (config.has_max_connections()) {
    limits.set_max_connections(config.max_connections());
  }
  if (config.has_idle_seconds()) {
    limits.set_idle_seconds(config.idle_seconds());
    status = CheckLimits(limits);
    if (!status.ok()) return place.Bad("idle_seconds", status);
  }
  if (config.has_op_seconds()) {
    limits.set_op_seconds(config.op_seconds());
    status = CheckLimits(limits);
    if (!status.ok()) return place.Bad("op_seconds", status);
  }
  return limits;
}

absl::StatusOr<Configuration> Understand(const v1::Config& config,
                                         const std::string& path,
                                         TextFormat::ParseInfoTree* tree) {
  Configuration result;
  const Place top{path, v1::Config::descriptor(), tree};
  const auto nested = [&](const TextFormat::ParseInfoTree* parent,
                          const google::protobuf::Descriptor* type,
                          const char* field, int index) {
    return parent == nullptr
               ? nullptr
               : parent->GetTreeForNested(type->FindFieldByName(field), index);
  };
  absl::StatusOr<v1::Limits> limits =
      ReadLimits(config.default_limits(),
                 {path, v1::LimitsConfig::descriptor(),
                  config.has_default_limits()
                      ? nested(tree, top.type, "default_limits", -1)
                      : nullptr});
  if (!limits.ok()) return limits.status();
  result.default_limits = *std::move(limits);
  for (int i = 0; i < config.user_size(); ++i) {
    const v1::UserConfig& user = config.user(i);
    const int line = top.LineOf("user", i);
    if (user.name().empty()) return Mistake(path, line, "a user needs a name");
    const auto* own = nested(tree, top.type, "user", i);
    limits = ReadLimits(
        user.limits(),
        {path, v1::LimitsConfig::descriptor(),
         user.has_limits()
             ? nested(own, v1::UserConfig::descriptor(), "limits", -1)
             : nullptr});
    if (!limits.ok()) return limits.status();
    if (!result.users.emplace(user.name(), *std::move(limits)).second) {
      return Mistake(path, line,
                     absl::StrCat("the user '", user.name(), "' is twice"));
    }
    if (user.admin()) result.admins.insert(user.name());
  }
  absl::Status status =
      ReadSize(top, "device_memory", config.device_memory(),
               !config.device_memory().empty(),
               [&](uint64_t bytes) { result.device_bytes = bytes; });
  if (!status.ok()) return status;
  return result;
}

}  // namespace

absl::StatusOr<uint64_t> ParseSize(absl::string_view text) {
  constexpr struct {
    const char* name;
    double bytes;
  } kUnits[] = {{"", 1},
                {"B", 1},
                {"KB", 1e3},
                {"MB", 1e6},
                {"GB", 1e9},
                {"TB", 1e12},
                {"KiB", 1024.0},
                {"MiB", 1048576.0},
                {"GiB", 1073741824.0},
                {"TiB", 1099511627776.0}};
  const absl::string_view trimmed = absl::StripAsciiWhitespace(text);
  const size_t end = trimmed.find_first_not_of("0123456789.");
  const absl::string_view unit = absl::StripAsciiWhitespace(
      end == absl::string_view::npos ? "" : trimmed.substr(end));
  double number = 0;
  if (absl::SimpleAtod(trimmed.substr(0, end), &number)) {
    for (const auto& known : kUnits) {
      if (unit != known.name) continue;
      const double bytes = std::round(number * known.bytes);
      if (bytes < 9e18) return static_cast<uint64_t>(bytes);
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("a size must be a number with a unit, such as \"512MiB\" or "
                   "\"8GiB\" (KB, MB, GB, TB, KiB, MiB, GiB, TiB). Got \"",
                   text, "\""));
}

absl::Status CheckLimits(const v1::Limits& limits) {
  // Written so that NaN fails.
  if (limits.has_weight() &&
      !(limits.weight() >= kLeastWeight && limits.weight() <= kMostWeight)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a weight must be ", kLeastWeight, " to ", kMostWeight,
                     ". Got ", limits.weight()));
  }
  if (limits.has_idle_seconds() &&
      !(limits.idle_seconds() >= 0 && limits.idle_seconds() <= 1e9)) {
    return absl::InvalidArgumentError(
        absl::StrCat("idle seconds must be 0 (no limit) to 1e9. Got ",
                     limits.idle_seconds()));
  }
  if (limits.has_op_seconds() &&
      !(limits.op_seconds() >= 0 && limits.op_seconds() <= 1e9)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "op seconds must be 0 (no limit) to 1e9. Got ", limits.op_seconds()));
  }
  return absl::OkStatus();
}

absl::StatusOr<Configuration> ParseConfiguration(absl::string_view text,
                                                 const std::string& path) {
  v1::Config config;
  FirstError error;
  TextFormat::ParseInfoTree tree;
  TextFormat::Parser parser;
  parser.RecordErrorsTo(&error);
  parser.WriteLocationsTo(&tree);
  if (!parser.ParseFromString(std::string(text), &config)) {
    return Mistake(path, error.line(), absl::StripSuffix(error.message(), "."));
  }
  return Understand(config, path, &tree);
}

absl::StatusOr<Configuration> ReadConfiguration(const std::string& path) {
  errno = 0;
  std::ifstream file(path);
  std::ostringstream text;
  if (file) text << file.rdbuf();
  if (!file || file.bad()) {
    return absl::InvalidArgumentError(
        absl::StrCat("[config] --config must name a file that can be read. Got "
                     "'",
                     path, "': ", strerror(errno == 0 ? EIO : errno), "."));
  }
  return ParseConfiguration(text.str(), path);
}

}  // namespace holdfast
