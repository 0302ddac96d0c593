// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// SessionRegistry: every session of the daemon, and all that a transport may
// ask of them. The one seam between transports and the rest of the server.
// Thread-safety: all methods from any thread; none waits for queued ops.
#ifndef HOLDFAST_SERVER_SESSION_SESSION_REGISTRY_H_
#define HOLDFAST_SERVER_SESSION_SESSION_REGISTRY_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/holdfast.pb.h"
#include "proto/steady_time.h"
#include "server/exec/kept_tensors.h"
#include "server/exec/worker.h"
#include "server/limits/user_limits.h"
#include "server/memory/memory_ledger.h"
#include "server/session/connection.h"
#include "server/session/session.h"
#include "server/session/session_totals.h"
#include "server/trust/authenticator.h"
#include "server/trust/user.h"

namespace holdfast {

class Device;
class PublishedTensors;
class SharedStorages;
struct UserShare;

// Where sessions are kept that survive the daemon (server/state).
// Thread-safety: any thread; nothing blocks.
class SessionArchive {
 public:
  virtual ~SessionArchive() = default;
  // The session has ended for good.
  virtual void RemoveSession(const std::string& user,
                             const std::string& name) = 0;
  // Somebody waits for it: it is to be loaded next.
  virtual void HurrySession(const std::string& user,
                            const std::string& name) = 0;
  // What the start found, and how much of it is in memory.
  virtual uint64_t bytes_found() const = 0;
  virtual uint64_t bytes_loaded() const = 0;
};

struct ServerLimits {
  uint64_t memory_limit_bytes = 0;        // per session; 0: none
  uint64_t inline_limit_bytes = 1 << 20;  // Put.data, ReadResult.data
  uint64_t upload_limit_bytes = uint64_t{1} << 36;
  uint64_t max_sessions = 10000;
  double max_grace_seconds = 3600;
};

class SessionRegistry {
 public:
  static constexpr size_t kMaxNameBytes = 256;  // of names that clients give
  // `device` and `worker` must outlive the registry. Without `trust`, whoever
  // reaches the daemon from this machine is let in.
  SessionRegistry(Device* device, Worker* worker, ServerLimits limits,
                  std::shared_ptr<Authenticator> trust = nullptr);
  ~SessionRegistry();
  // Another one that sessions may use, of the same kind; before the first
  // session. It must outlive the registry.
  void AddDevice(Device* device) { further_devices_.push_back(device); }

  struct Welcome {
    std::shared_ptr<Session> session;
    v1::HelloReply reply;
  };
  // Opens, resumes or attaches to a session of the peer's user. `local`: the
  // client shares memory with us. On error the reply to send is one with the
  // status.
  absl::StatusOr<Welcome> Hello(const v1::HelloRequest& request,
                                const Peer& peer, bool local);

  // Gives the session the connection of the client that has `token`; the
  // worker serves it from now on. A previous connection is closed first; so is
  // this one if another client has taken the session over meanwhile.
  void Connect(const std::shared_ptr<Session>& session,
               const std::string& token,
               std::unique_ptr<Connection> connection);
  // The transport of `connection` ended (peer died, stream broke). The
  // connection is destroyed on the worker thread soon after. Idempotent.
  void Disconnected(const std::shared_ptr<Session>& session,
                    Connection* connection);

  // Null when no session of the user has that token.
  std::shared_ptr<Session> FindByToken(const std::string& token,
                                       const User& user);

  // The client leaves: ends the session or (keep) leaves it behind. A value:
  // why not. Else `later` is called on the worker thread when it is done; what
  // the client sent before it left a session still counts, for ten minutes.
  std::optional<absl::Status> Goodbye(const v1::GoodbyeRequest& request,
                                      const User& user,
                                      std::function<void()> later);

  // The client calls back what it has sent and that has not run.
  absl::Status Cancel(const v1::CancelRequest& request, const User& user);

  v1::StatsReply Stats();
  SessionTotals Totals();
  // A client that got no session, or no connection to one.
  void NoteRefused(absl::StatusCode code);
  // Unavailable, with the reason, while no new session can be opened.
  absl::Status Ready();
  // What the user may see: the sessions are their own, or all for an admin.
  v1::StatsReply StatsFor(const User& user, const v1::StatsRequest& request);
  std::vector<std::shared_ptr<Session>> Sessions();
  // Ends the session on the worker thread and forgets it.
  void End(const std::shared_ptr<Session>& session, absl::Status reason);
  Authenticator* trust() { return trust_.get(); }

  // Gives the user's session that has the token a name, as if it had been
  // opened under it.
  absl::Status NameSession(const User& user,
                           const v1::AdminRequest::NameSession& request,
                           v1::AdminReply* reply);
  // Called before a session is given a name, so that programs find it where
  // they look: a private daemon's second door. An error: it gets none.
  void set_named_door(std::function<absl::Status()> open);

  // ---- limits

  // Reads the configuration from there, now and on Reload.
  absl::Status Configure(const std::string& path);
  // Reads configuration and tokens again. What has a mistake stays as it was;
  // the mistakes are logged, and the first is returned.
  absl::Status Reload();
  absl::Status SetLimits(const v1::AdminRequest::SetLimits& request);
  // Users with sessions, memory or limits of their own; the default's limits.
  void ListUsers(v1::AdminReply* reply);
  // One of them, who asks.
  void ListUser(const User& who, v1::AdminReply* reply);
  // The user's account, for memory that is no session's.
  std::shared_ptr<MemoryAccount> Account(const std::string& user);
  // The daemon's named tensors, for the worker thread.
  PublishedTensors* names() { return names_.get(); }
  const ServerLimits& limits() const { return limits_; }
  // What a user may take.
  v1::Limits LimitsOf(const std::string& user) { return user_limits_.Of(user); }
  Worker* worker() { return worker_; }

  // Stops an op that takes longer than its user may, or that nobody waits for.
  // For a Watchdog, about a turn that lasts: returns when to ask again at the
  // latest.
  absl::Duration LookAtTurn(const Worker::Turn& turn);
  // The daemon is to end, and will save sessions with a name if `saves`: what
  // they have sent is done as far as it takes no op of more than a second.
  // Others' ops stop.
  void HurryOps(bool saves);

  // Ends sessions whose grace period is over, or whose user may no longer be
  // here; reads tokens again that have changed. Called about once a second by a
  // thread that may wait for files; it waits for no op.
  void ExpireSessions(SteadyTime now);

  // ---- kept_sessions.cc: sessions that go to the disk and come from there
  void set_archive(SessionArchive* archive) { archive_ = archive; }
  // A session of that name will be there; who asks for it is told to wait.
  void AddLoading(const std::string& user, const std::string& name);
  void DropLoading(const std::string& user, const std::string& name);
  // A session that nobody is connected to and nobody finds yet.
  absl::StatusOr<std::shared_ptr<Session>> NewDetached(
      const std::string& user, const std::string& name,
      const std::string& client);
  // It is complete. Worker thread.
  void FinishLoading(const std::shared_ptr<Session>& session);
  // What sessions with a name keep, once they have done what was sent, or
  // `drain` is over. Storages are to be dropped on the worker thread.
  std::vector<KeptTensors> TakeKept(absl::Duration drain);

  // From now on nobody gets a session, and Ready says why.
  void CloseDoor();
  // Ends every session (SIGTERM): connections are told, memory is freed.
  void Shutdown();

 private:
  // Unavailable once the daemon is to end, or its device is lost. REQUIRES:
  // mutex_ held.
  absl::Status CheckOpen() const;
  absl::StatusOr<Welcome> OpenOrFind(const v1::HelloRequest& request,
                                     const Peer& peer, bool local);
  std::optional<absl::Status> Leave(const v1::GoodbyeRequest& request,
                                    const User& user,
                                    std::function<void()> later);
  // The session that the client that had the token has left, or null.
  // REQUIRES: mutex_ held.
  std::shared_ptr<Session> LeftBy(const std::string& token, const User& user);
  // REQUIRES: mutex_ held.
  // Also whether it was there before under another client.
  absl::StatusOr<std::pair<std::shared_ptr<Session>, bool>> FindOrCreate(
      const v1::HelloRequest& request, const Peer& peer, bool local);
  // Options but for id, token, limits and what all sessions share. REQUIRES:
  // mutex_ held.
  absl::StatusOr<std::shared_ptr<Session>> NewSession(Session::Options options);
  // Unavailable while it is being loaded. REQUIRES: mutex_ held.
  absl::Status CheckLoaded(const std::string& user,
                           const std::string& name) const;
  // ---- session_names.cc
  // What a client asks for and the daemon allows.
  absl::StatusOr<absl::Duration> Grace(double asked) const;
  // Takes over a session by its name. REQUIRES: mutex_ held.
  bool Attach(const std::shared_ptr<Session>& session,
              const v1::HelloRequest& request, absl::Duration grace);
  // Whether a local client can attach to it.
  absl::Status CheckMappable(const Session& session, bool local) const;
  absl::Status OpenNamedDoor();
  // ---- child_sessions.cc; REQUIRES, of the first two: mutex_ held
  // The number of the session that a worker's belongs to; 0: it has too many.
  absl::StatusOr<uint64_t> FindParent(const v1::HelloRequest& request,
                                      const User& user);
  void NoteChild(const std::shared_ptr<Session>& session);
  void EndChildren(const Session& parent);

  // The session's token has changed from that. REQUIRES: mutex_ held.
  void Rekey(const std::string& from, const std::shared_ptr<Session>& session);
  // Ends it in the table; false if somebody did before. REQUIRES: mutex_ held.
  bool Strike(const std::shared_ptr<Session>& session,
              const absl::Status& reason);
  // What who comes back with the token is told. REQUIRES: mutex_ held, for all.
  void NoteFormer(const std::string& token, const Session& session,
                  absl::Status told);
  void NoteEnd(const Session& session, const absl::Status& reason);
  void NoteTakenOver(const std::string& token, const Session& session);
  absl::Status WhyUnknown(const std::string& token, const User& user) const;
  absl::Status WhyRefused(const Session& session, const User& user) const;
  // Does what is left of the end of a session that was struck.
  // With `later`, which is called then, it waits for nothing.
  void Finish(const std::shared_ptr<Session>& session,
              const absl::Status& reason,
              std::function<void()> later = nullptr);
  // As End, and waits for nothing.
  void EndLater(const std::shared_ptr<Session>& session,
                const absl::Status& reason);
  // Ends the session if its time is over.
  void EndIfOver(const std::shared_ptr<Session>& session, SteadyTime now,
                 const absl::Status& reason,
                 std::function<void()> later = nullptr);
  void Forget(const Session& session);
  void TellProperties(v1::StatsReply* reply) const;
  void ListGpus(v1::HelloReply* reply) const;
  // The blocks of the user's session of that id, if there is one in the reply.
  void ListMemory(const std::string& user, uint64_t id, v1::StatsReply* reply);
  // REQUIRES: mutex_ held.
  void NoteEnded(const Session& session);
  // REQUIRES: mutex_ held, of both.
  std::shared_ptr<Session> FindByName(const std::string& name,
                                      const std::string& user);
  std::shared_ptr<Session> Find(const std::string& token,
                                const User& user) const;
  std::shared_ptr<Session> FindById(uint64_t id);  // null: not there
  // Where the session that the request wants has a client that is dead or
  // leaves: until the worker knows, for a moment at most. May wait.
  void AwaitHangUp(const v1::HelloRequest& request, const User& user);
  // OK while its user may be here.
  absl::Status CheckStill(const Session& session);
  // OK while it is not idle for too long. Worker thread.
  absl::Status CheckIdle(Session* session, SteadyTime now);
  // The part of a tick that wants the worker, which has sessions other than
  // `serving`.
  void TickBeside(const Session* serving, SteadyTime now);
  // OK when there is room in the user's memory for what the transport holds for
  // one more session. Who has few needs none: to be able to end them. May wait.
  absl::Status CheckBuffers(const v1::HelloRequest& request, const User& user);
  // Lets no session pay for a time in which the worker was held up.
  void NoteTick(SteadyTime now);
  // OK when the user may open another session. `worker`: one of a worker
  // process, which only takes its place among all. REQUIRES: mutex_ held.
  absl::Status CheckRoom(const std::string& user, bool worker);
  absl::StatusOr<std::shared_ptr<Session>> Create(
      const v1::HelloRequest& request, const Peer& peer, bool local,
      absl::Duration grace);
  // The scheduler's account of the user's sessions.
  std::shared_ptr<UserShare> Share(const std::string& user);
  // Brings accounts and sessions to what UserLimits says now.
  void ApplyLimits();

  Device* const device_;
  std::vector<Device*> further_devices_;
  Worker* const worker_;
  const std::shared_ptr<SharedStorages> shared_;
  const std::shared_ptr<PublishedTensors> names_;
  std::atomic<SessionArchive*> archive_{nullptr};
  const ServerLimits limits_;
  const std::shared_ptr<Authenticator> trust_;
  const std::shared_ptr<MemoryLedger> ledger_;
  UserLimits user_limits_;
  const SteadyTime started_;
  std::atomic<int64_t> last_tick_us_;
  std::atomic<bool> ticking_{false};   // a tick waits for the worker
  std::atomic<bool> sweeping_{false};  // names are to be looked at
  std::atomic<bool> hurry_{false};
  // The op that LookAtTurn saw last; of the watch's thread.
  struct SeenOp {
    uint64_t turn = 0, ops = 0;
    SteadyTime since;
  };
  SeenOp seen_op_;
  std::mutex door_mutex_;
  std::function<absl::Status()> open_named_door_;  // guarded by door_mutex_
  std::mutex mutex_;                               // guards what follows
  SessionTotals totals_;
  bool shut_down_ = false;
  std::string config_file_;
  uint64_t next_id_ = 1;
  std::map<std::string, std::weak_ptr<UserShare>> shares_;
  // Roles as last seen, for ListUsers.
  std::map<std::string, Role> roles_;
  std::set<std::pair<std::string, std::string>> loading_;  // user, name
  absl::flat_hash_map<std::string, std::shared_ptr<Session>> by_token_;
  // Of the last tokens that are good no more.
  struct Former {
    std::string user;
    absl::Status told;
  };
  absl::flat_hash_map<std::string, Former> former_;
  // By user, the oldest first.
  std::map<std::string, std::deque<std::string>> former_order_;
  // Workers' sessions by the number of their program's.
  absl::flat_hash_map<uint64_t, std::vector<std::weak_ptr<Session>>> children_;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_SESSION_SESSION_REGISTRY_H_
