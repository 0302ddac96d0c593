// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "ops/attrs.h"

#include <cassert>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "ops/op_schema.h"

namespace holdfast {
namespace {

// Shortest text that reads back as the same double, as Python's repr.
std::string DoubleToString(double value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::string text = absl::StrFormat("%.15g", value);
  if (std::strtod(text.c_str(), nullptr) != value) {
    text = absl::StrFormat("%.17g", value);
  }
  if (text.find_first_of(".e") == std::string::npos) text += ".0";
  return text;
}

// Text from a client ends up in messages and logs: bounded and printable.
std::string QuoteString(absl::string_view text) {
  constexpr size_t kLimit = 64;
  return absl::StrCat("'", absl::CHexEscape(text.substr(0, kLimit)),
                      text.size() > kLimit ? "..." : "", "'");
}

int SlotOf(const OpSchema& schema, absl::string_view name) {
  for (int slot = 0; slot < schema.num_attrs; ++slot) {
    if (schema.params[schema.attr_params[slot]].name == name) return slot;
  }
  return -1;
}

}  // namespace

bool AttrIsNumber(const AttrValue& v) {
  return std::holds_alternative<bool>(v) ||
         std::holds_alternative<int64_t>(v) ||
         std::holds_alternative<double>(v);
}

double AttrAsDouble(const AttrValue& v) {
  if (const double* d = std::get_if<double>(&v)) return *d;
  if (const int64_t* i = std::get_if<int64_t>(&v)) {
    return static_cast<double>(*i);
  }
  const bool* b = std::get_if<bool>(&v);
  assert(b != nullptr);
  return b != nullptr && *b ? 1.0 : 0.0;
}

int64_t AttrAsInt(const AttrValue& v) {
  if (const int64_t* i = std::get_if<int64_t>(&v)) return *i;
  if (const double* d = std::get_if<double>(&v)) {
    // The cast alone would be undefined for what a client can send.
    constexpr double kTwo63 = 9223372036854775808.0;
    if (std::isnan(*d)) return 0;
    if (*d >= kTwo63) return std::numeric_limits<int64_t>::max();
    if (*d < -kTwo63) return std::numeric_limits<int64_t>::min();
    return static_cast<int64_t>(*d);
  }
  const bool* b = std::get_if<bool>(&v);
  assert(b != nullptr);
  return b != nullptr && *b ? 1 : 0;
}

std::string AttrToString(const AttrValue& v) {
  struct Visitor {
    std::string operator()(std::monostate) const { return "None"; }
    std::string operator()(bool b) const { return b ? "True" : "False"; }
    std::string operator()(int64_t i) const { return absl::StrCat(i); }
    std::string operator()(double d) const { return DoubleToString(d); }
    std::string operator()(DType t) const { return std::string(DTypeName(t)); }
    std::string operator()(const Dims& d) const {
      return absl::StrCat("[", absl::StrJoin(d, ","), "]");
    }
    std::string operator()(const std::string& s) const {
      return QuoteString(s);
    }
  };
  return std::visit(Visitor{}, v);
}

const AttrValue& Attrs::Get(int slot) const {
  if (IsSet(slot)) return values_[slot].second;
  return schema_->params[schema_->attr_params[slot]].default_value;
}

void Attrs::Set(int slot, AttrValue value) {
  assert(slot >= 0 && slot < schema_->num_attrs);
  const OpParam& param = schema_->params[schema_->attr_params[slot]];
  if (param.kind == ParamKind::kInts) {
    if (const int64_t* one = std::get_if<int64_t>(&value)) value = Dims{*one};
    if (Dims* list = std::get_if<Dims>(&value);
        list != nullptr && list->size() == 1 && param.repeat > 1) {
      list->resize(param.repeat, (*list)[0]);
    }
  }
  if (slot >= static_cast<int>(values_.size())) values_.resize(slot + 1);
  values_[slot] = {true, std::move(value)};
}

const AttrValue& Attrs::Get(absl::string_view name) const {
  const int slot = SlotOf(*schema_, name);
  assert(slot >= 0);
  if (slot >= 0) return Get(slot);
  static const AttrValue* const none = new AttrValue;
  return *none;
}

void Attrs::Set(absl::string_view name, AttrValue value) {
  const int slot = SlotOf(*schema_, name);
  assert(slot >= 0);
  if (slot >= 0) Set(slot, std::move(value));
}

// A broken precondition is our own mistake, caught by the assertions in tests.
// A release build answers zero or empty rather than end a daemon that serves
// others.
int64_t Attrs::Int(absl::string_view name) const {
  const int64_t* value = std::get_if<int64_t>(&Get(name));
  assert(value != nullptr);
  return value == nullptr ? 0 : *value;
}

double Attrs::Float(absl::string_view name) const {
  return AttrAsDouble(Get(name));
}

bool Attrs::Bool(absl::string_view name) const {
  const bool* value = std::get_if<bool>(&Get(name));
  assert(value != nullptr);
  return value != nullptr && *value;
}

const Dims& Attrs::Ints(absl::string_view name) const {
  const Dims* value = std::get_if<Dims>(&Get(name));
  assert(value != nullptr);
  if (value != nullptr) return *value;
  static const Dims* const empty = new Dims;
  return *empty;
}

const std::string& Attrs::Str(absl::string_view name) const {
  const std::string* value = std::get_if<std::string>(&Get(name));
  assert(value != nullptr);
  if (value != nullptr) return *value;
  static const std::string* const empty = new std::string;
  return *empty;
}

DType Attrs::DTypeOr(absl::string_view name, DType fallback) const {
  const DType* value = std::get_if<DType>(&Get(name));
  return value == nullptr ? fallback : *value;
}

}  // namespace holdfast
