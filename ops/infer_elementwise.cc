// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Rules of elementwise ops. The first line of each path is what runs a million
// times a second: equal shapes, one dtype, no allocation, no text.
#include <algorithm>

#include "ops/infer_rule.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"

namespace holdfast {
namespace {

// operator== would call memcmp, which costs more than these few words.
bool SameShape(const TensorSpec& a, const TensorSpec& b) {
  const size_t rank = a.shape.size();
  if (rank != b.shape.size()) return false;
  const int64_t* x = a.shape.data();
  const int64_t* y = b.shape.data();
  for (size_t i = 0; i < rank; ++i) {
    if (x[i] != y[i]) return false;
  }
  return true;
}

// Adds the output of inputs `first` and `first + 1` broadcast together; a
// number (null) broadcasts to anything.
absl::Status AddBroadcast(const Attrs& attrs, SpecList inputs, int first,
                          DType dtype, OutputSpecs* out) {
  const TensorSpec* a = inputs[first];
  const TensorSpec* b = inputs[first + 1];
  if (a == nullptr) std::swap(a, b);
  if (a == nullptr) {
    AddOutput(out, dtype, {});
    return absl::OkStatus();
  }
  if (b == nullptr || SameShape(*a, *b)) {
    AddOutputLike(out, dtype, *a);
    return absl::OkStatus();
  }
  absl::StatusOr<Dims> shape = BroadcastShapes(a->shape, b->shape);
  if (!shape.ok()) return WithContext(shape.status(), attrs, inputs);
  AddOutput(out, dtype, *shape);
  return absl::OkStatus();
}

DType AtLeastFloat(DType dtype) {
  return IsDifferentiable(dtype) ? dtype : kDefaultFloat;
}

// The dtype of a tensor operand, or of the number in its place.
bool OperandIsBool(const Attrs& attrs, SpecList inputs, int slot) {
  if (inputs[slot] != nullptr) return inputs[slot]->dtype == DType::kBool;
  const OpSchema& schema = attrs.schema();
  const OpParam& param = schema.params[schema.tensor_params[slot]];
  return std::holds_alternative<bool>(attrs.Get(param.attr_slot));
}

absl::Status CheckPow(const Attrs& attrs, SpecList inputs, DType dtype) {
  if (dtype == DType::kBool) return NotImplementedFor(attrs, inputs, dtype);
  if (inputs[1] == nullptr && IsIntegral(dtype)) {
    const OpSchema& schema = attrs.schema();
    const OpParam& exponent = schema.params[schema.tensor_params[1]];
    if (AttrAsInt(attrs.Get(exponent.attr_slot)) < 0) {
      return Invalid(attrs, inputs,
                     "Integers to negative integer powers are not allowed");
    }
  }
  return absl::OkStatus();
}

// What the rows that share a rule add to it.
absl::Status CheckRandomParameters(const Attrs& attrs, SpecList inputs) {
  if (absl::Status s = RequireFloat(attrs, inputs, 0); !s.ok()) return s;
  const OpId id = attrs.schema().id;
  if (id == OpId::uniform) {
    const double low = attrs.Float("low"), high = attrs.Float("high");
    if (!(low <= high)) {
      return Invalid(attrs, inputs,
                     "uniform_ expects to return a [from, to) range, but found "
                     "from=",
                     low, " > to=", high);
    }
  }
  if (id == OpId::normal && !(attrs.Float("std") >= 0)) {
    return Invalid(attrs, inputs, "normal expects std >= 0.0, but found std ",
                   attrs.Float("std"));
  }
  return absl::OkStatus();
}

}  // namespace

HOLDFAST_INFER(InferUnary) {
  if (attrs.schema().has(kRandom)) {
    absl::Status s = CheckRandomParameters(attrs, inputs);
    if (!s.ok()) return s;
  }
  AddOutputLike(out, inputs[0]->dtype, *inputs[0]);
  return absl::OkStatus();
}

HOLDFAST_INFER(InferUnaryNumeric) {
  if (inputs[0]->dtype == DType::kBool) {
    if (attrs.schema().id == OpId::neg) {
      return Invalid(
          attrs, inputs,
          "Negation, the `-` operator, on a bool tensor is not supported. If "
          "you are trying to invert a mask, use the `~` or `logical_not()` "
          "operator instead");
    }
    if (attrs.schema().id == OpId::relu) {
      return Invalid(attrs, inputs, "Boolean inputs not supported for relu");
    }
    return NotImplementedFor(attrs, inputs, DType::kBool);
  }
  if (attrs.schema().id == OpId::abs) {
    AddOutputLike(out, RealType(inputs[0]->dtype), *inputs[0]);
    return absl::OkStatus();
  }
  AddOutputLike(out, inputs[0]->dtype, *inputs[0]);
  return absl::OkStatus();
}

HOLDFAST_INFER(InferUnaryFloat) {
  (void)attrs;
  AddOutputLike(out, AtLeastFloat(inputs[0]->dtype), *inputs[0]);
  return absl::OkStatus();
}

HOLDFAST_INFER(InferUnaryBool) {
  (void)attrs;
  AddOutputLike(out, DType::kBool, *inputs[0]);
  return absl::OkStatus();
}

HOLDFAST_INFER(InferBinary) {
  const DType dtype = ResultType(attrs, inputs);
  if (attrs.schema().id == OpId::relu_backward) {
    absl::Status s = RequireFloat(attrs, inputs, 0);
    if (!s.ok()) return s;
  }
  if (attrs.schema().id == OpId::pow) {
    absl::Status s = CheckPow(attrs, inputs, dtype);
    if (!s.ok()) return s;
  }
  return AddBroadcast(attrs, inputs, 0, dtype, out);
}

HOLDFAST_INFER(InferBinaryNoBool) {
  const DType dtype = ResultType(attrs, inputs);
  if (attrs.schema().id == OpId::sub) {
    const bool a = OperandIsBool(attrs, inputs, 0);
    const bool b = OperandIsBool(attrs, inputs, 1);
    if (a && b) {
      return Invalid(
          attrs, inputs,
          "Subtraction, the `-` operator, with two bool tensors is not "
          "supported. Use the `^` or `logical_xor()` operator instead");
    }
    if (a || b) {
      return Invalid(
          attrs, inputs,
          "Subtraction, the `-` operator, with a bool tensor is not "
          "supported. If you are trying to invert a mask, use the `~` or "
          "`logical_not()` operator instead");
    }
  } else if (dtype == DType::kBool) {
    return NotImplementedFor(attrs, inputs, dtype);
  }
  return AddBroadcast(attrs, inputs, 0, dtype, out);
}

HOLDFAST_INFER(InferDiv) {
  return AddBroadcast(attrs, inputs, 0, AtLeastFloat(ResultType(attrs, inputs)),
                      out);
}

HOLDFAST_INFER(InferCompare) {
  return AddBroadcast(attrs, inputs, 0, DType::kBool, out);
}

HOLDFAST_INFER(InferBitwise) {
  const DType dtype = ResultType(attrs, inputs);
  if (!IsIntegral(dtype)) return NotImplementedFor(attrs, inputs, dtype);
  return AddBroadcast(attrs, inputs, 0, dtype, out);
}

HOLDFAST_INFER(InferWhole) {
  const DType dtype = ResultType(attrs, inputs);
  if (!IsIntegral(dtype) || dtype == DType::kBool) {
    return NotImplementedFor(attrs, inputs, dtype);
  }
  return AddBroadcast(attrs, inputs, 0, dtype, out);
}

HOLDFAST_INFER(InferWhere) {
  const TensorSpec& condition = *inputs[0];
  if (condition.dtype != DType::kBool) {
    return Invalid(attrs, inputs,
                   "where expected condition to be a boolean tensor, but got "
                   "a tensor with dtype ",
                   TorchTypeName(condition.dtype));
  }
  OutputSpecs branches;
  absl::Status s =
      AddBroadcast(attrs, inputs, 1, ResultType(attrs, inputs), &branches);
  if (!s.ok()) return s;
  const TensorSpec& value = branches[0].spec;
  if (value.shape == condition.shape) {
    AddOutputLike(out, value.dtype, value);
    return absl::OkStatus();
  }
  absl::StatusOr<Dims> shape = BroadcastShapes(condition.shape, value.shape);
  if (!shape.ok()) return WithContext(shape.status(), attrs, inputs);
  AddOutput(out, value.dtype, *shape);
  return absl::OkStatus();
}

HOLDFAST_INFER(InferClamp) {
  const AttrValue& low = attrs.Get("min");
  const AttrValue& high = attrs.Get("max");
  if (IsNone(low) && IsNone(high)) {
    return Invalid(attrs, inputs,
                   "At least one of 'min' or 'max' must not be None");
  }
  const DType dtype =
      PromoteWithNumber(PromoteWithNumber(inputs[0]->dtype, low), high);
  if (dtype == DType::kBool) return NotImplementedFor(attrs, inputs, dtype);
  AddOutputLike(out, dtype, *inputs[0]);
  return absl::OkStatus();
}

HOLDFAST_INFER(InferTo) {
  const DType dtype = attrs.DTypeOr("dtype", inputs[0]->dtype);
  AddOutputLike(out, dtype, *inputs[0]);
  return absl::OkStatus();
}

HOLDFAST_INFER(InferClone) {
  (void)attrs;
  AddOutputLike(out, inputs[0]->dtype, *inputs[0]);
  return absl::OkStatus();
}

HOLDFAST_INFER(InferToDevice) {
  const int64_t device = attrs.Int("device");
  if (device < 0 || device >= kMaxDevices) {
    return Invalid(attrs, inputs, "a device's number must be in [0, ",
                   kMaxDevices, ")");
  }
  AddOutputLike(out, inputs[0]->dtype, *inputs[0]);
  out->front().spec.device = static_cast<int8_t>(device);
  return absl::OkStatus();
}

HOLDFAST_INFER(InferCopy) {
  const TensorSpec& target = *inputs[0];
  if (inputs[1]->shape != target.shape) {
    absl::StatusOr<Dims> shape =
        BroadcastShapes(target.shape, inputs[1]->shape);
    if (!shape.ok()) return WithContext(shape.status(), attrs, inputs);
    if (*shape != target.shape) {
      return Invalid(attrs, inputs, "output with shape ",
                     TorchShape(target.shape),
                     " doesn't match the broadcast shape ", TorchShape(*shape));
    }
  }
  AddOutputLike(out, target.dtype, target);
  return absl::OkStatus();
}

HOLDFAST_INFER(InferDropout) {
  const double p = attrs.Float("p");
  if (!(p >= 0 && p <= 1)) {
    return Invalid(attrs, inputs,
                   "dropout probability has to be between 0 and 1, but got ",
                   AttrToString(attrs.Get("p")));
  }
  if (absl::Status s = RequireFloat(attrs, inputs, 0); !s.ok()) return s;
  AddOutputLike(out, inputs[0]->dtype, *inputs[0]);
  AddOutputLike(out, DType::kBool, *inputs[0]);
  return absl::OkStatus();
}

}  // namespace holdfast
