// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/exec/worker.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <utility>

#include "server/session/session.h"

namespace holdfast {
namespace {

double Seconds(std::chrono::steady_clock::duration d) {
  return std::chrono::duration<double>(d).count();
}

void Pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

Worker::Worker(Options options)
    : options_(options), share_(absl::ToDoubleSeconds(options.credit)) {
  epoll_fd_ = epoll_create1(EPOLL_CLOEXEC);
  wake_fd_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  Watch(wake_fd_);
}

Worker::~Worker() {
  Stop();
  close(wake_fd_);
  close(epoll_fd_);
}

void Worker::Start(std::function<void()> tick) {
  thread_ = std::thread([this, tick = std::move(tick)] { Loop(tick); });
}

void Worker::Stop() {
  if (!thread_.joinable()) return;
  stop_.store(true);
  Wake();
  thread_.join();
  RunPosted();  // whoever waits in Run must not wait for ever
  sessions_.clear();
}

void Worker::Add(std::shared_ptr<Session> session) {
  share_.Enter(session->user_share(), session->share());
  sessions_.push_back(std::move(session));
}

void Worker::Remove(const Session* session) {
  sessions_.erase(std::remove_if(sessions_.begin(), sessions_.end(),
                                 [&](const std::shared_ptr<Session>& s) {
                                   return s.get() == session;
                                 }),
                  sessions_.end());
  ready_.erase(std::remove(ready_.begin(), ready_.end(), session),
               ready_.end());
}

void Worker::Post(std::function<void()> fn) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    posted_.push_back(std::move(fn));
  }
  has_posted_.store(true, std::memory_order_release);
  Wake();
}

void Worker::Run(const std::function<void()>& fn) {
  if (OnWorkerThread() || !thread_.joinable()) return fn();
  std::mutex mutex;
  std::condition_variable done;
  bool finished = false;
  Post([&] {
    fn();
    std::lock_guard<std::mutex> lock(mutex);
    finished = true;
    done.notify_one();
  });
  std::unique_lock<std::mutex> lock(mutex);
  done.wait(lock, [&] { return finished; });
}

void Worker::Wake() {
  const uint64_t one = 1;
  // A full counter is as good as a ring: the result does not matter.
  [[maybe_unused]] ssize_t n = write(wake_fd_, &one, sizeof one);
}

void Worker::Watch(int eventfd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = eventfd;
  epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, eventfd, &event);
}

void Worker::Unwatch(int eventfd) {
  epoll_ctl(epoll_fd_, EPOLL_CTL_DEL, eventfd, nullptr);
}

bool Worker::OnWorkerThread() const {
  return std::this_thread::get_id() == thread_id_.load();
}

void Worker::RunPosted() {
  std::vector<std::function<void()>> posted;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    posted.swap(posted_);
    has_posted_.store(false, std::memory_order_relaxed);
  }
  for (const auto& fn : posted) fn();
}

bool Worker::Poll() {
  if (has_posted_.load(std::memory_order_acquire)) return true;
  for (const auto& session : sessions_) {
    if (session->HasWork()) return true;
  }
  return false;
}

void Worker::LookForWork() {
  ready_.clear();
  for (const auto& session : sessions_) {
    if (!session->HasWork()) continue;
    share_.Contend(session->user_share(), session->share());
    ready_.push_back(session.get());
  }
  looked_ = Clock::now();
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
  const auto look_every =
      std::chrono::nanoseconds(absl::ToInt64Nanoseconds(options_.look_every));
  if (ready_.empty() || Clock::now() - looked_ >= look_every) LookForWork();
  Session* next = NextInTurn();
  if (next == nullptr) return false;
  // Held while it runs: the slice may end the session.
  const std::shared_ptr<Session> hold = next->shared_from_this();
  share_.Begin(next->user_share(), *next->share());
  const Clock::time_point start = Clock::now();
  next->RunSome({options_.slice_commands, options_.slice_time, &has_posted_});
  const double used = Seconds(Clock::now() - start);
  FairShare::Charge(next->user_share(), next->share(), used);
  next->AddDeviceSeconds(used);
  return true;
}

// Sleeps until a doorbell rings, Wake is called or it is time for a tick.
void Worker::Sleep() {
  bool ready = has_posted_.load(std::memory_order_acquire);
  int timeout_ms = static_cast<int>(absl::ToInt64Milliseconds(options_.tick));
  for (const auto& session : sessions_) {
    if (!session->Arm() || session->AwaitsDevice()) ready = true;
    if (session->HasUnsentEvents()) timeout_ms = 1;
  }
  if (ready || stop_.load()) timeout_ms = 0;
  epoll_event events[16];
  const int n = epoll_wait(epoll_fd_, events, 16, timeout_ms);
  for (int i = 0; i < n; ++i) {
    uint64_t count;
    [[maybe_unused]] ssize_t r = read(events[i].data.fd, &count, sizeof count);
  }
  for (const auto& session : sessions_) session->Disarm();
}

void Worker::Loop(const std::function<void()>& tick) {
  thread_id_.store(std::this_thread::get_id());
  const auto spin =
      std::chrono::nanoseconds(absl::ToInt64Nanoseconds(options_.spin));
  const auto tick_every =
      std::chrono::nanoseconds(absl::ToInt64Nanoseconds(options_.tick));
  Clock::time_point next_tick = Clock::now() + tick_every;
  while (!stop_.load(std::memory_order_relaxed)) {
    if (has_posted_.load(std::memory_order_acquire)) RunPosted();
    if (ServeOne()) {
      if (Clock::now() < next_tick) continue;
    } else {
      const Clock::time_point end = Clock::now() + spin;
      bool found = false;
      while (!found && Clock::now() < end) {
        for (int i = 0; i < 16 && !found; ++i) {
          found = Poll();
          if (!found) Pause();
        }
        // The client may have been put on this very processor when it woke
        // us, and would wait there for the end of our spinning.
        if (!found) std::this_thread::yield();
      }
      if (!found) Sleep();
      // Events that found no room are offered again.
      for (const auto& session : sessions_) {
        if (session->HasUnsentEvents()) session->RunSome({});
      }
    }
    if (Clock::now() >= next_tick) {
      tick();
      next_tick = Clock::now() + tick_every;
    }
  }
}

}  // namespace holdfast
