// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Type promotion of one call: torch.result_type.
#include "ops/infer_rule.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"

namespace holdfast {
namespace {

// torch.result_type's groups. kUnset: no member.
constexpr DType kUnset = static_cast<DType>(0);

void Join(DType dtype, DType* group) {
  *group = *group == kUnset ? dtype : PromoteTypes(*group, dtype);
}

// A lower group matters only when its category is higher; a float keeps its
// precision when it becomes complex.
DType Combine(DType higher, DType lower) {
  if (higher == kUnset) return lower;
  if (lower == kUnset || Category(lower) <= Category(higher)) return higher;
  if (IsFloat(higher) && IsComplex(lower)) {
    return PromoteTypes(higher, DType::kComplex64);
  }
  return PromoteTypes(higher, lower);
}

DType NumberType(const AttrValue& number) {
  if (std::holds_alternative<double>(number)) return kDefaultFloat;
  if (std::holds_alternative<int64_t>(number)) return DType::kInt64;
  if (std::holds_alternative<bool>(number)) return DType::kBool;
  return kUnset;
}

DType GroupedResultType(const Attrs& attrs, SpecList inputs) {
  const OpSchema& schema = attrs.schema();
  if (schema.id == OpId::scatter && !inputs.empty() && inputs[0] != nullptr) {
    return inputs[0]->dtype;  // src is written into a copy of input
  }
  DType tensors = kUnset, scalars = kUnset, numbers = kUnset;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (schema.num_lists == 0 &&
        (i >= 32 || !(schema.promoted_inputs >> i & 1))) {
      continue;
    }
    if (const TensorSpec* spec = inputs[i]; spec != nullptr) {
      Join(spec->dtype, spec->shape.empty() ? &scalars : &tensors);
      continue;
    }
    if (i >= schema.tensor_params.size()) continue;
    const int slot = schema.params[schema.tensor_params[i]].attr_slot;
    if (slot < 0) continue;
    const DType type = NumberType(attrs.Get(slot));
    if (type != kUnset) Join(type, &numbers);
  }
  const DType result = Combine(tensors, Combine(scalars, numbers));
  return result == kUnset ? kDefaultFloat : result;
}

}  // namespace

DType PromoteWithNumber(DType tensor, const AttrValue& number) {
  if (std::holds_alternative<double>(number)) {
    return IsDifferentiable(tensor) ? tensor : kDefaultFloat;
  }
  if (std::holds_alternative<int64_t>(number)) {
    return tensor == DType::kBool ? DType::kInt64 : tensor;
  }
  return tensor;
}

DType ResultType(const Attrs& attrs, SpecList inputs) {
  // Nearly every call has one type only.
  if (inputs.size() == 2 && attrs.schema().promoted_inputs == 3 &&
      inputs[0] != nullptr && inputs[1] != nullptr &&
      inputs[0]->dtype == inputs[1]->dtype) {
    return inputs[0]->dtype;
  }
  return GroupedResultType(attrs, inputs);
}

}  // namespace holdfast
