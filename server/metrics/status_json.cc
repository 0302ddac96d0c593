// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/metrics/status_json.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "server/log/json_string.h"

namespace holdfast {
namespace {

constexpr size_t kMostSessions = 200;
constexpr size_t kMostOps = 15;

std::string SessionJson(const v1::SessionStats& session) {
  return absl::StrCat(
      "{\"id\":", session.id(), ",\"user\":", JsonString(session.user()),
      ",\"name\":", JsonString(session.name()),
      ",\"client\":", JsonString(session.client()),
      ",\"transport\":", JsonString(session.transport()),
      ",\"trace_id\":", JsonString(session.trace_id()),
      ",\"connected\":", session.connected() ? "true" : "false",
      ",\"tensors\":", session.tensors(),
      ",\"bytes_in_use\":", session.bytes_in_use(),
      ",\"bytes_cached\":", session.bytes_cached(),
      ",\"queued_bytes\":", session.queued_bytes(), ",\"ops\":", session.ops(),
      absl::StrFormat(",\"device_seconds\":%.3f}", session.device_seconds()));
}

// `stats`: of the sessions that now are.
std::string UserJson(const v1::AdminUser& user, const v1::StatsReply& stats) {
  double device_seconds = 0;
  for (const v1::SessionStats& session : stats.sessions()) {
    if (session.user() == user.name()) {
      device_seconds += session.device_seconds();
    }
  }
  return absl::StrCat(
      "{\"name\":", JsonString(user.name()), ",\"sessions\":", user.sessions(),
      ",\"bytes_reserved\":", user.bytes_reserved(),
      ",\"memory_bytes\":", user.limits().memory_bytes(),
      ",\"weight\":", user.limits().weight(),
      absl::StrFormat(",\"device_seconds\":%.3f}", device_seconds));
}

// Of the users with something here those that the viewer sees.
std::string UsersJson(const v1::AdminReply& users, const v1::StatsReply& stats,
                      const Viewer& viewer) {
  std::vector<std::string> rows;
  for (const v1::AdminUser& user : users.users()) {
    if (!viewer.all && user.name() != viewer.user) continue;
    if (user.sessions() == 0 && user.bytes_reserved() == 0) continue;
    rows.push_back(UserJson(user, stats));
  }
  return absl::StrCat("[", absl::StrJoin(rows, ","), "]");
}

std::string OpJson(const v1::OpStats& op) {
  return absl::StrCat("{\"name\":", JsonString(op.name()),
                      ",\"calls\":", op.calls(),
                      ",\"failures\":", op.failures(),
                      absl::StrFormat(",\"seconds\":%.6f}", op.seconds()));
}

template <typename Message, typename Key>
std::vector<const Message*> Largest(std::vector<const Message*> all,
                                    size_t most, Key key) {
  std::stable_sort(
      all.begin(), all.end(),
      [&](const Message* a, const Message* b) { return key(*a) > key(*b); });
  all.resize(std::min(all.size(), most));
  return all;
}

std::string HistoryJson(const std::vector<History::Sample>& samples) {
  std::string json = "{";
  const auto column = [&](absl::string_view name, auto value) {
    const auto append = [&](std::string* out, const History::Sample& sample) {
      absl::StrAppend(out, value(sample));
    };
    absl::StrAppend(&json, json.size() > 1 ? "," : "", "\"", name, "\":[",
                    absl::StrJoin(samples, ",", append), "]");
  };
  using Sample = History::Sample;
  column("uptime_seconds", [](const Sample& s) { return s.uptime_seconds; });
  column("bytes_in_use", [](const Sample& s) { return s.bytes_in_use; });
  column("bytes_cached", [](const Sample& s) { return s.bytes_cached; });
  column("queued_bytes", [](const Sample& s) { return s.queued_bytes; });
  column("sessions", [](const Sample& s) { return s.sessions; });
  column("waiting", [](const Sample& s) { return s.waiting; });
  column("ops_per_second", [](const Sample& s) { return s.ops_per_second; });
  column("busy", [](const Sample& s) { return s.busy; });
  return json + "}";
}

}  // namespace

std::string StatusJson(SessionRegistry* registry, const History& history,
                       const Viewer& viewer) {
  const v1::StatsReply stats = registry->Stats();
  const std::vector<const v1::SessionStats*> visible =
      VisibleSessions(stats, viewer);
  v1::AdminReply users;
  registry->ListUsers(&users);
  std::vector<const v1::OpStats*> ops;
  for (const v1::OpStats& op : stats.ops()) ops.push_back(&op);
  const auto by_memory = [](const v1::SessionStats& s) {
    return s.bytes_in_use() + s.bytes_cached();
  };
  const auto by_time = [](const v1::OpStats& op) { return op.seconds(); };
  return absl::StrCat(
      "{\"server\":", JsonString(stats.server()),
      ",\"device\":", JsonString(stats.device()),
      absl::StrFormat(",\"uptime_seconds\":%.3f", stats.uptime_seconds()),
      ",\"memory_limit_bytes\":", stats.memory_limit_bytes(),
      ",\"device_bytes\":", users.device_bytes(),
      ",\"published_names\":", stats.published_names(),
      ",\"published_bytes\":", stats.published_bytes(),
      ",\"users\":", UsersJson(users, stats, viewer),
      ",\"viewer\":", JsonString(viewer.user),
      ",\"session_count\":", stats.sessions_size(),
      ",\"visible_count\":", visible.size(), ",\"sessions\":[",
      absl::StrJoin(Largest(visible, kMostSessions, by_memory), ",",
                    [](std::string* out, const v1::SessionStats* session) {
                      absl::StrAppend(out, SessionJson(*session));
                    }),
      "],\"ops\":[",
      absl::StrJoin(Largest(ops, kMostOps, by_time), ",",
                    [](std::string* out, const v1::OpStats* op) {
                      absl::StrAppend(out, OpJson(*op));
                    }),
      "],\"history\":", HistoryJson(history.Samples()), "}");
}

}  // namespace holdfast
