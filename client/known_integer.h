// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Integers that the client knows without asking the daemon again.
//
// Programs read indices one by one: `[data[i : i + 8] for i in indices]` asks
// for two numbers per index, and each would be a round trip. So the first read
// of an element of a small vector of integers brings the vector, and what is
// known plus, minus or times a Python int is known, too. A value counts only
// while nobody may have written the memory since: StorageState::writes.
// Floating point numbers are never kept, since a backward writes gradients
// unseen. Thread-safety: plain data, guarded by the session's lock.
#ifndef HOLDFAST_CLIENT_KNOWN_INTEGER_H_
#define HOLDFAST_CLIENT_KNOWN_INTEGER_H_

#include <cstdint>
#include <vector>

#include "client/tensor.h"

namespace holdfast::client {

// What a tensor's state keeps; its own elements, or where they are.
struct KnownIntegers {
  // Of an element: the vector that it is in, and where.
  Tensor vector;
  int64_t index = 0;
  // Of a vector or a scalar: its elements.
  std::vector<int64_t> values;
  // How many writes its storage had then: more, and nothing above counts.
  uint32_t writes = 0;
};

// What Session::FindInteger finds.
struct KnownInteger {
  bool known = false;
  int64_t value = 0;
  // Not known, but worth to be: read this tensor and tell LearnIntegers, with
  // the count of writes from before the read. Null: neither.
  Tensor to_read;
  uint32_t writes = 0;
};

}  // namespace holdfast::client

#endif  // HOLDFAST_CLIENT_KNOWN_INTEGER_H_
