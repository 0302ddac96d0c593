// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Abseil's header of that name. It promises that operator[] and its like throw
// nothing, which would end the process where a check does (base/macros.h): here
// they promise nothing. What the header includes comes before, with its own
// promises.
#ifndef HOLDFAST_OPS_CHECKED_ABSL_TYPES_SPAN_H_
#define HOLDFAST_OPS_CHECKED_ABSL_TYPES_SPAN_H_

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <initializer_list>
#include <iterator>
#include <string>
#include <type_traits>
#include <utility>

#include "absl/base/internal/throw_delegate.h"
#include "absl/base/macros.h"
#include "absl/base/optimization.h"
#include "absl/base/port.h"
#include "absl/meta/type_traits.h"
#include "absl/types/internal/span.h"

#define noexcept
#include_next "absl/types/span.h"
#undef noexcept

#endif  // HOLDFAST_OPS_CHECKED_ABSL_TYPES_SPAN_H_
