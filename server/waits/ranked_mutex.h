// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// RankedMutex: std::mutex with a place in the one order in which the server's
// threads take locks. Where waits are checked (wait_reports.h), it is told
// when a thread takes a lock whose rank is not above all that it holds, or when
// one that must not wait takes a lock that is held across waits.
// Else it costs what std::mutex does.
//
// std::mutex, not absl::Mutex: the system's Abseil is not built for
// ThreadSanitizer.
#ifndef HOLDFAST_SERVER_WAITS_RANKED_MUTEX_H_
#define HOLDFAST_SERVER_WAITS_RANKED_MUTEX_H_

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>

#include "absl/base/thread_annotations.h"
#include "server/waits/no_wait.h"

namespace holdfast {

// All locks of the server: name, and whether it may be held across what waits
// (a file, a mapping, another thread). A thread takes them downwards.
//
//         name                waits
#define HOLDFAST_LOCK_RANKS(RANK)                                  \
  RANK(kNamedDoor, true) /* opens a socket */                      \
  RANK(kDisk, true)      /* writes files, waits for the worker */  \
  RANK(kNames, true)     /* asks the system who a user is */       \
  RANK(kRegistry, false) /* the table of sessions */               \
  RANK(kSessionLife, false)                                        \
  RANK(kCancel, false) /* a session's, between two clients */      \
  RANK(kBulk, false)   /* a session's uploads and downloads */     \
  RANK(kExecutorCancel, false)                                     \
  RANK(kPublished, false) /* statistics and memory of names */     \
  RANK(kSessionDevices, false)                                     \
  RANK(kBlocks, false) /* of an executor, handed out to clients */ \
  RANK(kStateFiles, false)                                         \
  RANK(kStateJobs, false)                                          \
  RANK(kUserLimits, false)                                         \
  RANK(kTrust, false)      /* tokens; who guessed wrong */         \
  RANK(kAllocators, false) /* which an account has */              \
  RANK(kAllocator, false)                                          \
  RANK(kLedger, false)                                             \
  RANK(kTransport, false) /* streams, departures, errands */       \
  RANK(kHistory, false)                                            \
  RANK(kWatch, false)  /* watchdog, ticker */                      \
  RANK(kWorker, false) /* what is posted to it */                  \
  RANK(kAside, false)  /* what is handed to other threads */       \
  RANK(kProcess, false)                                            \
  RANK(kLogWriter, true) /* writes to the log's descriptor */      \
  RANK(kLogLines, false) /* lines that are yet to be written */

enum class LockRank : int {
#define HOLDFAST_RANK(name, waits) name,
  HOLDFAST_LOCK_RANKS(HOLDFAST_RANK)
#undef HOLDFAST_RANK
};

namespace waits {
void NoteLock(const void* mutex, LockRank rank);
void NoteUnlock(const void* mutex);
// The thread is about to wait for what others do under that lock.
void CheckCondition(const void* mutex);
// The name of a lock that this thread holds and a NoWait may want; or "".
std::string HeldInNoWaits();
}  // namespace waits

class ABSL_LOCKABLE RankedMutex {
 public:
  explicit RankedMutex(LockRank rank) : rank_(rank) {}
  RankedMutex(const RankedMutex&) = delete;
  RankedMutex& operator=(const RankedMutex&) = delete;

  void lock() ABSL_EXCLUSIVE_LOCK_FUNCTION() {
    if (ChecksWaits()) waits::NoteLock(this, rank_);
    mutex_.lock();
  }
  void unlock() ABSL_UNLOCK_FUNCTION() {
    mutex_.unlock();
    if (ChecksWaits()) waits::NoteUnlock(this);
  }

 private:
  friend class RankedCondition;
  const LockRank rank_;
  std::mutex mutex_;
};

using RankedLock = std::unique_lock<RankedMutex>;

// std::condition_variable over a RankedMutex; a thread that must not wait does
// not wait here either.
class RankedCondition {
 public:
  void notify_one() { condition_.notify_one(); }
  void notify_all() { condition_.notify_all(); }

  template <typename Done>
  void wait(RankedLock& lock, Done done) {
    const Native native(lock);
    condition_.wait(native.lock, done);
  }
  template <typename Duration, typename Done>
  bool wait_for(RankedLock& lock, const Duration& at_most, Done done) {
    const Native native(lock);
    return condition_.wait_for(native.lock, at_most, done);
  }

 private:
  // The lock as std::condition_variable wants it.
  struct Native {
    explicit Native(const RankedLock& of)
        : lock(of.mutex()->mutex_, std::adopt_lock) {
      if (ChecksWaits()) waits::CheckCondition(of.mutex());
    }
    ~Native() { lock.release(); }
    mutable std::unique_lock<std::mutex> lock;
  };
  std::condition_variable condition_;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_WAITS_RANKED_MUTEX_H_
