// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/transport/departures.h"

#include <errno.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <utility>

#include "spdlog/spdlog.h"

namespace holdfast {

Departures::Departures() : bell_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

void Departures::Ring() {
  const uint64_t one = 1;
  if (write(bell_.get(), &one, sizeof(one)) < 0) {
    spdlog::error("local: cannot wake the control thread: {}", strerror(errno));
  }
}

void Departures::Add(Answer answer) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    answers_.push_back(std::move(answer));
  }
  Ring();
}

std::vector<Departures::Answer> Departures::Take() {
  uint64_t count;
  // Empty when somebody else rang as well: the result does not matter.
  [[maybe_unused]] ssize_t n = read(bell_.get(), &count, sizeof(count));
  std::lock_guard<std::mutex> lock(mutex_);
  return std::exchange(answers_, {});
}

}  // namespace holdfast
