// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Departures: clients whose sessions have done what they sent before their
// goodbye, which can be answered now. The worker adds them, the local server's
// thread takes them; the worker may do so when the server is gone already.
// Thread-safety: any thread.
#ifndef HOLDFAST_SERVER_TRANSPORT_DEPARTURES_H_
#define HOLDFAST_SERVER_TRANSPORT_DEPARTURES_H_

#include <cstdint>
#include <mutex>
#include <vector>

#include "server/transport/unique_fd.h"

namespace holdfast {

class Departures {
 public:
  Departures();

  // An eventfd, readable when there is something to take, and after Ring.
  const UniqueFd& bell() const { return bell_; }
  void Ring();
  void Add(uint64_t client);
  // All that were added since; quietens the bell.
  std::vector<uint64_t> Take();

 private:
  const UniqueFd bell_;
  std::mutex mutex_;
  std::vector<uint64_t> departed_;  // guarded by mutex_
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_TRANSPORT_DEPARTURES_H_
