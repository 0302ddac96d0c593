// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// PinnedRanges: host memory that any fake device copies from and to, whichever
// pinned it. Thread-safety: all methods from any thread.
#ifndef HOLDFAST_SERVER_FAKE_DEVICE_PINNED_RANGES_H_
#define HOLDFAST_SERVER_FAKE_DEVICE_PINNED_RANGES_H_

#include <cstddef>
#include <iterator>
#include <map>
#include <mutex>

#include "absl/status/status.h"

namespace holdfast {

class PinnedRanges {
 public:
  // The process's.
  static PinnedRanges& Get() {
    static auto* const ranges = new PinnedRanges;
    return *ranges;
  }

  void Add(const void* base, size_t bytes) {
    std::lock_guard<std::mutex> lock(mutex_);
    ranges_[static_cast<const char*>(base)] = bytes;
  }
  void Remove(const void* base) {
    std::lock_guard<std::mutex> lock(mutex_);
    ranges_.erase(static_cast<const char*>(base));
  }
  absl::Status Check(const void* host, size_t bytes) {
    const char* begin = static_cast<const char*>(host);
    std::lock_guard<std::mutex> lock(mutex_);
    const auto it = ranges_.upper_bound(begin);
    if (it != ranges_.begin()) {
      const auto& [base, length] = *std::prev(it);
      if (begin + bytes <= base + length) return absl::OkStatus();
    }
    return absl::InternalError("[fake] a copy must use pinned host memory");
  }

 private:
  std::mutex mutex_;
  std::map<const char*, size_t> ranges_;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_FAKE_DEVICE_PINNED_RANGES_H_
