// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// SessionPlace: where a session is, under which name and for how long when
// nobody is connected; and what to tell a user whose connection to it broke.
// What is lost is only said where that is known.
// Thread-safety: any thread.
#ifndef HOLDFAST_CLIENT_SESSION_PLACE_H_
#define HOLDFAST_CLIENT_SESSION_PLACE_H_

#include <cstdint>
#include <mutex>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"

namespace holdfast::client {

class SessionPlace {
 public:
  void Set(std::string address, uint64_t number, std::string name,
           double grace_seconds);
  std::string name() const;
  double grace_seconds() const;

  // "session 'mnist' (number 4) at localhost:50151"; for one without a name
  // "session 4, which has no name, at ...".
  std::string Describe() const;
  // How to go on with it from another program, or why that cannot be.
  std::string HowToAttach() const;

  // The daemon does not have it any more.
  absl::Status Lost(const std::string& reason) const;
  // There was no connection since `since`, and nobody tries any longer.
  absl::Status Unreachable(absl::Time since, const std::string& reason) const;
  // The daemon runs and has it, but hung up.
  absl::Status HungUp(const std::string& reason) const;
  // The line for a user who waits meanwhile.
  std::string Waiting(absl::Time since, absl::Duration longest) const;

 private:
  mutable std::mutex mutex_;
  std::string address_ ABSL_GUARDED_BY(mutex_);
  std::string name_ ABSL_GUARDED_BY(mutex_);
  uint64_t number_ ABSL_GUARDED_BY(mutex_) = 0;
  double grace_seconds_ ABSL_GUARDED_BY(mutex_) = 0;
};

// 600 s, 0.5 s.
std::string SecondsText(double seconds);

}  // namespace holdfast::client

#endif  // HOLDFAST_CLIENT_SESSION_PLACE_H_
