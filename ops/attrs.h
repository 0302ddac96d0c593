// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Attrs: the non-tensor arguments of one op call, by slot. An op's slots are
// its non-tensor parameters in signature order; an `Operand` parameter owns a
// slot too, filled when the call passes a Python number instead of a tensor.
// An unset slot reads as the schema's default, so a call without attributes
// costs nothing.
// Thread-safety: plain values.
#ifndef HOLDFAST_OPS_ATTRS_H_
#define HOLDFAST_OPS_ATTRS_H_

#include <cstdint>
#include <string>
#include <utility>
#include <variant>

#include "absl/container/inlined_vector.h"
#include "absl/strings/string_view.h"
#include "ops/tensor_spec.h"

namespace holdfast {

struct OpSchema;

// monostate is None. Numbers keep their Python type, which promotion needs.
using AttrValue = std::variant<std::monostate, bool, int64_t, double, DType,
                               Dims, std::string>;

inline bool IsNone(const AttrValue& v) {
  return std::holds_alternative<std::monostate>(v);
}
// REQUIRES: v holds bool, int64_t or double.
double AttrAsDouble(const AttrValue& v);
// Truncates a double; values outside int64's range saturate, NaN is 0.
// REQUIRES: v holds bool, int64_t or double.
int64_t AttrAsInt(const AttrValue& v);
bool AttrIsNumber(const AttrValue& v);
// "2.5", "True", "[1,2]", "None": as Python would print it.
std::string AttrToString(const AttrValue& v);

class Attrs {
 public:
  explicit Attrs(const OpSchema* schema) : schema_(schema) {}

  const OpSchema& schema() const { return *schema_; }

  // By slot. Get never fails: slots beyond those set read as defaults. Set
  // normalises int lists, so that readers meet one form only: one int becomes
  // a list, and an int[2] of one entry repeats it. Passing None to a parameter
  // is a value like any other. REQUIRES: 0 <= slot < schema().num_attrs.
  const AttrValue& Get(int slot) const;
  void Set(int slot, AttrValue value);
  bool IsSet(int slot) const {
    return slot < static_cast<int>(values_.size()) && values_[slot].first;
  }

  // By parameter name; linear in the handful of slots. REQUIRES: the schema
  // has the parameter, and (for the typed forms) its declared type. The schema
  // check at decode time guarantees the type.
  const AttrValue& Get(absl::string_view name) const;
  void Set(absl::string_view name, AttrValue value);
  int64_t Int(absl::string_view name) const;
  double Float(absl::string_view name) const;
  bool Bool(absl::string_view name) const;
  const Dims& Ints(absl::string_view name) const;
  const std::string& Str(absl::string_view name) const;
  bool None(absl::string_view name) const { return IsNone(Get(name)); }
  // The dtype attribute, or `fallback` when it is None.
  DType DTypeOr(absl::string_view name, DType fallback) const;

  // Where an op without tensor inputs makes its result (ops/place_op.h).
  int device() const { return device_; }
  void set_device(int device) { device_ = static_cast<int8_t>(device); }

  // That what an op of kChecksData would check of its elements is known to be
  // right (server/exec/data_checks.h).
  bool data_checked() const { return data_checked_; }
  void set_data_checked() { data_checked_ = true; }

 private:
  const OpSchema* schema_;
  int8_t device_ = 0;
  bool data_checked_ = false;
  // {set, value}. Two in place: `x * 2` sets slot 1.
  absl::InlinedVector<std::pair<bool, AttrValue>, 2> values_;
};

}  // namespace holdfast

#endif  // HOLDFAST_OPS_ATTRS_H_
