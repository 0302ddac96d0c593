// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// ThreadChoice: whether a kernel runs on the whole team of threads or on the
// caller alone. Beside busy processes a team waits at the end of each loop for
// that thread of it that got no processor, for milliseconds: a short kernel is
// then done many times faster by one thread. Which way is faster is measured,
// call by call of one op on one shape, and both ways are tried again from time
// to time, so that the choice follows what else the machine does.
// Thread-safety: none; one thread uses one.
#ifndef HOLDFAST_SERVER_EXEC_THREAD_CHOICE_H_
#define HOLDFAST_SERVER_EXEC_THREAD_CHOICE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "kernels/kernel.h"

namespace holdfast {

// Tells calls of one op on operands of one layout from others; 0: no matter how
// many threads it is given, the call is to have the team's. It is too small for
// more than one, or its sums are split by their number, which must not change
// from call to call: equal calls have equal results, bit by bit.
uint64_t ThreadChoiceKey(const Attrs& attrs,
                         absl::Span<const TensorView> inputs,
                         absl::Span<const TensorView> outputs);

class ThreadChoice {
 public:
  enum Way { kTeam = 0, kAlone = 1 };

  ThreadChoice();

  // How the call runs that begins at `now`, by any clock in nanoseconds; `key`
  // tells the op and its shapes.
  Way Choose(uint64_t key, int64_t now);
  // The call of the last Choose took so long.
  void Took(int64_t nanoseconds);

 private:
  // What is known of calls with one key; keys that meet in a place displace
  // each other.
  struct Known {
    uint64_t key = 0;        // 0: none
    int64_t try_at = 0;      // the other way; 0: as soon as this one is known
    float mean[2] = {0, 0};  // nanoseconds
    uint8_t calls[2] = {0, 0};  // up to kEnough
    Way way = kTeam;
  };

  std::vector<Known> known_;
  Known* last_ = nullptr;
  Way last_way_ = kTeam;
  int64_t last_start_ = 0;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_EXEC_THREAD_CHOICE_H_
