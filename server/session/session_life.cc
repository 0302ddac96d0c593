// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/session/session_life.h"

#include <algorithm>
#include <utility>

namespace holdfast {

using Lock = std::lock_guard<std::mutex>;

SessionLife::SessionLife(absl::Duration grace, SteadyTime now)
    : grace_(grace),
      next_grace_(grace),
      promised_until_(now + kConnectionComesWithin),
      expires_(now + std::max(grace, kFirstComesWithin)) {}

bool SessionLife::InUse(SteadyTime now) const {
  return connected() || (state() == State::kAwaited && now < promised_until_);
}

void SessionLife::NoteDisconnection(SteadyTime now) {
  if (!connected()) return;
  // A client that has left has said how long the session stays.
  if (state() != State::kLeaving) expires_ = now + grace_;
}

void SessionLife::Await(SteadyTime now) {
  NoteDisconnection(now);
  expires_ = std::max(expires_, now + next_grace_);
  promised_until_ = now + kConnectionComesWithin;
  Become(State::kAwaited);
}

bool SessionLife::Attach(std::string token, absl::Duration grace,
                         bool only_if_away, SteadyTime now) {
  Lock lock(mutex_);
  if (ended() || (only_if_away && InUse(now))) return false;
  token_ = std::move(token);
  void_token_ = false;
  next_grace_ = grace;
  Await(now);
  return true;
}

bool SessionLife::Resume(const std::string& token, SteadyTime now) {
  Lock lock(mutex_);
  if (ended() || leaving() || !Has(token)) return false;
  Await(now);
  return true;
}

bool SessionLife::Arrive(const std::string& token, SteadyTime now) {
  Lock lock(mutex_);
  if (ended() || leaving() || !Has(token)) return false;
  grace_ = next_grace_;
  expires_ = now + grace_;
  Become(State::kConnected);
  return true;
}

void SessionLife::Cut(SteadyTime now) {
  Lock lock(mutex_);
  if (state() != State::kConnected) return;
  NoteDisconnection(now);
  Become(State::kAway);
}

void SessionLife::Expel(SteadyTime now) {
  Lock lock(mutex_);
  if (!connected()) return;
  NoteDisconnection(now);
  void_token_ = true;
  Become(State::kAway);
}

bool SessionLife::Leave(const std::string& token, std::string next, Stay stay,
                        SteadyTime now) {
  Lock lock(mutex_);
  if (ended() || leaving() || !Has(token)) return false;
  // Whoever leaves before its connection came had its grace promised, too.
  expires_ = stay == Stay::kUntilEnded ? SteadyTime::Future()
                                       : std::max(expires_, now + next_grace_);
  left_by_ = std::exchange(token_, std::move(next));
  Become(state() == State::kConnected ? State::kLeaving : State::kAway);
  return true;
}

void SessionLife::Left(SteadyTime now) {
  Lock lock(mutex_);
  if (state() != State::kLeaving) return;
  // The grace counts from when nobody works here any more.
  expires_ = std::max(expires_, now + grace_);
  Become(State::kAway);
}

bool SessionLife::Tick(SteadyTime now) {
  Lock lock(mutex_);
  if (state() == State::kAwaited && now >= promised_until_) {
    Become(State::kAway);
  }
  if (state() != State::kAway || now < expires_) return false;
  Become(State::kEnded);
  return true;
}

bool SessionLife::End() {
  Lock lock(mutex_);
  if (ended()) return false;
  Become(State::kEnded);
  return true;
}

void SessionLife::Restore() {
  Lock lock(mutex_);
  expires_ = SteadyTime::Future();
  Become(State::kAway);
}

void SessionLife::SetGrace(absl::Duration grace) {
  Lock lock(mutex_);
  grace_ = next_grace_ = grace;
}

void SessionLife::set_token(std::string token) {
  Lock lock(mutex_);
  token_ = std::move(token);
}

bool SessionLife::in_use(SteadyTime now) const {
  Lock lock(mutex_);
  return InUse(now);
}

std::string SessionLife::token() const {
  Lock lock(mutex_);
  return token_;
}

bool SessionLife::WasLeftBy(const std::string& token) const {
  Lock lock(mutex_);
  return !token.empty() && !ended() && left_by_ == token;
}

SteadyTime SessionLife::expires() const {
  Lock lock(mutex_);
  return expires_;
}

absl::Duration SessionLife::grace() const {
  Lock lock(mutex_);
  return next_grace_;
}

}  // namespace holdfast
