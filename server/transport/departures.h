// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Departures: answers that come later than the local server's thread could wait
// for: to whatever needs the worker, which may be at a long op, and to who
// wanted much memory. The worker and others add them, that thread takes them;
// they may do so when the server is gone already.
// Thread-safety: any thread.
#ifndef HOLDFAST_SERVER_TRANSPORT_DEPARTURES_H_
#define HOLDFAST_SERVER_TRANSPORT_DEPARTURES_H_

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "proto/holdfast.pb.h"
#include "server/transport/hang_up.h"
#include "server/transport/unique_fd.h"

namespace holdfast {

class Departures {
 public:
  Departures();

  // An eventfd, readable when there is something to take, and after Ring.
  const UniqueFd& bell() const { return bell_; }
  void Ring();
  struct Answer {
    uint64_t client = 0;
    v1::LocalReply reply;
    std::vector<UniqueFd> fds = {};  // go with it
    // Of a hello: the client's from now on.
    std::shared_ptr<Session> session = nullptr;
    std::shared_ptr<ConnectionLife> life = nullptr;
  };
  void Add(Answer answer);
  // All that were added since; quietens the bell.
  std::vector<Answer> Take();

 private:
  const UniqueFd bell_;
  std::mutex mutex_;
  std::vector<Answer> answers_;  // guarded by mutex_
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_TRANSPORT_DEPARTURES_H_
