// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Abseil's header of that name, whose checks of bounds throw a CheckFailure
// (ops/check.h) where Abseil would end the process.
#ifndef HOLDFAST_OPS_CHECKED_ABSL_BASE_MACROS_H_
#define HOLDFAST_OPS_CHECKED_ABSL_BASE_MACROS_H_

#include_next "absl/base/macros.h"

namespace holdfast {
[[noreturn]] void FailCheck(const char* file, int line, const char* condition);
}

#undef ABSL_HARDENING_ASSERT
#define ABSL_HARDENING_ASSERT(expr) \
  (ABSL_PREDICT_TRUE((expr))        \
       ? static_cast<void>(0)       \
       : ::holdfast::FailCheck(__FILE__, __LINE__, #expr))

#endif  // HOLDFAST_OPS_CHECKED_ABSL_BASE_MACROS_H_
