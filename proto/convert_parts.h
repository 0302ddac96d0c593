// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// What conversions of specs and of attributes share. Thread-safety: any thread.
#ifndef HOLDFAST_PROTO_CONVERT_PARTS_H_
#define HOLDFAST_PROTO_CONVERT_PARTS_H_

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "ops/dtype.h"
#include "ops/tensor_spec.h"

namespace holdfast {

inline absl::StatusOr<DType> DTypeFromProto(int value) {
  if (IsValidDType(value)) return static_cast<DType>(value);
  return absl::InvalidArgumentError(
      absl::StrCat("dtype must be one of the protocol's. Got ", value, "."));
}

// `list` is bounded by its message, the result by `limit`.
template <typename List>
absl::StatusOr<Dims> DimsFromProto(const List& list, int limit) {
  if (list.size() > limit) {
    return absl::InvalidArgumentError(absl::StrCat("a list must have at most ",
                                                   limit, " entries. Got ",
                                                   list.size(), "."));
  }
  return Dims(list.begin(), list.end());
}

}  // namespace holdfast

#endif  // HOLDFAST_PROTO_CONVERT_PARTS_H_
