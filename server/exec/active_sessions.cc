// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/exec/active_sessions.h"

#include <algorithm>
#include <utility>

namespace holdfast {

void ActiveSessions::Add(std::shared_ptr<Session> session) {
  active_.push_back({session.get(), Clock::now()});
  all_.push_back(std::move(session));
}

void ActiveSessions::Remove(const Session* session) {
  const auto is_it = [&](const Active& a) { return a.session == session; };
  active_.erase(std::remove_if(active_.begin(), active_.end(), is_it),
                active_.end());
  Forget(session);
  const auto owned = [&](const std::shared_ptr<Session>& s) {
    return s.get() == session;
  };
  all_.erase(std::remove_if(all_.begin(), all_.end(), owned), all_.end());
}

void ActiveSessions::Clear() {
  active_.clear();
  idle_.clear();
  by_doorbell_.clear();
  all_.clear();
}

bool ActiveSessions::AnyWork() const {
  return std::any_of(active_.begin(), active_.end(), [](const Active& a) {
    return a.session->Runnable(absl::InfiniteDuration());
  });
}

void ActiveSessions::MarkWork() {
  for (const Active& active : active_) active.session->MarkWork();
}

ActiveSessions::Rest ActiveSessions::RetireAll() {
  Rest rest = Rest::kSleep;
  for (size_t i = 0; i < active_.size();) {
    Session* session = active_[i].session;
    if (Retire(session)) {
      active_[i] = active_.back();
      active_.pop_back();
    } else {
      if (session->HasWork()) {
        rest = Rest::kWork;
      } else if (session->AwaitsDevice()) {
        if (!session->Arm()) {
          rest = Rest::kWork;
        } else if (rest == Rest::kSleep) {
          rest = Rest::kAwaitDevice;
        }
      }
      ++i;
    }
  }
  return rest;
}

bool ActiveSessions::HasWorkNow(Session* session) {
  return session->HasWork() || session->AwaitsDevice();
}

bool ActiveSessions::Retire(Session* session) {
  if (HasWorkNow(session) || !session->Arm()) {
    session->Disarm();
    return false;
  }
  const int doorbell = session->doorbell();
  idle_[session] = doorbell;
  if (doorbell >= 0) by_doorbell_[doorbell] = session;
  return true;
}

bool ActiveSessions::Forget(const Session* session) {
  const auto idle = idle_.find(const_cast<Session*>(session));
  if (idle == idle_.end()) return false;
  // A closed descriptor's number may be another session's by now.
  const auto rings = by_doorbell_.find(idle->second);
  if (rings != by_doorbell_.end() && rings->second == session) {
    by_doorbell_.erase(rings);
  }
  idle_.erase(idle);
  return true;
}

void ActiveSessions::Wake(Session* session) {
  if (!Forget(session)) return;
  session->Disarm();
  active_.push_back({session, Clock::now()});
}

void ActiveSessions::Rang(int doorbell) {
  const auto found = by_doorbell_.find(doorbell);
  if (found != by_doorbell_.end()) Wake(found->second);
}

void ActiveSessions::LookAtIdle(bool all) {
  std::vector<Session*> woken;
  for (const auto& [session, doorbell] : idle_) {
    if (!all && doorbell >= 0) continue;
    // Another connection, perhaps: what was armed may be gone.
    if (session->doorbell() != doorbell || HasWorkNow(session) ||
        !session->Arm()) {
      woken.push_back(session);
    }
  }
  for (Session* session : woken) Wake(session);
}

}  // namespace holdfast
