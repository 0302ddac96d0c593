// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Errands: what takes too long for a thread that serves all users. Each user's
// begin in their order, on a few threads that live as long as the user has any,
// so that nobody waits for another user's, and nobody takes all threads.
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
  // `threads`: of a user, at a time. One: each ends before the next begins.
  explicit Errands(int threads) : threads_(threads) {}
  ~Errands() { Finish(); }
  void Finish();  // waits until all are done

  // Where the system has no thread left it is done at once, by the caller.
  void Run(const std::string& user, std::function<void()> errand);

 private:
  struct Own {
    std::deque<std::function<void()>> waiting;
    int threads = 0;
  };
  void Work(const std::string& user);

  const int threads_;
  std::mutex mutex_;
  std::condition_variable done_;
  std::map<std::string, Own> users_;  // who have a thread
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_TRANSPORT_ERRANDS_H_
