// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// OpTrail: the ops that a stream was given last, to name those that a failure
// may have come from. Thread-safety: none; its stream's lock guards it.
#ifndef HOLDFAST_KERNELS_CUDA_OP_TRAIL_H_
#define HOLDFAST_KERNELS_CUDA_OP_TRAIL_H_

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"

namespace holdfast::cuda {

class OpTrail {
 public:
  // `name` must live for ever: the op table's.
  void Note(const char* name) { names_[count_++ % kKept] = name; }
  // How many were noted.
  uint64_t count() const { return count_; }

  // "matmul, add": those noted after the first `done`, up to the last few.
  std::string Since(uint64_t done) const {
    const uint64_t kept = count_ > kKept ? count_ - kKept : 0;
    std::string text = done < kept ? "..., " : "";
    for (uint64_t i = done < kept ? kept : done; i < count_; ++i) {
      absl::StrAppend(&text, names_[i % kKept], i + 1 < count_ ? ", " : "");
    }
    return text;
  }

 private:
  static constexpr uint64_t kKept = 16;

  const char* names_[kKept] = {};
  uint64_t count_ = 0;
};

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_OP_TRAIL_H_
