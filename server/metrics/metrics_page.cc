// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/metrics/metrics_page.h"

#include <functional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "ops/op_schema.h"
#include "server/exec/op_runner.h"
#include "server/metrics/process_usage.h"
#include "server/metrics/prometheus_text.h"

namespace holdfast {
namespace {

using Sessions = std::vector<const v1::SessionStats*>;

// A gauge or counter with one value per session.
void PerSession(const Sessions& sessions, absl::string_view name,
                absl::string_view type, absl::string_view help,
                const std::function<double(const v1::SessionStats&)>& value,
                PrometheusText* out) {
  out->Metric(name, type, help);
  for (const v1::SessionStats* session : sessions) {
    const std::string id = absl::StrCat(session->id());
    out->Sample(
        {{"session", id}, {"user", session->user()}, {"name", session->name()}},
        value(*session));
  }
}

double Sum(const v1::StatsReply& stats,
           const std::function<double(const v1::SessionStats&)>& value) {
  double sum = 0;
  for (const v1::SessionStats& session : stats.sessions()) {
    sum += value(session);
  }
  return sum;
}

void WriteSessions(const Sessions& sessions, PrometheusText* out) {
  using Stats = v1::SessionStats;
  PerSession(
      sessions, "session_memory_in_use_bytes", "gauge",
      "Memory of the session's tensors.",
      [](const Stats& s) { return s.bytes_in_use(); }, out);
  PerSession(
      sessions, "session_memory_cached_bytes", "gauge",
      "Memory that the session's allocator holds for later tensors.",
      [](const Stats& s) { return s.bytes_cached(); }, out);
  PerSession(
      sessions, "session_memory_reserved_bytes", "gauge",
      "Memory that the session takes of the device: in use and cached.",
      [](const Stats& s) { return s.bytes_in_use() + s.bytes_cached(); }, out);
  PerSession(
      sessions, "session_memory_peak_bytes", "gauge",
      "Most memory in use at a time.",
      [](const Stats& s) { return s.peak_bytes_in_use(); }, out);
  PerSession(
      sessions, "session_tensors", "gauge", "Handles of the session.",
      [](const Stats& s) { return s.tensors(); }, out);
  PerSession(
      sessions, "session_queued_bytes", "gauge",
      "Batches that have come and wait, looked at once a second.",
      [](const Stats& s) { return s.queued_bytes(); }, out);
  PerSession(
      sessions, "session_ops_total", "counter", "Ops executed.",
      [](const Stats& s) { return s.ops(); }, out);
  PerSession(
      sessions, "session_device_seconds_total", "counter",
      "Time that the session had the device.",
      [](const Stats& s) { return s.device_seconds(); }, out);
  PerSession(
      sessions, "session_refused_allocations_total", "counter",
      "Allocations refused for want of memory.",
      [](const Stats& s) { return s.refused_allocations(); }, out);
}

void WriteService(const v1::StatsReply& stats, const SessionTotals& totals,
                  PrometheusText* out) {
  using Stats = v1::SessionStats;
  out->Metric("build_info", "gauge", "Version and device of the daemon.");
  out->Sample({{"version", stats.server()}, {"device", stats.device()}}, 1);
  out->Metric("memory_limit_bytes", "gauge",
              "Memory that one session may take; 0: no limit.");
  out->Sample({}, stats.memory_limit_bytes());

  out->Metric("sessions", "gauge", "Sessions by whether a client is there.");
  const double here = Sum(stats, [](const Stats& s) { return s.connected(); });
  out->Sample({{"state", "connected"}}, here);
  out->Sample({{"state", "away"}}, stats.sessions_size() - here);
  out->Metric("connections", "gauge", "Connected clients by transport.");
  for (const char* transport : {"shm", "grpc"}) {
    out->Sample({{"transport", transport}}, Sum(stats, [&](const Stats& s) {
                  return s.connected() && s.transport() == transport;
                }));
  }
  out->Metric("queue_sessions", "gauge",
              "Sessions with batches that wait, looked at once a second.");
  out->Sample({},
              Sum(stats, [](const Stats& s) { return s.queued_bytes() != 0; }));
  out->Metric("queued_bytes", "gauge",
              "Batches of all sessions that have come and wait.");
  out->Sample({}, Sum(stats, [](const Stats& s) { return s.queued_bytes(); }));

  const double in_use =
      Sum(stats, [](const Stats& s) { return s.bytes_in_use(); });
  const double cached =
      Sum(stats, [](const Stats& s) { return s.bytes_cached(); });
  out->Metric("memory_in_use_bytes", "gauge", "Memory of all tensors.");
  out->Sample({}, in_use);
  out->Metric("memory_cached_bytes", "gauge",
              "Memory that allocators hold for later tensors.");
  out->Sample({}, cached);
  out->Metric("memory_reserved_bytes", "gauge",
              "Memory that all sessions take of the device.");
  out->Sample({}, in_use + cached);

  out->Metric("device_seconds_total", "counter",
              "Time that the device worked for sessions, ended ones included.");
  out->Sample({}, totals.ended_device_seconds + Sum(stats, [](const Stats& s) {
                    return s.device_seconds();
                  }));
  out->Metric("refused_allocations_total", "counter",
              "Allocations refused for want of memory, of all sessions.");
  out->Sample({},
              totals.ended_refused_allocations + Sum(stats, [](const Stats& s) {
                return s.refused_allocations();
              }));

  out->Metric("session_events_total", "counter",
              "What happened to sessions since the start.");
  const std::pair<const char*, uint64_t> events[] = {
      {"opened", totals.opened},     {"attached", totals.attached},
      {"resumed", totals.resumed},   {"cut", totals.cut},
      {"detached", totals.detached},
  };
  for (const auto& [event, count] : events) {
    out->Sample({{"event", event}}, count);
  }
  out->Metric("sessions_ended_total", "counter",
              "Ended sessions by the code of the reason; OK: the client left.");
  for (const auto& [code, count] : totals.ended) {
    out->Sample({{"code", absl::StatusCodeToString(code)}}, count);
  }
  out->Metric("sessions_refused_total", "counter",
              "Clients that got no session, by the error's code.");
  for (const auto& [code, count] : totals.refused) {
    out->Sample({{"code", absl::StatusCodeToString(code)}}, count);
  }
}

// Ops that were called at all.
void WriteOps(PrometheusText* out) {
  std::vector<const OpSchema*> called;
  for (const OpSchema& op : AllOps()) {
    if (CountersOf(op.id).calls.load(std::memory_order_relaxed) != 0) {
      called.push_back(&op);
    }
  }
  out->Metric("op_calls_total", "counter",
              "Ops run for clients and gradients, failed ones included.");
  for (const OpSchema* op : called) {
    out->Sample({{"op", op->name}}, CountersOf(op->id).calls.load());
  }
  out->Metric("op_failures_total", "counter", "Ops that failed.");
  for (const OpSchema* op : called) {
    out->Sample({{"op", op->name}}, CountersOf(op->id).failures.load());
  }
  out->Metric("op_duration_seconds", "histogram",
              "Time in the device's thread of one op in 64, drawn at random.");
  std::vector<double> bounds;
  for (int i = 0; i + 1 < kLatencyBuckets; ++i) {
    bounds.push_back(1e-9 * static_cast<double>(LatencyBound(i)));
  }
  for (const OpSchema* op : called) {
    const OpCounters& counters = CountersOf(op->id);
    std::vector<uint64_t> counts;
    for (const auto& count : counters.latency) {
      counts.push_back(count.load(std::memory_order_relaxed));
    }
    out->Histogram({{"op", op->name}}, bounds, counts,
                   1e-9 * counters.nanoseconds.load() / kTimedEvery);
  }
}

void WriteCertificates(const TlsFiles& tls, PrometheusText* out) {
  if (tls.certificate.empty()) return;
  out->Metric("tls_certificate_expiry_timestamp_seconds", "gauge",
              "When the certificate that the flag names expires, in seconds "
              "since the epoch; 0: it cannot be read.");
  const std::pair<const char*, const std::string&> files[] = {
      {"tls_certificate", tls.certificate}, {"tls_client_ca", tls.client_ca}};
  for (const auto& [flag, path] : files) {
    if (path.empty()) continue;
    const absl::StatusOr<absl::Time> expiry = CertificateExpiry(path);
    out->Sample({{"flag", flag}},
                expiry.ok() ? absl::ToUnixSeconds(*expiry) : 0);
  }
}

void WriteWorker(const Watchdog& watchdog, PrometheusText* out) {
  out->Metric("worker_stuck_total", "counter",
              "Times that the thread that runs ops made no progress.");
  out->Sample({}, watchdog.times_stuck());
  out->Metric("worker_late_seconds", "gauge",
              "Since that thread's last progress, once it is late; else 0.");
  out->Sample({}, watchdog.seconds_late());
}

void WriteProcess(double uptime_seconds, PrometheusText* out) {
  const ProcessUsage usage = ReadProcessUsage();
  const auto write = [&](const char* name, const char* type, const char* help,
                         double value) {
    out->ForeignMetric(name, type, help);
    out->Sample({}, value);
  };
  write("process_start_time_seconds", "gauge",
        "Start of the process, in seconds since the epoch.",
        absl::ToUnixMillis(absl::Now()) * 1e-3 - uptime_seconds);
  write("process_cpu_seconds_total", "counter", "Processor time taken.",
        usage.cpu_seconds);
  write("process_resident_memory_bytes", "gauge", "Memory in RAM.",
        usage.resident_bytes);
  write("process_virtual_memory_bytes", "gauge", "Address space.",
        usage.virtual_bytes);
  write("process_open_fds", "gauge", "Open descriptors.",
        usage.open_descriptors);
  write("process_max_fds", "gauge", "Descriptors that may be open.",
        usage.max_descriptors);
  write("process_threads", "gauge", "Threads.", usage.threads);
}

}  // namespace

std::string MetricsPage(SessionRegistry* registry, const Watchdog& watchdog,
                        const Viewer& viewer, const TlsFiles& tls) {
  const v1::StatsReply stats = registry->Stats();
  PrometheusText out;
  WriteService(stats, registry->Totals(), &out);
  WriteWorker(watchdog, &out);
  WriteSessions(VisibleSessions(stats, viewer), &out);
  WriteCertificates(tls, &out);
  WriteOps(&out);
  WriteProcess(stats.uptime_seconds(), &out);
  return out.text();
}

}  // namespace holdfast
