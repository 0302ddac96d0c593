// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/session/session_registry.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "kernels/device.h"
#include "ops/op_schema.h"
#include "proto/convert.h"
#include "proto/steady_time.h"
#include "proto/version.h"
#include "server/exec/published_tensors.h"
#include "server/exec/worker.h"
#include "server/log/log.h"
#include "server/session/session.h"
#include "server/waits/no_wait.h"
#include "spdlog/spdlog.h"

namespace holdfast {
namespace {

// How long a session that is left may take for what was sent before.
constexpr absl::Duration kLongestLeaving = absl::Minutes(10);
// Ticks come once a second; what is missing after this was held up.
constexpr absl::Duration kLateTick = absl::Seconds(2);

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
  const Session::Options& options = session.options();
  return {options.id, options.trace_id, options.user};
}

}  // namespace

SessionRegistry::~SessionRegistry() { Shutdown(); }

absl::StatusOr<SessionRegistry::Welcome> SessionRegistry::OpenOrFind(
    const v1::HelloRequest& request, const Peer& peer, bool local) {
  if (absl::Status s = CheckVersion(request); !s.ok()) return s;
  if (request.client().size() > kMaxNameBytes ||
      request.session_name().size() > kMaxNameBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("[hello] names have at most ", kMaxNameBytes, " bytes"));
  }
  if (!request.session_name().empty()) {
    if (absl::Status found = OpenNamedDoor(); !found.ok()) return found;
  }
  AwaitHangUp(request, peer.user);
  if (absl::Status room = CheckBuffers(request, peer.user); !room.ok()) {
    return room;
  }
  Welcome welcome;
  bool attached = false;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (absl::Status open = CheckOpen(); !open.ok()) {
      return absl::UnavailableError(absl::StrCat("[hello] ", open.message()));
    }
    auto session = FindOrCreate(request, peer, local);
    if (!session.ok()) return session.status();
    std::tie(welcome.session, attached) = *std::move(session);
    welcome.session->NoteReturn();
    welcome.session->set_credential(peer.credential);
    welcome.reply.set_session_token(welcome.session->token());
    roles_[peer.user.name] = peer.user.role;
  }
  v1::HelloReply& reply = welcome.reply;
  reply.set_attached(attached);
  reply.set_version(std::min(request.max_version(), kProtocolVersion));
  reply.set_server(kServerName);
  reply.set_device(std::string(device_->name()));
  reply.set_device_memory(!device_->host_memory());
  reply.set_devices(1 + static_cast<uint32_t>(further_devices_.size()));
  ListGpus(&reply);
  reply.set_op_fingerprint(OpTableFingerprint());
  if (request.op_fingerprint() != OpTableFingerprint()) {
    for (const OpSchema& op : AllOps()) {
      v1::OpName* name = reply.add_ops();
      name->set_id(static_cast<uint32_t>(op.id));
      name->set_name(op.name);
      name->set_signature(op.signature);
    }
  }
  worker_->RunAbout(welcome.session.get(), [&] {
    // Whoever had the session is cut off before its state is told.
    const absl::Status reason =
        absl::AbortedError("[session] another client took over the session");
    if (attached) {
      welcome.session->HangUp(reason);
    } else if (std::unique_ptr<Connection> old =
                   welcome.session->TakeConnection(nullptr)) {
      old->Close(reason);
    }
    welcome.session->FillHello(request, attached, local, &reply);
  });
  if (attached || !request.session_token().empty()) {
    LogSession(
        spdlog::level::info, Label(*welcome.session),
        attached ? "attached" : "resumed",
        {{"client", request.client()}, {"transport", local ? "shm" : "grpc"}});
  }
  return welcome;
}

absl::StatusOr<std::pair<std::shared_ptr<Session>, bool>>
SessionRegistry::FindOrCreate(const v1::HelloRequest& request, const Peer& peer,
                              bool local) {
  if (!request.session_token().empty()) {
    const auto it = by_token_.find(request.session_token());
    if (it == by_token_.end() || it->second->options().user != peer.user.name) {
      return WhyUnknown(request.session_token(), peer.user);
    }
    if (it->second->local() != local) {
      return absl::FailedPreconditionError(
          "[hello] a session goes on over the transport that it was cut from; "
          "attach to it by its name over another");
    }
    if (!it->second->life()->Resume(request.session_token(), SteadyNow())) {
      return WhyRefused(*it->second, peer.user);
    }
    return std::make_pair(it->second, false);
  }
  const absl::StatusOr<absl::Duration> grace = Grace(request.grace_seconds());
  if (!grace.ok()) return grace.status();
  const std::string& name = request.session_name();
  absl::Status loaded = CheckLoaded(peer.user.name, name);
  if (!loaded.ok()) return loaded;
  const std::shared_ptr<Session> named =
      name.empty() ? nullptr : FindByName(name, peer.user.name);
  if (named != nullptr && (request.attach() || request.attach_if_away())) {
    if (absl::Status fits = CheckMappable(*named, local); !fits.ok()) {
      return fits;
    }
    if (!request.attach() && named->life()->leaving()) {
      return absl::UnavailableError(absl::StrCat(
          "[hello] session '", name,
          "' is being left: what its program sent before is still being done. "
          "Try again in a moment, or take it over with attach=True"));
    }
    if (Attach(named, request, *grace)) return std::make_pair(named, true);
  }
  if (request.attach()) {
    return absl::NotFoundError(
        absl::StrCat("[hello] no session is named '", request.session_name(),
                     "' (never made, ended, or its grace period is over)"));
  }
  if (named != nullptr) {
    return absl::AlreadyExistsError(absl::StrCat(
        "[hello] a session of ", peer.user.name, " is named '",
        request.session_name(), "' already",
        named->life()->in_use(SteadyNow()) ? ", and a program uses it" : "",
        ": attach=True takes it over, another name opens another"));
  }
  absl::StatusOr<std::shared_ptr<Session>> created =
      Create(request, peer, local, *grace);
  if (!created.ok()) return created.status();
  return std::make_pair(*std::move(created), false);
}

absl::StatusOr<std::shared_ptr<Session>> SessionRegistry::Create(
    const v1::HelloRequest& request, const Peer& peer, bool local,
    absl::Duration grace) {
  if (by_token_.size() >= limits_.max_sessions) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "[hello] the daemon has at most ", limits_.max_sessions,
        " sessions. End one of yours (holdfast status lists them, holdfast "
        "end NAME ends one), or ask an admin"));
  }
  Session::Options options;
  if (!request.parent_token().empty()) {
    absl::StatusOr<uint64_t> parent = FindParent(request, peer.user);
    if (!parent.ok()) return parent.status();
    options.parent_id = *parent;
  }
  absl::Status room = CheckRoom(peer.user.name, options.parent_id != 0);
  if (!room.ok()) return room;
  options.name = request.session_name();
  options.client = request.client();
  options.user = peer.user.name;
  options.local = local;
  // Whoever attaches later may come over the other transport.
  options.mappable = local || !options.name.empty();
  options.grace = grace;
  absl::StatusOr<std::shared_ptr<Session>> session =
      NewSession(std::move(options));
  if (!session.ok()) return session.status();
  by_token_[(*session)->token()] = *session;
  NoteChild(*session);
  worker_->PostAbout(session->get(),
                     [this, session = *session] { worker_->Add(session); });
  LogSession(spdlog::level::info, Label(**session), "opened",
             {{"name", request.session_name()},
              {"user", peer.user.name},
              {"credential", peer.credential},
              {"client", request.client()},
              {"transport", local ? "shm" : "grpc"}});
  return session;
}

namespace {

// Of a user whose weight in the device's time is that; a new session's, which
// keeps it. One step for each doubling.
int StreamPriority(double weight) {
  return static_cast<int>(std::lround(std::log2(weight)));
}

}  // namespace

absl::StatusOr<std::shared_ptr<Session>> SessionRegistry::NewSession(
    Session::Options options) {
  options.priority = StreamPriority(user_limits_.Of(options.user).weight());
  absl::StatusOr<StreamId> stream = device_->CreateStream(options.priority);
  if (!stream.ok()) return stream.status();
  options.id = next_id_++;
  options.trace_id = absl::BytesToHexString(NewSecret());
  const v1::Limits limits = user_limits_.Of(options.user);
  options.memory_limit_bytes = limits.session_memory_bytes();
  options.max_handles = limits.max_handles();
  options.max_graph_nodes = limits.max_graph_nodes();
  options.op_seconds = limits.op_seconds();
  options.account = Account(options.user);
  options.user_share = Share(options.user);
  options.inline_limit_bytes = limits_.inline_limit_bytes;
  options.find_session =
      [this, user = User{options.user, Role::kUser}](const std::string& token) {
        return FindByToken(token, user);
      };
  options.stream = *stream;
  options.further_devices = further_devices_;
  options.shared = shared_;
  options.names = names_;
  auto session = std::make_shared<Session>(device_, std::move(options));
  session->life()->set_token(absl::BytesToHexString(NewSecret()));
  return session;
}

void SessionRegistry::Connect(const std::shared_ptr<Session>& session,
                              const std::string& token,
                              std::unique_ptr<Connection> connection) {
  worker_->RunAbout(session.get(), [&] {
    session->SetConnection(std::move(connection), token);
  });
}

void SessionRegistry::Disconnected(const std::shared_ptr<Session>& session,
                                   Connection* connection) {
  worker_->PostAbout(session.get(), [this, session, connection] {
    if (session->life()->leaving()) return;  // what it sent still counts
    std::unique_ptr<Connection> dead = session->TakeConnection(connection);
    if (dead == nullptr) return;
    LogSession(spdlog::level::info, Label(*session), "cut");
    dead.reset();
    const SteadyTime now = SteadyNow();
    session->life()->Cut(now);
    {
      std::lock_guard<std::mutex> lock(mutex_);
      ++totals_.cut;
    }
    EndIfOver(session, now,
              absl::DeadlineExceededError(
                  "[session] the client is gone, and no grace was asked for"));
  });
}

absl::Status SessionRegistry::Cancel(const v1::CancelRequest& request,
                                     const User& user) {
  constexpr size_t kMaxWhereBytes = 1024;
  if (request.where().size() > kMaxWhereBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("[cancel] the place must have at most ", kMaxWhereBytes,
                     " bytes. Got ", request.where().size(), "."));
  }
  const std::shared_ptr<Session> session =
      FindByToken(request.session_token(), user);
  if (session == nullptr) {
    return absl::NotFoundError(
        "[cancel] no session has this token; it ended, or never was.");
  }
  return session->Cancel(request);
}

std::shared_ptr<Session> SessionRegistry::FindByToken(const std::string& token,
                                                      const User& user) {
  std::lock_guard<std::mutex> lock(mutex_);
  return Find(token, user);
}

std::shared_ptr<Session> SessionRegistry::Find(const std::string& token,
                                               const User& user) const {
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

std::shared_ptr<Session> SessionRegistry::LeftBy(const std::string& token,
                                                 const User& user) {
  for (const auto& [key, session] : by_token_) {
    if (session->life()->WasLeftBy(token) &&
        session->options().user == user.name) {
      return session;
    }
  }
  return nullptr;
}

std::optional<absl::Status> SessionRegistry::Goodbye(
    const v1::GoodbyeRequest& request, const User& user,
    std::function<void()> later) {
  if (request.keep()) return Leave(request, user, std::move(later));
  std::shared_ptr<Session> session;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    session = Find(request.session_token(), user);
    if (session == nullptr || !Strike(session, absl::OkStatus())) {
      return absl::NotFoundError("[goodbye] the session is gone already");
    }
  }
  Finish(session, absl::OkStatus(), std::move(later));
  return std::nullopt;
}

std::optional<absl::Status> SessionRegistry::Leave(
    const v1::GoodbyeRequest& request, const User& user,
    std::function<void()> later) {
  const std::string& token = request.session_token();
  std::shared_ptr<Session> session;
  bool again = false;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    session = Find(token, user);
    if (session == nullptr) {
      // A client whose connection broke before it was answered asks again.
      session = LeftBy(token, user);
      again = session != nullptr;
    } else if (session->name().empty()) {
      return absl::InvalidArgumentError(
          "[goodbye] only a session with a name can be left on the daemon: "
          "open it with connect(session=\"name\")");
    } else if (session->life()->Leave(
                   token, absl::BytesToHexString(NewSecret()),
                   request.within_grace() ? SessionLife::Stay::kGrace
                                          : SessionLife::Stay::kUntilEnded,
                   SteadyNow())) {
      // Its client must not take the end of the stream for a cut, and resume.
      Rekey(token, session);
      ++totals_.detached;
    } else {
      session = nullptr;
    }
  }
  if (session == nullptr) {
    return absl::NotFoundError("[goodbye] the session is gone already");
  }
  if (!again) {
    LogSession(spdlog::level::info, Label(*session), "detached",
               {{"name", session->name()}});
  }
  // Nobody waits for the worker, which may be at a long op of this very
  // session; nor for a client that goes on sending.
  worker_->PostAbout(session.get(), [session, later = std::move(later)] {
    if (!session->FinishFor(SteadyNow() + kLongestLeaving, later)) later();
  });
  return std::nullopt;
}

void SessionRegistry::Rekey(const std::string& from,
                            const std::shared_ptr<Session>& session) {
  by_token_.erase(from);
  by_token_[session->token()] = session;
}

bool SessionRegistry::Strike(const std::shared_ptr<Session>& session,
                             const absl::Status& reason) {
  session->life()->End();
  if (by_token_.erase(session->token()) == 0) return false;
  NoteEnd(*session, reason);
  return true;
}

void SessionRegistry::End(const std::shared_ptr<Session>& session,
                          absl::Status reason) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!Strike(session, reason)) return;
  }
  Finish(session, reason);
}

void SessionRegistry::EndLater(const std::shared_ptr<Session>& session,
                               const absl::Status& reason) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (!Strike(session, reason)) return;
  }
  Finish(session, reason, [] {});
}

void SessionRegistry::EndIfOver(const std::shared_ptr<Session>& session,
                                SteadyTime now, const absl::Status& reason,
                                std::function<void()> later) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    // Decided and done under one lock: nobody can come back in between.
    if (!session->life()->Tick(now) && !session->ended()) return;
    if (!Strike(session, reason)) return;
  }
  Finish(session, reason, std::move(later));
}

void SessionRegistry::Finish(const std::shared_ptr<Session>& session,
                             const absl::Status& reason,
                             std::function<void()> later) {
  // Now, and not when the worker has done what it is at.
  session->StopForGood(reason.ok()
                           ? absl::AbortedError("stopped: its client has left")
                           : reason);
  Forget(*session);
  const auto end = [this, session, reason] {
    session->End(reason);
    worker_->Remove(session.get());
    NoteEnded(*session);
    EndChildren(*session);
  };
  if (later == nullptr) return worker_->RunAbout(session.get(), end);
  worker_->PostAbout(
      session.get(), [this, session, end, later = std::move(later)] {
        end();
        Aside* const aside = NoWait::aside();
        if (aside == nullptr) return later();
        // Not before its memory is given back, which is another thread's.
        aside->Post([worker = worker_, session, later] {
          worker->PostAbout(session.get(), [session, later] { later(); });
        });
      });
}

void SessionRegistry::Forget(const Session& session) {
  SessionArchive* const archive = archive_.load();
  if (archive == nullptr || session.name().empty()) return;
  archive->RemoveSession(session.options().user, session.name());
}

void SessionRegistry::NoteTick(SteadyTime now) {
  const absl::Duration since =
      now - SteadyTime::FromMicros(last_tick_us_.load());
  last_tick_us_.store(now.ToMicros());
  if (since <= kLateTick) return;
  for (const std::shared_ptr<Session>& session : Sessions()) {
    session->Excuse(since, now);
  }
}

absl::Status SessionRegistry::CheckIdle(Session* session, SteadyTime now) {
  const std::string& user = session->options().user;
  const double idle = user_limits_.Of(user).idle_seconds();
  if (idle <= 0 || now - session->last_active() <= absl::Seconds(idle) ||
      session->HasWork() ||
      session->life()->state() == SessionLife::State::kAwaited) {
    return absl::OkStatus();
  }
  return absl::AbortedError(
      absl::StrCat("[limits] a session of ", user, " may be idle for ", idle,
                   " s and then ends. Keep what is to stay with save(), or "
                   "ask an admin for more (holdfast limits)"));
}

absl::Status SessionRegistry::CheckStill(const Session& session) {
  const std::string& user = session.options().user;
  absl::Status status = trust_->CheckStill(user, session.credential());
  // Nobody uses a session without a connection: with another token its user
  // may come back to it.
  if (!status.ok() && !session.connected() && trust_->HasToken(user)) {
    return absl::OkStatus();
  }
  return status;
}

void SessionRegistry::ExpireSessions(SteadyTime now) {
  if (absl::Status status = trust_->Reload(/*force=*/false); !status.ok()) {
    spdlog::error("{} The former tokens stay.", std::string(status.message()));
  }
  // The worker does not even look: nobody who wants to come back can, and no
  // time passes for sessions (NoteTick).
  if (ticking_.load()) return;
  NoteTick(now);
  const absl::Status gone = absl::DeadlineExceededError(
      "[session] nobody came back before the grace period was over");
  const auto later = [] {};  // waits for nothing
  for (const std::shared_ptr<Session>& session : Sessions()) {
    const absl::Status status = CheckStill(*session);
    if (!status.ok() && !session->ended()) {
      EndLater(session, status);
    }
    EndIfOver(session, now, gone, later);
  }
  ticking_.store(true);
  worker_->PostBeside(
      [this, now](const Session* serving) { TickBeside(serving, now); });
  // Changes what commands change: between two turns.
  if (sweeping_.exchange(true)) return;
  worker_->Post([this] {
    names_->Sweep();
    sweeping_.store(false);
  });
}

void SessionRegistry::TickBeside(const Session* serving, SteadyTime now) {
  for (const std::shared_ptr<Session>& session : Sessions()) {
    if (session.get() == serving) continue;  // it is not idle
    const absl::Status status = CheckIdle(session.get(), now);
    if (!status.ok() && !session->ended()) End(session, status);
    session->NoteQueue();
  }
  ticking_.store(false);
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
