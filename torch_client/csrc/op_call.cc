// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "op_call.h"

namespace holdfast_torch {

Op::Op(const char* name) : id_(Api().find_op(name)) {
  TORCH_CHECK(id_ >= 0, "this holdfast has no op ", name,
              ". Upgrade holdfast and holdfast_torch together.");
  outputs_ = Api().outputs_of(id_);
}

HfAttr AttrOf(const at::Scalar& value, c10::ScalarType dtype) {
  HfAttr attr{};
  if (dtype == c10::ScalarType::Bool) {
    attr.kind = HF_BOOL;
    attr.integer = value.to<bool>();
  } else if (c10::isIntegralType(dtype, /*includeBool=*/false)) {
    attr.kind = HF_INT;
    attr.integer = value.to<int64_t>();
  } else {
    attr.kind = HF_FLOAT;
    attr.real = value.to<double>();
  }
  return attr;
}

HfAttr AttrOf(const at::Scalar& value) {
  TORCH_CHECK_NOT_IMPLEMENTED(!value.isComplex(),
                              "holdfast: a complex number as an argument of an "
                              "op. Got ",
                              value.toComplexDouble(),
                              ". Make it a tensor of device holdfast.");
  return AttrOf(value, value.isBoolean()         ? c10::ScalarType::Bool
                       : value.isFloatingPoint() ? c10::ScalarType::Double
                                                 : c10::ScalarType::Long);
}

Call& Call::Plain(int32_t kind, int64_t value) {
  HfAttr attr{};
  attr.kind = kind;
  attr.integer = value;
  return Value(attr);
}

Call& Call::Float(double value) {
  HfAttr attr{};
  attr.kind = HF_FLOAT;
  attr.real = value;
  return Value(attr);
}

Call& Call::Ints(c10::IntArrayRef values) {
  HfAttr attr{};
  attr.kind = HF_INTS;
  attr.integer = static_cast<int64_t>(values.size());
  attr.address = values.data();
  return Value(attr);
}

Call& Call::Text(const char* value) {
  HfAttr attr{};
  attr.kind = HF_STRING;
  attr.address = value;
  return Value(attr);
}

void Call::Apply(bool inplace, HfTensor** results) {
  HfError error;
  HfSession* session = Session();
  const auto attrs = static_cast<int32_t>(attrs_.size());
  const auto inputs = static_cast<int32_t>(inputs_.size());
  const int code =
      Api().apply(session, op_.id(), attrs_.data(), attrs, inputs_.data(),
                  inputs, inplace, results, &error);
  Check(code, error);
}

Handle Call::RunHandle() {
  HfTensor* result = nullptr;
  Apply(/*inplace=*/false, &result);
  return Handle(result);
}

void Call::RunInPlace() {
  HfTensor* result = nullptr;
  Apply(/*inplace=*/true, &result);
  Api().release(result);
}

}  // namespace holdfast_torch
