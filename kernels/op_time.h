// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// OpTime: how long the op that this thread runs may take, for kernels that hand
// much of their work to one call of a library: nothing stops that once it has
// begun, so it is cut into pieces that are short against the limit, or refused
// where it would take longer than all of it.
// Thread-safety: each thread has its own; kernels ask where they begin.
#ifndef HOLDFAST_KERNELS_OP_TIME_H_
#define HOLDFAST_KERNELS_OP_TIME_H_

#include <algorithm>
#include <cstdint>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"

namespace holdfast {

class OpTime {
 public:
  // While it is there, ops of this thread may take so many seconds each.
  explicit OpTime(double seconds) : outer_(most_) { most_ = seconds; }
  ~OpTime() { most_ = outer_; }
  OpTime(const OpTime&) = delete;
  OpTime& operator=(const OpTime&) = delete;

  // Infinite where nobody has said.
  static double most() { return most_; }

  // Multiplications of one piece of a product or a convolution, for kernels
  // that look between pieces: a part of the limit, by what slow processors do,
  // and some seconds at most.
  static int64_t Multiplications(int threads) {
    constexpr double kPart = 0.1, kSlow = 1e10;  // a second and thread
    constexpr double kLeast = int64_t{1} << 22, kMost = int64_t{1} << 36;
    return static_cast<int64_t>(
        std::clamp(kPart * most_ * kSlow * threads, kLeast, kMost));
  }

  // FailedPrecondition if one call of a library, which a fast processor needs
  // `seconds` for, takes longer than the op may. `what`: "[linalg_svd] LAPACK
  // on a 30000 x 30000 matrix".
  static absl::Status CheckCall(absl::string_view what, double seconds) {
    if (seconds <= most_) return absl::OkStatus();
    return absl::FailedPreconditionError(absl::StrFormat(
        "%s is one call that nothing can stop, of some %.2g s by estimate; an "
        "op may take at most %g s (the limit op_seconds). Compute it in parts, "
        "or ask an admin for more (holdfast limits)",
        what, seconds, most_));
  }

 private:
  // Hidden: device plugins have a copy of their own.
  [[gnu::visibility("hidden")]] static inline thread_local double most_ =
      std::numeric_limits<double>::infinity();
  const double outer_;
};

}  // namespace holdfast

#endif  // HOLDFAST_KERNELS_OP_TIME_H_
