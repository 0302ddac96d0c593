// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// A flag whose value is a number of bytes: "8GiB" as in the configuration
// file, or a plain number. Thread-safety: values.
#ifndef HOLDFAST_SERVER_BYTE_SIZE_FLAG_H_
#define HOLDFAST_SERVER_BYTE_SIZE_FLAG_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace holdfast {

struct ByteSize {
  uint64_t bytes = 0;
};

// Found by ABSL_FLAG through the argument's namespace.
bool AbslParseFlag(absl::string_view text, ByteSize* size, std::string* error);
std::string AbslUnparseFlag(ByteSize size);

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_BYTE_SIZE_FLAG_H_
