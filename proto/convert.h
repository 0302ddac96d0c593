// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Between the types of ops/ and their messages. Everything read from a message
// is checked here: field by field, for any bytes that a peer can send.
// Thread-safety: pure functions. Results own their data.
#ifndef HOLDFAST_PROTO_CONVERT_H_
#define HOLDFAST_PROTO_CONVERT_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "ops/attrs.h"
#include "ops/tensor_spec.h"
#include "proto/holdfast.pb.h"

namespace holdfast {

namespace wire = holdfast::v1;

using WireAttrs = google::protobuf::RepeatedPtrField<wire::Attr>;

// Row-major strides are left out.
void SpecToProto(const TensorSpec& spec, wire::TensorSpec* message);
// Checks dtype (known and supported), shape, strides and offset, and that no
// element lies beyond the largest storage. Whether it fits the storage it is
// meant for is the caller's to check (CheckFits).
absl::StatusOr<TensorSpec> SpecFromProto(const wire::TensorSpec& message);

// Appends the slots that are set.
void AttrsToProto(const Attrs& attrs, WireAttrs* messages);
// Sets slots of `attrs`, each type-checked against the schema. On an error
// `attrs` is partly filled. Without messages it costs nothing.
absl::Status AttrsFromProto(const WireAttrs& messages, Attrs* attrs);

// Where an error came from; travels inside an absl::Status as a payload.
struct ErrorOrigin {
  std::string op;                    // "" if none
  uint64_t op_sequence = 0;          // 0 if none
  uint64_t forward_op_sequence = 0;  // of a backward's error; 0 if none
};
// No effect on an OK status.
void SetErrorOrigin(const ErrorOrigin& origin, absl::Status* status);
// Empty when the status carries none.
ErrorOrigin GetErrorOrigin(const absl::Status& status);

// Code, message and origin. A message text that is not UTF-8 is escaped.
void StatusToProto(const absl::Status& status, wire::Status* message);
// Codes that this build does not know read as kUnknown.
absl::Status StatusFromProto(const wire::Status& message);

}  // namespace holdfast

#endif  // HOLDFAST_PROTO_CONVERT_H_
