// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// SessionLife: who may use a session, and when it ends. The only place that
// decides either; what is kept is deleted only where this says kEnded.
//
// States:
//   kAwaited    Hello was answered; the client's connection is on its way
//   kConnected  a client is connected
//   kLeaving    its client has left it, and what that client sent is being done
//   kAway       nobody is there; it ends at expires()
//   kEnded      for good
//
// Transitions (-: nothing happens, no: refused and nothing happens):
//
//   event    | kAwaited     kConnected    kLeaving     kAway        kEnded
//   ---------+-------------------------------------------------------------
//   Attach   | kAwaited     kAwaited (2)  kAwaited     kAwaited     no
//   Resume   | kAwaited     kAwaited (2)  no (1)       kAwaited     no
//   Arrive   | kConnected   kConnected    no (1)       kConnected   no
//   Cut      | -            kAway (2)     - (3)        -            -
//   Expel    | -            kAway (2)     kAway        -            -
//   Leave    | kAway        kLeaving      no (1)       kAway        no
//   Left     | -            -             kAway        -            -
//   Tick     | kAway (4)    -             -            kEnded (5)   -
//   End      | kEnded       kEnded        kEnded       kEnded       no
//
//   (1) By token: Attach and Leave replace it, Expel voids it, and the client
//       that had it is refused from then on in every state.
//   (2) A disconnection: expires() is this moment and the grace of the client
//       that was connected; of one that was to come if that is later.
//   (3) What it sent still counts; only Left ends the state.
//   (4) When the connection did not come within kConnectionComesWithin. Its
//       being late ends nothing: expires() stays as it was.
//   (5) When expires() has passed, and only then.
//
// Thread-safety: any thread. Nothing blocks. Tokens change under the registry's
// lock as well, so that its index agrees.
#ifndef HOLDFAST_SERVER_SESSION_SESSION_LIFE_H_
#define HOLDFAST_SERVER_SESSION_SESSION_LIFE_H_

#include <atomic>
#include <mutex>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "proto/steady_time.h"

namespace holdfast {

class SessionLife {
 public:
  enum class State { kAwaited, kConnected, kLeaving, kAway, kEnded };
  // How long a session that was left stays.
  enum class Stay { kUntilEnded, kGrace };
  // Between the reply to Hello and the connection, over gRPC.
  static constexpr absl::Duration kConnectionComesWithin = absl::Seconds(5);
  // A new session stays at least as long for its first connection.
  static constexpr absl::Duration kFirstComesWithin = absl::Seconds(30);

  // A new session, whose client is awaited. Graces are not negative; infinite
  // ones last until the session is ended.
  SessionLife(absl::Duration grace, SteadyTime now);

  // ---- events; those that return a bool: false if refused

  // Another client takes it over, with a token of its own. With `only_if_away`
  // nobody may be using it.
  bool Attach(std::string token, absl::Duration grace, bool only_if_away,
              SteadyTime now);
  // Its client says Hello again after a cut.
  bool Resume(const std::string& token, SteadyTime now);
  // The connection of the client that has the token is there.
  bool Arrive(const std::string& token, SteadyTime now);
  // The connection is gone.
  void Cut(SteadyTime now);
  // The client broke the protocol: it is sent away, and may not come back.
  void Expel(SteadyTime now);
  // The client that has the token leaves the session behind; `next` is the
  // session's token from now on.
  bool Leave(const std::string& token, std::string next, Stay stay,
             SteadyTime now);
  // What the client that left has sent is done.
  void Left(SteadyTime now);
  // True: its time is over, and it has ended just now.
  bool Tick(SteadyTime now);
  // True for the first end of all.
  bool End();
  // It came from the disk: away, until somebody attaches to it or ends it.
  void Restore();
  // The client of now wants another grace period.
  void SetGrace(absl::Duration grace);
  // Of the client of now or the one that is to come.
  void set_token(std::string token);

  // ---- what is so

  State state() const { return state_.load(std::memory_order_acquire); }
  bool ended() const { return state() == State::kEnded; }
  bool connected() const {
    return state() == State::kConnected || state() == State::kLeaving;
  }
  bool leaving() const { return state() == State::kLeaving; }
  // A client is there, or on its way.
  bool in_use(SteadyTime now) const;
  std::string token() const;
  // Whether the client that had the token has left it here.
  bool WasLeftBy(const std::string& token) const;
  // Meaningful while nobody is connected.
  SteadyTime expires() const;
  // Of the client of now, or the one that is awaited.
  absl::Duration grace() const;

 private:
  void Become(State state) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    state_.store(state, std::memory_order_release);
  }
  bool Has(const std::string& token) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return !void_token_ && token == token_;
  }
  bool InUse(SteadyTime now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Note (2).
  void NoteDisconnection(SteadyTime now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Await(SteadyTime now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  std::atomic<State> state_{State::kAwaited};  // written under mutex_
  mutable std::mutex mutex_;
  std::string token_ ABSL_GUARDED_BY(mutex_);
  bool void_token_ ABSL_GUARDED_BY(mutex_) = false;  // after Expel
  std::string left_by_ ABSL_GUARDED_BY(mutex_);
  // Of the client that was connected last; of the one that is to come. The
  // second becomes the first when it arrives.
  absl::Duration grace_ ABSL_GUARDED_BY(mutex_);
  absl::Duration next_grace_ ABSL_GUARDED_BY(mutex_);
  SteadyTime promised_until_ ABSL_GUARDED_BY(mutex_);
  SteadyTime expires_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_SESSION_SESSION_LIFE_H_
