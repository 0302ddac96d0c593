// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/session/session_registry.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "kernels/device.h"
#include "ops/op_schema.h"
#include "proto/convert.h"
#include "proto/version.h"
#include "server/exec/op_runner.h"
#include "server/exec/shared_storages.h"
#include "server/exec/worker.h"
#include "server/log/log.h"
#include "server/session/session.h"
#include "spdlog/spdlog.h"

namespace holdfast {
namespace {

constexpr size_t kMaxTextBytes = 256;  // names a client gives

// All that sessions could take together; 0: not known.
uint64_t DeviceBytes(const Device& device) {
  if (!device.host_memory()) return 0;
  return uint64_t{static_cast<uint64_t>(sysconf(_SC_PHYS_PAGES))} *
         static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

// What the flags say.
v1::Limits BaseLimits(const ServerLimits& limits) {
  v1::Limits base;
  base.set_memory_bytes(0);
  base.set_memory_share_bytes(0);
  base.set_session_memory_bytes(limits.memory_limit_bytes);
  base.set_weight(1);
  base.set_max_sessions(0);
  base.set_idle_seconds(0);
  return base;
}

absl::Status CheckVersion(const v1::HelloRequest& request) {
  if (request.min_version() <= kProtocolVersion &&
      request.max_version() >= kMinProtocolVersion &&
      request.min_version() <= request.max_version()) {
    return absl::OkStatus();
  }
  const bool newer = request.min_version() > kProtocolVersion;
  return absl::FailedPreconditionError(absl::StrCat(
      "[hello] client and server must share a protocol version. Got client=",
      request.min_version(), "..", request.max_version(),
      ", server=", kMinProtocolVersion, "..", kProtocolVersion, " (",
      kServerName, "). The ", newer ? "server" : "client",
      " is the older one: install a newer ", newer ? "holdfastd" : "holdfast"));
}

SessionLabel Label(const Session& session) {
  return {session.options().id, session.options().trace_id};
}

}  // namespace

SessionRegistry::SessionRegistry(Device* device, Worker* worker,
                                 ServerLimits limits,
                                 std::shared_ptr<Authenticator> trust)
    : device_(device),
      worker_(worker),
      shared_(std::make_shared<SharedStorages>()),
      limits_(limits),
      trust_(trust != nullptr ? std::move(trust)
                              : std::make_shared<Authenticator>()),
      ledger_(std::make_shared<MemoryLedger>(DeviceBytes(*device))),
      user_limits_(BaseLimits(limits)),
      started_(absl::Now()),
      last_tick_us_(absl::ToUnixMicros(started_)) {}

SessionRegistry::~SessionRegistry() { Shutdown(); }

absl::StatusOr<SessionRegistry::Welcome> SessionRegistry::OpenOrFind(
    const v1::HelloRequest& request, const Peer& peer, bool local) {
  if (absl::Status s = CheckVersion(request); !s.ok()) return s;
  if (request.client().size() > kMaxTextBytes ||
      request.session_name().size() > kMaxTextBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("[hello] names have at most ", kMaxTextBytes, " bytes"));
  }
  Welcome welcome;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    absl::StatusOr<std::shared_ptr<Session>> session =
        FindOrCreate(request, peer, local);
    if (!session.ok()) return session.status();
    welcome.session = *std::move(session);
    welcome.session->set_credential(peer.credential);
    roles_[peer.user.name] = peer.user.role;
  }
  v1::HelloReply& reply = welcome.reply;
  reply.set_version(std::min(request.max_version(), kProtocolVersion));
  reply.set_server(kServerName);
  reply.set_device(std::string(device_->name()));
  reply.set_device_memory(!device_->host_memory());
  reply.set_op_fingerprint(OpTableFingerprint());
  if (request.op_fingerprint() != OpTableFingerprint()) {
    for (const OpSchema& op : AllOps()) {
      v1::OpName* name = reply.add_ops();
      name->set_id(static_cast<uint32_t>(op.id));
      name->set_name(op.name);
      name->set_signature(op.signature);
    }
  }
  worker_->Run([&] {
    // Whoever had the session is cut off before its state is told.
    if (std::unique_ptr<Connection> old =
            welcome.session->TakeConnection(nullptr)) {
      old->Close(absl::AbortedError("another client took over the session"));
    }
    welcome.session->FillHello(request, request.attach(), &reply);
  });
  if (request.attach() || !request.session_token().empty()) {
    LogSession(
        spdlog::level::info, Label(*welcome.session),
        request.attach() ? "attached" : "resumed",
        {{"client", request.client()}, {"transport", local ? "shm" : "grpc"}});
  }
  return welcome;
}

absl::StatusOr<std::shared_ptr<Session>> SessionRegistry::FindOrCreate(
    const v1::HelloRequest& request, const Peer& peer, bool local) {
  if (!request.session_token().empty()) {
    const auto it = by_token_.find(request.session_token());
    // Another user's is as good as none: a guess learns nothing.
    if (it == by_token_.end() || it->second->ended() ||
        it->second->options().user != peer.user.name) {
      return absl::NotFoundError(
          "[hello] the session is gone: its grace period ended, or the daemon "
          "was restarted");
    }
    return it->second;
  }
  std::shared_ptr<Session> named;
  if (!request.session_name().empty()) {
    named = FindByName(request.session_name(), peer.user.name);
  }
  if (request.attach()) {
    if (named == nullptr) {
      return absl::NotFoundError(
          absl::StrCat("[hello] no session is named '", request.session_name(),
                       "' (never made, ended, or its grace period is over)"));
    }
    if (named->options().local != local) {
      return absl::FailedPreconditionError(absl::StrCat(
          "[hello] session '", request.session_name(), "' lives in ",
          named->options().local ? "shared" : "private",
          " memory: attach to it over ",
          named->options().local ? "the daemon's socket" : "gRPC"));
    }
    named->set_grace_seconds(
        std::min(request.grace_seconds(), limits_.max_grace_seconds));
    return named;
  }
  if (named != nullptr) {
    return absl::AlreadyExistsError(
        absl::StrCat("[hello] a session of ", peer.user.name, " is named '",
                     request.session_name(),
                     "' already; attach to it, or choose another name"));
  }
  return Create(request, peer, local);
}

absl::StatusOr<std::shared_ptr<Session>> SessionRegistry::Create(
    const v1::HelloRequest& request, const Peer& peer, bool local) {
  if (by_token_.size() >= limits_.max_sessions) {
    return absl::ResourceExhaustedError(
        absl::StrCat("[hello] at most ", limits_.max_sessions, " sessions"));
  }
  absl::Status room = CheckRoom(peer.user.name);
  if (!room.ok()) return room;
  const v1::Limits limits = user_limits_.Of(peer.user.name);
  Session::Options options;
  options.id = next_id_++;
  options.token = absl::BytesToHexString(NewSecret());
  options.trace_id = absl::BytesToHexString(NewSecret());
  options.name = request.session_name();
  options.client = request.client();
  options.user = peer.user.name;
  options.local = local;
  options.grace_seconds =
      std::min(request.grace_seconds(), limits_.max_grace_seconds);
  options.memory_limit_bytes = limits.session_memory_bytes();
  options.account = Account(peer.user.name);
  options.user_share = Share(peer.user.name);
  options.inline_limit_bytes = limits_.inline_limit_bytes;
  options.find_session = [this, user = peer.user](const std::string& token) {
    return FindByToken(token, user);
  };
  absl::StatusOr<StreamId> stream = device_->CreateStream();
  if (!stream.ok()) return stream.status();
  options.stream = *stream;
  options.shared = shared_;
  auto session = std::make_shared<Session>(device_, options);
  by_token_[options.token] = session;
  worker_->Post([this, session] { worker_->Add(session); });
  LogSession(spdlog::level::info, {options.id, options.trace_id}, "opened",
             {{"name", options.name},
              {"user", options.user},
              {"credential", peer.credential},
              {"client", options.client},
              {"transport", local ? "shm" : "grpc"}});
  return session;
}

void SessionRegistry::Connect(const std::shared_ptr<Session>& session,
                              std::unique_ptr<Connection> connection) {
  worker_->Run([&] { session->SetConnection(std::move(connection)); });
}

void SessionRegistry::Disconnected(const std::shared_ptr<Session>& session,
                                   Connection* connection) {
  worker_->Post([this, session, connection] {
    std::unique_ptr<Connection> dead = session->TakeConnection(connection);
    if (dead == nullptr) return;
    LogSession(spdlog::level::info, Label(*session), "cut");
    dead.reset();
    {
      std::lock_guard<std::mutex> lock(mutex_);
      ++totals_.cut;
    }
    if (session->ended() || session->expires() <= absl::Now()) {
      End(session, absl::DeadlineExceededError(
                       "[session] the client is gone, and no grace was asked "
                       "for"));
    }
  });
}

std::shared_ptr<Session> SessionRegistry::FindByName(const std::string& name,
                                                     const std::string& user) {
  for (const auto& [token, session] : by_token_) {
    if (!session->ended() && session->options().name == name &&
        session->options().user == user) {
      return session;
    }
  }
  return nullptr;
}

std::shared_ptr<Session> SessionRegistry::FindByToken(const std::string& token,
                                                      const User& user) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto it = by_token_.find(token);
  if (it == by_token_.end() || it->second->ended() ||
      it->second->options().user != user.name) {
    return nullptr;
  }
  return it->second;
}

std::vector<std::shared_ptr<Session>> SessionRegistry::Sessions() {
  std::lock_guard<std::mutex> lock(mutex_);
  std::vector<std::shared_ptr<Session>> all;
  all.reserve(by_token_.size());
  for (const auto& [token, session] : by_token_) all.push_back(session);
  return all;
}

absl::Status SessionRegistry::Goodbye(const std::string& token,
                                      const User& user, bool keep) {
  std::shared_ptr<Session> session = FindByToken(token, user);
  if (session == nullptr) {
    return absl::NotFoundError("[goodbye] the session is gone already");
  }
  if (keep && session->options().name.empty()) {
    return absl::InvalidArgumentError(
        "[goodbye] only a named session can be kept: "
        "connect(session=\"name\")");
  }
  if (keep) {
    session->set_grace_seconds(-1);
    {
      std::lock_guard<std::mutex> lock(mutex_);
      ++totals_.detached;
    }
    LogSession(spdlog::level::info, Label(*session), "detached",
               {{"name", session->options().name}});
    worker_->Run([&] {
      // What was sent before the goodbye still counts.
      session->RunSome({1 << 30});
      session->TakeConnection(nullptr);
    });
    return absl::OkStatus();
  }
  End(session, absl::OkStatus());
  return absl::OkStatus();
}

void SessionRegistry::End(const std::shared_ptr<Session>& session,
                          absl::Status reason) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (by_token_.erase(session->options().token) == 0) return;
  }
  worker_->Run([&] {
    session->End(reason);
    worker_->Remove(session.get());
  });
  std::lock_guard<std::mutex> lock(mutex_);
  NoteEnded(*session);
}

v1::StatsReply SessionRegistry::Stats() {
  v1::StatsReply reply;
  reply.set_server(kServerName);
  reply.set_device(std::string(device_->name()));
  reply.set_uptime_seconds(absl::ToDoubleSeconds(absl::Now() - started_));
  reply.set_memory_limit_bytes(limits_.memory_limit_bytes);
  {
    std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [token, session] : by_token_) {
      if (!session->ended()) *reply.add_sessions() = session->Stats();
    }
  }
  for (const OpSchema& op : AllOps()) {
    const OpCounters& counters = AllOpCounters()[static_cast<int>(op.id)];
    if (counters.calls.load(std::memory_order_relaxed) == 0) continue;
    v1::OpStats* stats = reply.add_ops();
    stats->set_name(op.name);
    stats->set_calls(counters.calls.load(std::memory_order_relaxed));
    stats->set_failures(counters.failures.load(std::memory_order_relaxed));
    stats->set_seconds(counters.nanoseconds.load(std::memory_order_relaxed) *
                       1e-9);
  }
  return reply;
}

v1::StatsReply SessionRegistry::StatsFor(const User& user) {
  v1::StatsReply reply = Stats();
  if (user.admin()) return reply;
  v1::StatsReply own = reply;
  own.clear_sessions();
  for (v1::SessionStats& session : *reply.mutable_sessions()) {
    if (session.user() == user.name) {
      *own.add_sessions() = std::move(session);
    }
  }
  return own;
}

absl::Status SessionRegistry::CheckStill(const Session& session,
                                         absl::Time now) {
  const std::string& user = session.options().user;
  const double idle = user_limits_.Of(user).idle_seconds();
  if (idle > 0 && now - session.last_active() > absl::Seconds(idle)) {
    return absl::AbortedError(
        absl::StrCat("[limits] a session of ", user, " may be idle for ", idle,
                     " s and then ends. Keep what is to stay with save(), or "
                     "ask an admin for more (holdfast limits)"));
  }
  absl::Status status = trust_->CheckStill(user, session.credential());
  // Nobody uses a session without a connection: with another token its user
  // may come back to it.
  if (!status.ok() && !session.connected() && trust_->HasToken(user)) {
    return absl::OkStatus();
  }
  return status;
}

void SessionRegistry::ExpireSessions(absl::Time now) {
  last_tick_us_.store(absl::ToUnixMicros(now));
  if (absl::Status status = trust_->Reload(/*force=*/false); !status.ok()) {
    spdlog::error("{} The former tokens stay.", std::string(status.message()));
  }
  for (const std::shared_ptr<Session>& session : Sessions()) {
    absl::Status status = CheckStill(*session, now);
    if (!status.ok() && !session->ended()) End(session, std::move(status));
  }
  std::vector<std::shared_ptr<Session>> over;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    for (const auto& [token, session] : by_token_) {
      if (session->ended() ||
          (!session->connected() && session->expires() <= now)) {
        over.push_back(session);
      } else {
        session->NoteQueue();
      }
    }
  }
  const absl::Status gone = absl::DeadlineExceededError(
      "[session] nobody came back before the grace period was over");
  for (const auto& session : over) End(session, gone);
}

void SessionRegistry::Shutdown() {
  std::vector<std::shared_ptr<Session>> all = Sessions();
  {
    std::lock_guard<std::mutex> lock(mutex_);
    shut_down_ = true;
  }
  for (const auto& session : all) {
    End(session, absl::UnavailableError("the daemon is shutting down"));
  }
}

}  // namespace holdfast
