// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Text as a JSON string. Thread-safety: a pure function.
#ifndef HOLDFAST_SERVER_LOG_JSON_STRING_H_
#define HOLDFAST_SERVER_LOG_JSON_STRING_H_

#include <string>

#include "absl/strings/string_view.h"

namespace holdfast {

// With its quotes. Text that is not UTF-8, which JSON cannot carry, is escaped
// as in C first.
std::string JsonString(absl::string_view text);

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_LOG_JSON_STRING_H_
