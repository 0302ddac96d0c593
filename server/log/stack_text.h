// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// A call stack as one line of the log.
// Thread-safety: any thread. Reads the program's file, for its symbols.
#ifndef HOLDFAST_SERVER_LOG_STACK_TEXT_H_
#define HOLDFAST_SERVER_LOG_STACK_TEXT_H_

#include <string>

#include "absl/types/span.h"

namespace holdfast {

// "holdfast::PadTo() < holdfast::...", the innermost first. A frame without a
// symbol is "libm.so.6+0x1234", which addr2line reads.
std::string StackText(absl::Span<void* const> frames);

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_LOG_STACK_TEXT_H_
