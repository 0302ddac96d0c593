// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// FairShare: whose turn on the device it is. Device time is shared out by
// weight, first among users, then among the sessions of one user
// (start-time fair queueing on two levels: Goyal, Vin and Cheng, 1996). An
// asynchronous device's time is known late, when the work is done: meanwhile
// nobody runs far ahead of those that still want it (multi-queue fair queueing:
// Hedayati et al., 2019). Who
// has been idle has a little credit, so that a client which computes or thinks
// between its ops loses none of its share, and a short interactive op goes
// first.
// Thread-safety: weights may be set from any thread; all else is the worker's.
#ifndef HOLDFAST_SERVER_EXEC_FAIR_SHARE_H_
#define HOLDFAST_SERVER_EXEC_FAIR_SHARE_H_

#include <algorithm>
#include <atomic>

namespace holdfast {

// Device time used, in seconds divided by the weight at that time.
class ShareAccount {
 public:
  double virtual_time() const { return virtual_time_; }
  double weight() const { return weight_.load(std::memory_order_relaxed); }
  // REQUIRES: weight > 0.
  void set_weight(double weight) {
    weight_.store(weight, std::memory_order_relaxed);
  }

 private:
  friend class FairShare;
  friend struct UserShare;
  void Use(double seconds) { virtual_time_ += seconds / weight(); }
  void RaiseTo(double time) {
    if (virtual_time_ < time) virtual_time_ = time;
  }

  std::atomic<double> weight_{1};
  double virtual_time_ = 0;
  double unsettled_ = 0;  // seconds charged since the last Settle
};

// A user's account, and the clock of the sessions that share it. Owned by
// those sessions together.
struct UserShare {
  ShareAccount account;

 private:
  friend class FairShare;
  double clock = 0;
};

class FairShare {
 public:
  // Idle time that an account may save up, in (virtual) seconds.
  explicit FairShare(double credit_seconds) : credit_(credit_seconds) {}

  // A session begins level with the others, with no credit for the past.
  void Enter(UserShare* user, ShareAccount* session) const {
    user->account.RaiseTo(clock_);
    session->RaiseTo(user->clock);
  }

  // To be called of each session that has work, before Precedes.
  void Contend(UserShare* user, ShareAccount* session) const {
    user->account.RaiseTo(clock_ - credit_);
    session->RaiseTo(user->clock - credit_);
  }

  // Whether session a of its user is to be served before b.
  static bool Precedes(const UserShare& user_a, const ShareAccount& a,
                       const UserShare& user_b, const ShareAccount& b) {
    if (&user_a != &user_b) {
      return user_a.account.virtual_time() < user_b.account.virtual_time();
    }
    return a.virtual_time() < b.virtual_time();
  }

  // The session, which came first, is to be served now.
  void Begin(UserShare* user, const ShareAccount& session) {
    // The clocks follow those that are served; credit does not set them back.
    if (clock_ < user->account.virtual_time()) {
      clock_ = user->account.virtual_time();
    }
    if (user->clock < session.virtual_time()) {
      user->clock = session.virtual_time();
    }
  }

  // It has used so much device time, or, where the device works later, of the
  // worker's.
  static void Charge(UserShare* user, ShareAccount* session, double seconds) {
    user->account.Use(seconds);
    session->Use(seconds);
    session->unsettled_ += seconds;
  }

  // An asynchronous device has worked so long for it since the last call.
  // Worker and device work side by side: the longer time counts.
  static void Settle(UserShare* user, ShareAccount* session, double seconds) {
    // The device is behind by so much at most.
    constexpr double kMostUnsettled = 0.02;
    const double more = seconds - session->unsettled_;
    session->unsettled_ = std::clamp(-more, 0.0, kMostUnsettled);
    if (more <= 0) return;
    user->account.Use(more);
    session->Use(more);
  }

 private:
  const double credit_;
  double clock_ = 0;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_EXEC_FAIR_SHARE_H_
