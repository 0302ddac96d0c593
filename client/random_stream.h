// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// RandomStream: a stream of random numbers apart from the session's, what
// Python calls a Generator. It lives here: an op that draws from it carries the
// place it starts at, so that nobody waits and no session owns it.
// Thread-safety: all methods from any thread.
#ifndef HOLDFAST_CLIENT_RANDOM_STREAM_H_
#define HOLDFAST_CLIENT_RANDOM_STREAM_H_

#include <cstdint>
#include <mutex>

namespace holdfast::client {

// A place in a stream, RandomState of the protocol.
struct RandomPlace {
  uint64_t seed = 0;
  uint64_t offset = 0;
};

class RandomStream {
 public:
  RandomPlace place() const {
    std::lock_guard<std::mutex> lock(mutex_);
    return place_;
  }
  void Move(RandomPlace place) {
    std::lock_guard<std::mutex> lock(mutex_);
    place_ = place;
  }
  // The next `count` counters, which nobody else gets.
  RandomPlace Take(uint64_t count) {
    std::lock_guard<std::mutex> lock(mutex_);
    const RandomPlace taken = place_;
    place_.offset += count;
    return taken;
  }

 private:
  mutable std::mutex mutex_;
  RandomPlace place_;
};

}  // namespace holdfast::client

#endif  // HOLDFAST_CLIENT_RANDOM_STREAM_H_
