// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Worker: the thread that owns a device. It decodes and executes the batches
// of all sessions, a slice at a time, by weighted fair share of device time
// (fair_share.h), so that a small interactive session never waits behind
// somebody's long queue. With nothing to do it looks around
// for tens of microseconds, then sleeps in epoll and uses no CPU. It waits for
// nothing else (server/waits/no_wait.h): WorkerAside has threads that do.
// Thread-safety: Post, Run, Wake, Watch, Unwatch and Stop from any thread.
#ifndef HOLDFAST_SERVER_EXEC_WORKER_H_
#define HOLDFAST_SERVER_EXEC_WORKER_H_

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/time/time.h"
#include "proto/steady_time.h"
#include "server/exec/active_sessions.h"
#include "server/exec/close_looks.h"
#include "server/exec/device_time.h"
#include "server/exec/fair_share.h"
#include "server/exec/worker_aside.h"
#include "server/session/session.h"
#include "server/waits/ranked_mutex.h"

namespace holdfast {

class Worker : private Attendant {
 public:
  struct Options {
    absl::Duration spin = absl::Microseconds(50);  // before sleeping
    // At least so often it settles accounts, and shows that it is there.
    absl::Duration tick = absl::Seconds(1);
    // One turn of a session; it also ends when something is posted.
    int slice_commands = 4096;
    absl::Duration slice_time = absl::Milliseconds(2);
    // Of idle sessions: enough for what a client does between two ops.
    absl::Duration credit = absl::Milliseconds(50);
    // Where several sessions want an asynchronous device: how far the ops of
    // one may be ahead of it, in device time; and how much more of the device
    // it may have had than others that still want theirs, in (virtual) seconds.
    absl::Duration lead = absl::Milliseconds(10);
    double most_ahead = 0.005;
    // How long a look at all sessions serves: with a thousand of them it costs
    // as much as many ops.
    absl::Duration look_every = absl::Microseconds(500);
    // How long a session without work is looked at; and how soon a busy worker
    // hears an idle session's doorbell.
    absl::Duration idle_after = absl::Milliseconds(10);
    absl::Duration listen_every = absl::Microseconds(100);
    // Ends the process where the worker makes a system call that may wait
    // (server/waits/call_trap.h).
    bool trap_calls = false;
  };
  explicit Worker(Options options);
  ~Worker();  // stops

  void Start();
  void Stop();

  // Sessions to serve. Remove: the worker drops its reference. Worker thread.
  void Add(std::shared_ptr<Session> session);
  void Remove(const Session* session);

  // Runs `fn` on the worker thread between slices.
  void Post(std::function<void()> fn);
  // The same, and waits for it. Runs directly when called on the worker.
  void Run(const std::function<void()>& fn);
  // The same for what concerns `about` alone: it need not wait for another
  // session's op, but runs where that op's kernel looks (StopSignal::Look).
  // `fn` runs no kernel, and may meet no one's commands but that session's.
  void PostAbout(const Session* about, std::function<void()> fn);
  // Called on the worker inside `about`'s own turn, it is done after that: `fn`
  // owns what it uses. Without a thread both run directly.
  void RunAbout(const Session* about, const std::function<void()>& fn);
  // The same for what concerns everybody but the session whose op runs just
  // then, which `fn` is told (null: none) and must leave alone.
  void PostBeside(std::function<void(const Session* serving)> fn);

  // Ends a sleep: some armed connection has a batch.
  void Wake();
  // Watches a doorbell eventfd while asleep; each ring wakes the worker, which
  // never reads the counter: a client shares the descriptor, and could make the
  // read wait. Unwatch before closing the descriptor.
  void Watch(int eventfd);
  void Unwatch(int eventfd);

  bool OnWorkerThread() const;

  // ---- any thread: what a watchdog looks at. A turn of the loop takes a
  // millisecond or so, and there is at least one in a tick, but where a kernel
  // takes longer.
  uint64_t turns() const { return turns_.load(std::memory_order_relaxed); }
  // The next time that a kernel looks (StopSignal::Look), it is counted here.
  void AskForLook() { waits_.store(true, std::memory_order_relaxed); }
  uint64_t looks() const { return looks_.load(std::memory_order_relaxed); }
  // The number of the session whose turn it is; 0: none's.
  uint64_t session() const { return turn_of_.load(std::memory_order_relaxed); }
  // The kernel's thread number; 0: it does not run.
  pid_t thread() const { return tid_.load(std::memory_order_relaxed); }

  // Turns of sessions, counted; any thread. A number says which session's it
  // is for as long as turn() returns it.
  struct Turn {
    uint64_t number = 0;
    uint64_t session = 0;  // Session::Options.id
    bool under_way() const { return number % 2 != 0; }
  };
  Turn turn() const;
  // Asked at turns of sessions whose ops may take little time.
  CloseLooks* close_looks() { return &close_looks_; }
  // One turn. Worker thread.
  void RunTurn(Session* session, const Session::Slice& slice);

 private:
  using Clock = std::chrono::steady_clock;

  void Loop();
  void Trap();
  // While it waits for an Aside, inside an op: others are served as inside a
  // kernel.
  void LookAround();
  void RunPosted();
  void Attend() override;
  void Enqueue(const Session* about, std::function<void()> fn);
  void Await(const Session* about, const std::function<void()>& fn);
  bool ServeOne();  // false: no session had work
  // See Session::Slice.
  absl::Duration lead() const {
    return contended_ ? options_.lead : absl::InfiniteDuration();
  }
  void LookForWork();
  // Takes what devices have done for the session into uses_.
  void TakeUses(Session* session);
  // To the accounts of sessions, what is in uses_ and ended before `seen`:
  // before anybody was looked at, so that what others had until then is known.
  void Settle(SteadyTime seen);
  // Takes sessions that are far ahead of others in_use_ out of ready_.
  void HoldBackLeaders();
  Session* NextInTurn();  // null: none has work
  void Sleep();
  // For doorbells. True: one rang.
  bool Listen(std::chrono::nanoseconds at_most);
  // How long to sleep between two looks at a device that is waited for: a part
  // of what was waited already, which costs little time and no processor.
  std::chrono::nanoseconds Nap() const;
  bool Poll();  // true: some session has work, or something was posted

  const Options options_;
  int epoll_fd_ = -1;
  int wake_fd_ = -1;
  std::thread thread_;
  std::atomic<bool> runs_{
      false};  // there is a thread_ that runs what is posted
  std::atomic<bool> stop_{false};
  std::atomic<bool> has_posted_{false};
  RankedMutex mutex_{LockRank::kWorker};
  struct Posted {
    const Session* about;  // null: not inside anybody's turn
    std::function<void()> run;
  };
  std::vector<Posted> posted_;  // guarded by mutex_
  ActiveSessions sessions_;     // worker thread
  FairShare share_;             // worker thread
  // Whose turn it is; null between turns. Worker thread.
  Session* serving_ = nullptr;
  bool attending_ = false;
  // What follows is the worker thread's.
  std::vector<Session*> ready_;   // with work at the last look
  std::vector<Session*> in_use_;  // those, and others whose devices have work
  struct Use {
    Session* session;
    Device* device;
    SteadyTime from, to;  // of one op
  };
  std::vector<Use> uses_;  // not settled yet
  // Several sessions use asynchronous devices, or did a moment ago: a client
  // that draws breath is still one that others share with.
  bool contended_ = false;
  absl::flat_hash_map<Device*, DeviceTime> times_;  // of asynchronous devices
  Clock::time_point looked_;
  Clock::time_point listened_;
  Clock::time_point busy_until_;  // something was done, or a bell rang
  bool napped_ = false;           // and nothing has happened since
  std::atomic<std::thread::id> thread_id_{};
  std::atomic<uint64_t> turns_{0}, looks_{0};
  // See turn(): odd while one is under way. The worker writes them.
  std::atomic<uint64_t> turn_number_{0}, turn_of_{0};
  std::atomic<pid_t> tid_{0};
  CloseLooks close_looks_;
  WorkerAside aside_{[this] { LookAround(); }};
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_EXEC_WORKER_H_
