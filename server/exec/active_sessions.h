// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// ActiveSessions: all sessions of a worker, in two sets. The active ones had
// work of late and are looked at again and again. The idle ones are armed:
// their clients ring when they send something, so that a thousand of them cost
// the others nothing.
// Thread-safety: the worker's thread only.
#ifndef HOLDFAST_SERVER_EXEC_ACTIVE_SESSIONS_H_
#define HOLDFAST_SERVER_EXEC_ACTIVE_SESSIONS_H_

#include <chrono>
#include <memory>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace holdfast {

class Session;

class ActiveSessions {
 public:
  using Clock = std::chrono::steady_clock;

  // A session without work for so long becomes idle.
  explicit ActiveSessions(Clock::duration idle_after)
      : idle_after_(idle_after) {}

  void Add(std::shared_ptr<Session> session);  // as an active one
  void Remove(const Session* session);
  void Clear();

  // Calls in_use(session), which says whether it is, for the active ones, and
  // lets go of those that were not for a while. They are seen at `now`.
  template <typename F>
  void ForEachActive(Clock::time_point now, F in_use);
  template <typename F>
  void ForEachIdle(F visit) {
    for (const auto& [session, doorbell] : idle_) visit(session);
  }

  // Whether any active session has work that its device could take now.
  bool AnyWork() const;
  // Marks what active sessions have enqueued (Session::MarkWork).
  void MarkWork();
  bool any_idle() const { return !idle_.empty(); }

  // Before the worker sleeps: all that have nothing to do become idle. Those
  // whose device is waited for stay active, but wake it as idle ones do.
  enum class Rest { kSleep, kAwaitDevice, kWork };
  Rest RetireAll();
  // The client of an idle session rang that doorbell (Connection::doorbell).
  void Rang(int doorbell);
  // Wakes the idle sessions that have work and no doorbell (gRPC), or with
  // `all`, all that have any, as when connections have come and gone.
  void LookAtIdle(bool all);

 private:
  struct Active {
    Session* session;
    Clock::time_point last_work;
  };
  // False if it has work after all.
  bool Retire(Session* session);
  static bool HasWorkNow(Session* session);
  // Takes it out of the idle set; false if it is not in it.
  bool Forget(const Session* session);
  // Into the active set, if it is idle.
  void Wake(Session* session);

  const Clock::duration idle_after_;
  std::vector<std::shared_ptr<Session>> all_;
  std::vector<Active> active_;
  // The doorbell of each idle session, -1 where it has none; and the reverse.
  absl::flat_hash_map<Session*, int> idle_;
  absl::flat_hash_map<int, Session*> by_doorbell_;
};

}  // namespace holdfast

#include "server/session/session.h"

namespace holdfast {

template <typename F>
void ActiveSessions::ForEachActive(Clock::time_point now, F in_use) {
  for (size_t i = 0; i < active_.size();) {
    Session* session = active_[i].session;
    if (in_use(session)) {
      active_[i].last_work = now;
    } else if (now - active_[i].last_work > idle_after_ && Retire(session)) {
      active_[i] = active_.back();
      active_.pop_back();
      continue;
    }
    ++i;
  }
}

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_EXEC_ACTIVE_SESSIONS_H_
