// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/exec/worker.h"

#include <errno.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <limits>
#include <utility>

#include "absl/base/internal/cycleclock.h"
#include "absl/base/optimization.h"
#include "absl/container/flat_hash_map.h"
#include "autograd/tape.h"
#include "ops/check.h"
#include "proto/steady_time.h"
#include "server/memory/heap_meter.h"
#include "server/session/session.h"
#include "server/waits/call_trap.h"
#include "server/waits/no_wait.h"
#include "spdlog/spdlog.h"

namespace holdfast {
namespace {

std::chrono::nanoseconds Nanoseconds(absl::Duration d) {
  return std::chrono::nanoseconds(absl::ToInt64Nanoseconds(d));
}

double Seconds(std::chrono::steady_clock::duration d) {
  return std::chrono::duration<double>(d).count();
}

// epoll_wait, with a finer clock where the kernel has it.
int WaitForEvents(int epoll, epoll_event* events, int most,
                  std::chrono::nanoseconds at_most) {
#ifdef SYS_epoll_pwait2
  static std::atomic<bool> fine{true};
  if (fine.load(std::memory_order_relaxed)) {
    const int64_t ns = at_most.count();
    const timespec timeout = {static_cast<time_t>(ns / 1000000000),
                              static_cast<long>(ns % 1000000000)};  // NOLINT
    const long n = syscall(SYS_epoll_pwait2, epoll, events, most,   // NOLINT
                           &timeout, nullptr, 0);
    // EPERM: a sandbox older than the call (systemd, seccomp of containers).
    if (n >= 0 || (errno != ENOSYS && errno != EPERM)) {
      return static_cast<int>(n);
    }
    fine.store(false, std::memory_order_relaxed);
  }
#endif
  // Rounded up: a nap of nothing would be a spin.
  return epoll_wait(epoll, events, most,
                    static_cast<int>((at_most.count() + 999999) / 1000000));
}

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

// What libraries do once, at their first use, and wait for. The first use is
// here, before the worker serves anybody.
void MakeFirstUses() {
  tzset();  // a file, for the first line of the log
  // Files, or a sleep that measures: Abseil's mutexes, where two threads meet.
  static_cast<void>(absl::base_internal::CycleClock::Frequency());
}

}  // namespace

Worker::Worker(Options options)
    : options_(options),
      sessions_(Nanoseconds(options.idle_after)),
      share_(absl::ToDoubleSeconds(options.credit)) {
  epoll_fd_ = epoll_create1(EPOLL_CLOEXEC);
  wake_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  Watch(wake_fd_);
}

Worker::~Worker() {
  Stop();
  close(wake_fd_);
  close(epoll_fd_);
}

void Worker::Start() {
  MakeFirstUses();
  if (options_.trap_calls) PrepareCallTrap();
  runs_.store(true);
  thread_ = std::thread([this] { Loop(); });
}

void Worker::Stop() {
  if (!thread_.joinable()) return;
  stop_.store(true);
  Wake();
  thread_.join();
  runs_.store(false);
  RunPosted();  // whoever waits in Run must not wait for ever
  aside_.Finish();
  RunPosted();  // what that has posted
  sessions_.Clear();
  ready_.clear();
  in_use_.clear();
  uses_.clear();
}

void Worker::Add(std::shared_ptr<Session> session) {
  share_.Enter(session->user_share(), session->share());
  sessions_.Add(std::move(session));
}

void Worker::Remove(const Session* session) {
  sessions_.Remove(session);
  ready_.erase(std::remove(ready_.begin(), ready_.end(), session),
               ready_.end());
  in_use_.erase(std::remove(in_use_.begin(), in_use_.end(), session),
                in_use_.end());
  const auto is_its = [&](const Use& use) { return use.session == session; };
  uses_.erase(std::remove_if(uses_.begin(), uses_.end(), is_its), uses_.end());
}

void Worker::Post(std::function<void()> fn) { Enqueue(nullptr, std::move(fn)); }

void Worker::PostAbout(const Session* about, std::function<void()> fn) {
  if (!runs_.load()) return fn();
  Enqueue(about, std::move(fn));
}

void Worker::PostBeside(std::function<void(const Session*)> fn) {
  // No session: it is nobody's turn that holds this back.
  static const char nobody = 0;
  PostAbout(reinterpret_cast<const Session*>(&nobody),
            [this, fn = std::move(fn)] { fn(serving_); });
}

void Worker::Enqueue(const Session* about, std::function<void()> fn) {
  {
    RankedLock lock(mutex_);
    posted_.push_back({about, std::move(fn)});
    if (about != nullptr) waits_.store(true, std::memory_order_relaxed);
  }
  has_posted_.store(true, std::memory_order_release);
  Wake();
}

void Worker::Run(const std::function<void()>& fn) {
  if (OnWorkerThread() || !runs_.load()) return fn();
  Await(nullptr, fn);
}

void Worker::RunAbout(const Session* about, const std::function<void()>& fn) {
  if (!OnWorkerThread() && runs_.load()) return Await(about, fn);
  if (OnWorkerThread() && serving_ == about) return Enqueue(about, fn);
  fn();
}

void Worker::Await(const Session* about, const std::function<void()>& fn) {
  RankedMutex mutex(LockRank::kAside);
  RankedCondition done;
  bool finished = false;
  Enqueue(about, [&] {
    fn();
    RankedLock lock(mutex);
    finished = true;
    done.notify_one();
  });
  RankedLock lock(mutex);
  done.wait(lock, [&] { return finished; });
}

void Worker::Wake() {
  // Nobody reads it (Watch): the counter lasts for 2^64 wakes.
  const uint64_t one = 1;
  [[maybe_unused]] ssize_t n = write(wake_fd_, &one, sizeof one);
}

void Worker::Watch(int eventfd) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLET;
  event.data.fd = eventfd;
  epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, eventfd, &event);
}

void Worker::Unwatch(int eventfd) {
  epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, eventfd, nullptr);
}

bool Worker::OnWorkerThread() const {
  return std::this_thread::get_id() == thread_id_.load();
}

Worker::Turn Worker::turn() const {
  Turn turn;
  do {
    turn.number = turn_number_.load(std::memory_order_acquire);
    turn.session = turn_of_.load(std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_acquire);
  } while (turn_number_.load(std::memory_order_relaxed) != turn.number);
  return turn;
}

void Worker::RunTurn(Session* session, const Session::Slice& slice) {
  const uint64_t number = turn_number_.load(std::memory_order_relaxed);
  turn_of_.store(session->options().id, std::memory_order_relaxed);
  turn_number_.store(number + 1, std::memory_order_release);
  const absl::Duration every = session->close_looks();
  if (ABSL_PREDICT_FALSE(every > absl::ZeroDuration())) {
    close_looks_.Ask(every);
  }
  serving_ = session;
  Session::Slice mine = slice;
  mine.attendant = this;
  session->RunSome(mine);
  serving_ = nullptr;
  turn_of_.store(0, std::memory_order_relaxed);
  turn_number_.store(number + 2, std::memory_order_release);
}

void Worker::RunPosted() {
  std::vector<Posted> posted;
  {
    RankedLock lock(mutex_);
    posted.swap(posted_);
    has_posted_.store(false, std::memory_order_relaxed);
    waits_.store(false, std::memory_order_relaxed);
  }
  for (const Posted& one : posted) one.run();
  if (!posted.empty()) sessions_.LookAtIdle(/*all=*/true);
}

// Inside a kernel of serving_, whose executor stands where it stands: whatever
// is done here leaves that session alone, and what counts for it as well.
void Worker::Attend() {
  // A thread of the kernel's; or what is done here has to wait itself.
  if (!OnWorkerThread() || attending_) return;
  attending_ = true;
  looks_.store(looks_.load(std::memory_order_relaxed) + 1,
               std::memory_order_relaxed);
  const HeapMeter::Elsewhere elsewhere;
  const int64_t nodes = NodesOfThread();
  std::vector<Posted> posted;
  {
    RankedLock lock(mutex_);
    waits_.store(false, std::memory_order_relaxed);
    const auto first = std::stable_partition(
        posted_.begin(), posted_.end(), [this](const Posted& one) {
          return one.about == nullptr || one.about == serving_;
        });
    std::move(first, posted_.end(), std::back_inserter(posted));
    posted_.erase(first, posted_.end());
    has_posted_.store(!posted_.empty(), std::memory_order_relaxed);
  }
  for (const Posted& one : posted) {
    try {
      one.run();
    } catch (...) {
      // Nothing may leave the kernel that we are in.
      const absl::Status status = CaughtStatus("worker");
      spdlog::error("a check failed: {}", std::string(status.message()));
    }
  }
  posted.clear();
  sessions_.LookAtIdle(/*all=*/true);
  SetNodesOfThread(nodes);
  attending_ = false;
}

void Worker::LookAround() {
  if (OnWorkerThread() && serving_ != nullptr) serving_->LookAround();
}

bool Worker::Poll() {
  return has_posted_.load(std::memory_order_acquire) || sessions_.AnyWork();
}

void Worker::LookForWork() {
  ready_.clear();
  in_use_.clear();
  looked_ = Clock::now();
  const SteadyTime seen = SteadyNow();
  int asynchronous = 0;
  sessions_.ForEachActive(looked_, [&](Session* session) {
    TakeUses(session);
    const bool ready = session->Runnable(lead());
    const bool in_use = ready || session->work_under_way();
    if (ready) ready_.push_back(session);
    if (in_use) in_use_.push_back(session);
    if (session->asynchronous()) ++asynchronous;
    return in_use;
  });
  contended_ = asynchronous > 1;
  Settle(seen);
  for (Session* session : in_use_) {
    share_.Contend(session->user_share(), session->share());
  }
  if (contended_) HoldBackLeaders();
}

void Worker::TakeUses(Session* session) {
  for (const DeviceUse& use : session->TakeDeviceUses()) {
    // One op for all where nobody else's can lie between them.
    const uint64_t ops = contended_ ? use.ops : 1;
    const absl::Duration each = (use.to - use.from) / ops;
    SteadyTime from = use.from;
    for (uint64_t i = 0; i < ops; ++i, from += each) {
      uses_.push_back({session, use.device, from, from + each});
    }
  }
}

void Worker::Settle(SteadyTime seen) {
  if (uses_.empty()) return;
  std::sort(uses_.begin(), uses_.end(),
            [](const Use& a, const Use& b) { return a.to < b.to; });
  auto next = uses_.begin();
  for (; next != uses_.end() && next->to <= seen; ++next) {
    const Use& use = *next;
    const double seconds = times_[use.device].PartOf(use.from, use.to);
    FairShare::Settle(use.session->user_share(), use.session->share(), seconds);
    use.session->AddDeviceSeconds(seconds);
  }
  uses_.erase(uses_.begin(), next);
}

void Worker::HoldBackLeaders() {
  // What is under way counts as far as it has come: who waits for somebody's
  // long kernel to end waits a moment, not until then.
  const SteadyTime now = SteadyNow();
  absl::flat_hash_map<const UserShare*, double> running;  // seconds
  const auto running_for = [now](Session* session) {
    return std::max(0.0, absl::ToDoubleSeconds(now - session->work_since()));
  };
  for (Session* session : in_use_) {
    running[session->user_share()] += running_for(session);
  }
  const auto time_of_user = [&](Session* session) {
    const UserShare* user = session->user_share();
    return user->account.virtual_time() +
           running[user] / user->account.weight();
  };
  const auto time_of = [&](Session* session) {
    const ShareAccount& share = *session->share();
    return share.virtual_time() + running_for(session) / share.weight();
  };
  double least = std::numeric_limits<double>::infinity();  // of users
  absl::flat_hash_map<const UserShare*, double> least_of;  // of their sessions
  for (Session* session : in_use_) {
    least = std::min(least, time_of_user(session));
    const double time = time_of(session);
    double& of_user =
        least_of.try_emplace(session->user_share(), time).first->second;
    of_user = std::min(of_user, time);
  }
  const auto leads = [&](Session* session) {
    return time_of_user(session) - least > options_.most_ahead ||
           time_of(session) - least_of[session->user_share()] >
               options_.most_ahead;
  };
  ready_.erase(std::remove_if(ready_.begin(), ready_.end(), leads),
               ready_.end());
}

Session* Worker::NextInTurn() {
  auto next = ready_.end();
  for (auto it = ready_.begin(); it != ready_.end(); ++it) {
    if (next == ready_.end() ||
        FairShare::Precedes(*(*it)->user_share(), *(*it)->share(),
                            *(*next)->user_share(), *(*next)->share())) {
      next = it;
    }
  }
  if (next == ready_.end()) return nullptr;
  Session* session = *next;
  *next = ready_.back();
  ready_.pop_back();
  return session;
}

// One slice of the session whose turn it is.
bool Worker::ServeOne() {
  if (ready_.empty() ||
      Clock::now() - looked_ >= Nanoseconds(options_.look_every)) {
    LookForWork();
  }
  Session* next = NextInTurn();
  if (next == nullptr) return false;
  // Held while it runs: the slice may end the session.
  const std::shared_ptr<Session> hold = next->shared_from_this();
  share_.Begin(next->user_share(), *next->share());
  const Clock::time_point start = Clock::now();
  RunTurn(next,
          {options_.slice_commands, options_.slice_time, lead(), &has_posted_});
  const double used = Seconds(Clock::now() - start);
  FairShare::Charge(next->user_share(), next->share(), used);
  if (!next->asynchronous()) {
    next->AddDeviceSeconds(used);
  } else if (contended_) {
    next->MarkWork();
  }
  return true;
}

bool Worker::Listen(std::chrono::nanoseconds at_most) {
  epoll_event events[16];
  const int n = WaitForEvents(epoll_fd_, events, 16, at_most);
  listened_ = Clock::now();
  for (int i = 0; i < n; ++i) {
    const int fd = events[i].data.fd;
    if (fd == wake_fd_) {
      sessions_.LookAtIdle(/*all=*/false);
    } else {
      sessions_.Rang(fd);
    }
  }
  return n > 0;
}

std::chrono::nanoseconds Worker::Nap() const {
  constexpr std::chrono::microseconds kSpin{200}, kShortest{20}, kLongest{1000};
  const auto waited = Clock::now() - busy_until_;
  if (waited < kSpin) return std::chrono::nanoseconds::zero();
  return std::clamp<std::chrono::nanoseconds>(waited / 8, kShortest, kLongest);
}

// Sleeps until a doorbell rings, Wake is called or it is time for a tick, or to
// look whether a device is done.
void Worker::Sleep() {
  const ActiveSessions::Rest rest = sessions_.RetireAll();
  std::chrono::nanoseconds at_most = Nanoseconds(options_.tick);
  if (rest == ActiveSessions::Rest::kWork ||
      has_posted_.load(std::memory_order_acquire) || stop_.load()) {
    at_most = std::chrono::nanoseconds::zero();
  } else if (rest == ActiveSessions::Rest::kAwaitDevice) {
    at_most = std::min(at_most, Nap());
  }
  const bool rang = Listen(at_most);
  if (rang) busy_until_ = Clock::now();
  napped_ = !rang && rest == ActiveSessions::Rest::kAwaitDevice &&
            at_most > std::chrono::nanoseconds::zero();
}

void Worker::Trap() {
  const absl::Status trapped = TrapCalls();
  if (!trapped.ok()) {
    spdlog::warn("system calls of the worker are not checked: {}",
                 std::string(trapped.message()));
  }
}

void Worker::Loop() {
  thread_id_.store(std::this_thread::get_id());
  const auto tick_every = Nanoseconds(options_.tick);
  Clock::time_point next_tick = Clock::now() + tick_every;
  tid_.store(static_cast<pid_t>(syscall(SYS_gettid)));
  const NoWait no_wait(&aside_);
  if (options_.trap_calls) Trap();
  while (!stop_.load(std::memory_order_relaxed)) {
    turns_.store(turns_.load(std::memory_order_relaxed) + 1,
                 std::memory_order_relaxed);
    if (has_posted_.load(std::memory_order_acquire)) RunPosted();
    if (ServeOne()) {
      const Clock::time_point now = Clock::now();
      busy_until_ = now;
      napped_ = false;
      if (sessions_.any_idle() &&
          now - listened_ >= Nanoseconds(options_.listen_every)) {
        Listen(std::chrono::nanoseconds::zero());
      }
      if (now < next_tick) continue;
    } else {
      sessions_.MarkWork();
      const Clock::time_point end = Clock::now() + Nanoseconds(options_.spin);
      bool found = napped_ && Poll();
      while (!found && !napped_ && Clock::now() < end) {
        for (int i = 0; i < 16 && !found; ++i) {
          found = Poll();
          if (!found) Pause();
        }
        // The client may have been put on this very processor when it woke
        // us, and would wait there for the end of our spinning.
        if (!found) std::this_thread::yield();
      }
      if (!found) Sleep();
    }
    if (Clock::now() >= next_tick) {
      const SteadyTime seen = SteadyNow();
      sessions_.ForEachIdle([this](Session* session) { TakeUses(session); });
      Settle(seen);
      next_tick = Clock::now() + tick_every;
    }
  }
  tid_.store(0);
}

}  // namespace holdfast
