// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The states of connectionist temporal classification (Graves et al. 2006): a
// target with blanks around every label, where state s has label s/2 if s is
// odd. Thread-safety: pure functions.
#ifndef HOLDFAST_KERNELS_CTC_STATES_H_
#define HOLDFAST_KERNELS_CTC_STATES_H_

#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "ops/host_device.h"
#include "ops/op_schema.h"

namespace holdfast {

// The checked targets of a batch. Arrays are contiguous.
struct CtcProblem {
  int64_t steps = 0, batch = 0, classes = 0, longest = 0, blank = 0;
  const int64_t* labels = nullptr;  // [batch, longest]
  const int64_t* input_lengths = nullptr;
  const int64_t* target_lengths = nullptr;

  HOLDFAST_HD int64_t states() const { return 2 * longest + 1; }
  // Of sample n.
  HOLDFAST_HD int64_t used(int64_t n) const {
    return 2 * target_lengths[n] + 1;
  }
  HOLDFAST_HD int64_t Label(int64_t n, int64_t state) const {
    return state % 2 == 0 ? blank : labels[n * longest + state / 2];
  }
  // A path may come from two states before: over a blank between two labels
  // that differ.
  HOLDFAST_HD bool Skips(int64_t n, int64_t state) const {
    return state % 2 == 1 && state >= 3 &&
           Label(n, state) != Label(n, state - 2);
  }
};

// The logarithm of a probability of 0.
template <typename T>
HOLDFAST_HD T CtcImpossible() {
  return -std::numeric_limits<T>::infinity();
}

// log(exp(a) + exp(b) + exp(c))
template <typename T>
HOLDFAST_HD T CtcLogAdd(T a, T b, T c = CtcImpossible<T>()) {
  const T of_two = a < b ? b : a;
  const T max = of_two < c ? c : of_two;
  if (max == CtcImpossible<T>()) return max;
  return max +
         std::log(std::exp(a - max) + std::exp(b - max) + std::exp(c - max));
}

// log_probs of one sample: element (t, class).
template <typename T>
struct CtcLogProbs {
  const T* data;
  int64_t step, label;

  HOLDFAST_HD T operator()(int64_t t, int64_t c) const {
    return data[t * step + c * label];
  }
};

inline absl::Status CtcOutOfRange(const Attrs& attrs, const char* what,
                                  int64_t value, int64_t limit,
                                  int64_t sample) {
  return absl::OutOfRangeError(
      absl::StrCat("[", attrs.schema().name, "] Expected ", what, " in [0, ",
                   limit, "]. Got ", value, " for sample ", sample, "."));
}

}  // namespace holdfast

#endif  // HOLDFAST_KERNELS_CTC_STATES_H_
