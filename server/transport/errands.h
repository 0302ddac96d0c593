// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Errands: what takes too long for a thread that serves all users. Each user's
// are done in their order, by a thread that lives as long as the user has any,
// so that nobody waits for another user's.
// Thread-safety: Run from any thread.
#ifndef HOLDFAST_SERVER_TRANSPORT_ERRANDS_H_
#define HOLDFAST_SERVER_TRANSPORT_ERRANDS_H_

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <string>

namespace holdfast {

class Errands {
 public:
  ~Errands() { Finish(); }
  void Finish();  // waits until all are done

  // Where the system has no thread left it is done at once, by the caller.
  void Run(const std::string& user, std::function<void()> errand);

 private:
  void Work(const std::string& user);

  std::mutex mutex_;
  std::condition_variable done_;
  // Of users who have a thread: what it is to do next.
  std::map<std::string, std::deque<std::function<void()>>> waiting_;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_TRANSPORT_ERRANDS_H_
