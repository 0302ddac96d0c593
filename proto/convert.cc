// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "proto/convert.h"

#include <utility>

#include "absl/strings/cord.h"
#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "google/protobuf/stubs/common.h"
#include "ops/op_schema.h"
#include "proto/convert_parts.h"

namespace holdfast {
namespace {

constexpr absl::string_view kOriginUrl = "holdfast.v1/origin";

absl::StatusOr<AttrValue> ValueFromProto(const wire::Attr& message) {
  switch (message.value_case()) {
    case wire::Attr::kB:
      return AttrValue(message.b());
    case wire::Attr::kI:
      return AttrValue(static_cast<int64_t>(message.i()));
    case wire::Attr::kF:
      return AttrValue(message.f());
    case wire::Attr::kDtype: {
      absl::StatusOr<DType> dtype = DTypeFromProto(message.dtype());
      if (!dtype.ok()) return dtype.status();
      return AttrValue(*dtype);
    }
    case wire::Attr::kInts: {
      absl::StatusOr<Dims> dims =
          DimsFromProto(message.ints().values(), kMaxListLength);
      if (!dims.ok()) return dims.status();
      return AttrValue(*std::move(dims));
    }
    case wire::Attr::kS:
      return AttrValue(message.s());
    case wire::Attr::kNone:
      return AttrValue(std::monostate());
    case wire::Attr::VALUE_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError("an attribute must have a value");
}

void ValueToProto(const AttrValue& value, wire::Attr* message) {
  struct Visitor {
    wire::Attr* m;
    void operator()(std::monostate) const { m->set_none(true); }
    void operator()(bool b) const { m->set_b(b); }
    void operator()(int64_t i) const { m->set_i(i); }
    void operator()(double d) const { m->set_f(d); }
    void operator()(DType t) const {
      m->set_dtype(static_cast<wire::DType>(t));
    }
    void operator()(const Dims& d) const {
      m->mutable_ints()->mutable_values()->Add(d.begin(), d.end());
    }
    void operator()(const std::string& s) const { m->set_s(s); }
  };
  std::visit(Visitor{message}, value);
}

absl::Status Prefixed(const OpSchema& schema, const absl::Status& status) {
  return absl::Status(status.code(),
                      absl::StrCat("[", schema.name, "] ", status.message()));
}

}  // namespace

void AttrsToProto(const Attrs& attrs, WireAttrs* messages) {
  for (int slot = 0; slot < attrs.schema().num_attrs; ++slot) {
    if (!attrs.IsSet(slot)) continue;
    wire::Attr* message = messages->Add();
    message->set_slot(slot);
    ValueToProto(attrs.Get(slot), message);
  }
}

absl::Status AttrsFromProto(const WireAttrs& messages, Attrs* attrs) {
  if (messages.empty()) return absl::OkStatus();
  const OpSchema& schema = attrs->schema();
  for (const wire::Attr& message : messages) {
    if (message.slot() >= static_cast<uint32_t>(schema.num_attrs)) {
      return absl::InvalidArgumentError(
          absl::StrCat("[", schema.name, "] an attribute slot must be below ",
                       schema.num_attrs, ". Got ", message.slot(), "."));
    }
    const int slot = static_cast<int>(message.slot());
    if (attrs->IsSet(slot)) {
      return absl::InvalidArgumentError(absl::StrCat(
          "[", schema.name, "] an attribute must be given once. Got slot ",
          slot, " twice."));
    }
    absl::StatusOr<AttrValue> value = ValueFromProto(message);
    if (!value.ok()) return Prefixed(schema, value.status());
    if (absl::Status s = CheckAttr(schema, slot, *value); !s.ok()) return s;
    attrs->Set(slot, *std::move(value));
  }
  return absl::OkStatus();
}

void SetErrorOrigin(const ErrorOrigin& origin, absl::Status* status) {
  if (status->ok()) return;
  status->SetPayload(
      kOriginUrl,
      absl::Cord(absl::StrCat(origin.op_sequence, " ",
                              origin.forward_op_sequence, " ", origin.op)));
}

ErrorOrigin GetErrorOrigin(const absl::Status& status) {
  ErrorOrigin origin;
  if (absl::optional<absl::Cord> payload = status.GetPayload(kOriginUrl)) {
    const std::string text(*payload);
    const std::vector<std::string> parts =
        absl::StrSplit(text, absl::MaxSplits(' ', 2));
    if (parts.size() == 3 && absl::SimpleAtoi(parts[0], &origin.op_sequence) &&
        absl::SimpleAtoi(parts[1], &origin.forward_op_sequence)) {
      origin.op = parts[2];
    }
  }
  return origin;
}

void StatusToProto(const absl::Status& status, wire::Status* message) {
  message->Clear();
  if (status.ok()) return;
  message->set_code(status.raw_code());
  const absl::string_view text = status.message();
  // A string field must be UTF-8, and this text may quote a client.
  const bool utf8 = google::protobuf::internal::IsStructurallyValidUTF8(
      text.data(), static_cast<int>(text.size()));
  message->set_message(utf8 ? std::string(text) : absl::CHexEscape(text));
  ErrorOrigin origin = GetErrorOrigin(status);
  message->set_op(std::move(origin.op));
  message->set_op_sequence(origin.op_sequence);
  message->set_forward_op_sequence(origin.forward_op_sequence);
}

absl::Status StatusFromProto(const wire::Status& message) {
  if (message.code() == 0) return absl::OkStatus();
  const bool known =
      message.code() > 0 &&
      message.code() <= static_cast<int>(absl::StatusCode::kUnauthenticated);
  absl::Status status(known ? static_cast<absl::StatusCode>(message.code())
                            : absl::StatusCode::kUnknown,
                      message.message());
  if (!message.op().empty() || message.op_sequence() != 0) {
    SetErrorOrigin(
        {message.op(), message.op_sequence(), message.forward_op_sequence()},
        &status);
  }
  return status;
}

}  // namespace holdfast
