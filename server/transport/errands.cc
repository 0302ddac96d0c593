// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/transport/errands.h"

#include <system_error>
#include <thread>
#include <utility>

namespace holdfast {

void Errands::Finish() {
  std::unique_lock<std::mutex> lock(mutex_);
  done_.wait(lock, [this] { return waiting_.empty(); });
}

void Errands::Run(const std::string& user, std::function<void()> errand) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    const auto [own, is_new] = waiting_.try_emplace(user);
    own->second.push_back(errand);
    if (!is_new) return;
  }
  try {
    std::thread([this, user] { Work(user); }).detach();
  } catch (const std::system_error&) {
    Work(user);
  }
}

void Errands::Work(const std::string& user) {
  std::unique_lock<std::mutex> lock(mutex_);
  const auto own = waiting_.find(user);
  while (!own->second.empty()) {
    std::function<void()> errand = std::move(own->second.front());
    own->second.pop_front();
    lock.unlock();
    errand();
    errand = nullptr;  // what it held goes before anybody hears that it is done
    lock.lock();
  }
  waiting_.erase(own);
  // Under the lock: who waits for it may destroy this.
  done_.notify_all();
}

}  // namespace holdfast
