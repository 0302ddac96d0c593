// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/transport/errands.h"

#include <system_error>
#include <thread>
#include <utility>

namespace holdfast {

void Errands::Finish() {
  std::unique_lock<std::mutex> lock(mutex_);
  done_.wait(lock, [this] { return users_.empty(); });
}

void Errands::Run(const std::string& user, std::function<void()> errand) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    Own& own = users_[user];
    own.waiting.push_back(std::move(errand));
    if (own.threads >= threads_) return;
    ++own.threads;
  }
  try {
    std::thread([this, user] { Work(user); }).detach();
  } catch (const std::system_error&) {
    Work(user);
  }
}

void Errands::Work(const std::string& user) {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto own = users_.find(user);
  while (!own->second.waiting.empty()) {
    std::function<void()> errand = std::move(own->second.waiting.front());
    own->second.waiting.pop_front();
    lock.unlock();
    errand();
    errand = nullptr;  // what it held goes before anybody hears that it is done
    lock.lock();
  }
  if (--own->second.threads > 0) return;
  users_.erase(own);
  // Under the lock: who waits for it may destroy this.
  done_.notify_all();
}

}  // namespace holdfast
