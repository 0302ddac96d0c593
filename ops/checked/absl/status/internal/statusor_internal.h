// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Abseil's header of that name. What its class calls where a StatusOr without a
// value is read has another name here, and throws (ops/check.cc).
#ifndef HOLDFAST_OPS_CHECKED_ABSL_STATUS_INTERNAL_STATUSOR_INTERNAL_H_
#define HOLDFAST_OPS_CHECKED_ABSL_STATUS_INTERNAL_STATUSOR_INTERNAL_H_

#include <type_traits>
#include <utility>

#include "absl/base/attributes.h"
#include "absl/meta/type_traits.h"
#include "absl/status/status.h"
#include "absl/utility/utility.h"

#define Crash FailCheck
#include_next "absl/status/internal/statusor_internal.h"
#undef Crash

#endif  // HOLDFAST_OPS_CHECKED_ABSL_STATUS_INTERNAL_STATUSOR_INTERNAL_H_
