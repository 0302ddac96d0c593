// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/state/write_steps.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "spdlog/spdlog.h"

namespace holdfast {

void WriteStep(const char* what) {
  static const char* const held = std::getenv("HOLDFAST_TEST_HOLD_WRITE_STEPS");
  while (held != nullptr && access(held, F_OK) == 0) {
    absl::SleepFor(absl::Milliseconds(5));
  }
  static const long last = [] {  // 0: none
    const char* text = std::getenv("HOLDFAST_TEST_DIE_AT_WRITE_STEP");
    return text == nullptr ? 0 : std::strtol(text, nullptr, 10);
  }();
  static std::atomic<long> steps{0};
  if (last == 0 || ++steps != last) return;
  spdlog::critical("test: dies at write step {}: {}", last, what);
  raise(SIGKILL);
}

}  // namespace holdfast
