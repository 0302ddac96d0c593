// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "ops/infer.h"

#include <algorithm>
#include <string>

#include "absl/base/optimization.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "ops/infer_rule.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"
#include "ops/place_op.h"

namespace holdfast {
namespace {

// Most kernels are for real numbers; rows say who else may come.
absl::Status CheckDType(const Attrs& attrs, SpecList inputs, DType dtype) {
  constexpr uint32_t kTakesComplex = kComplex | kView;
  if (!IsComplex(dtype) || (attrs.schema().flags & kTakesComplex) != 0) {
    return absl::OkStatus();
  }
  return NotImplementedFor(attrs, inputs, dtype);
}

// A tensor parameter without a tensor: fine for `Tensor?`, and for an operand
// that was passed as a number.
absl::Status CheckAbsent(const Attrs& attrs, SpecList inputs, int slot) {
  const OpSchema& schema = attrs.schema();
  const OpParam& param = schema.params[schema.tensor_params[slot]];
  switch (param.kind) {
    case ParamKind::kOptTensor:
      return absl::OkStatus();
    case ParamKind::kOptOperand:
      if (IsNone(attrs.Get(param.attr_slot))) return absl::OkStatus();
      [[fallthrough]];
    case ParamKind::kOperand: {
      if (!AttrIsNumber(attrs.Get(param.attr_slot))) {
        return Invalid(attrs, inputs, "argument '", param.name,
                       "' must be a tensor or a number");
      }
      for (const TensorSpec* input : inputs) {
        if (input != nullptr) return absl::OkStatus();
      }
      return Invalid(attrs, inputs, "at least one operand must be a tensor");
    }
    default:
      return Invalid(attrs, inputs, "argument '", param.name,
                     "' must be a tensor");
  }
}

absl::Status CheckLists(const Attrs& attrs, SpecList inputs) {
  const OpSchema& schema = attrs.schema();
  if (inputs.size() % schema.num_lists != 0) {
    return Invalid(attrs, inputs, "tensor lists must have equal length, ",
                   schema.num_lists, " lists in ", inputs.size(), " tensors");
  }
  for (const TensorSpec* input : inputs) {
    if (input == nullptr) {
      return Invalid(attrs, inputs, "every entry of a list must be a tensor");
    }
    absl::Status s = CheckDType(attrs, inputs, input->dtype);
    if (!s.ok()) return s;
  }
  return absl::OkStatus();
}

absl::Status CheckInputs(const Attrs& attrs, SpecList inputs) {
  const OpSchema& schema = attrs.schema();
  if (schema.num_lists > 0) return CheckLists(attrs, inputs);
  if (static_cast<int>(inputs.size()) != schema.num_tensors) {
    return Invalid(attrs, inputs, "the op takes ", schema.num_tensors,
                   " tensors, not ", inputs.size());
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == nullptr) {
      absl::Status s = CheckAbsent(attrs, inputs, static_cast<int>(i));
      if (!s.ok()) return s;
    } else if (IsComplex(inputs[i]->dtype)) {
      absl::Status s = CheckDType(attrs, inputs, inputs[i]->dtype);
      if (!s.ok()) return s;
    }
  }
  return absl::OkStatus();
}

absl::Status CheckRequiredAttrs(const Attrs& attrs, SpecList inputs) {
  const OpSchema& schema = attrs.schema();
  for (int slot = 0; slot < schema.num_attrs; ++slot) {
    if ((schema.required_attrs >> slot & 1) != 0 && !attrs.IsSet(slot)) {
      return Invalid(attrs, inputs, "missing required argument '",
                     schema.params[schema.attr_params[slot]].name, "'");
    }
  }
  return absl::OkStatus();
}

absl::Status CheckInplace(const Attrs& attrs, SpecList inputs,
                          const TensorSpec& result) {
  if (inputs[0] == nullptr) {
    return Invalid(attrs, inputs, "the in-place form writes its first ",
                   "argument, which must be a tensor");
  }
  const TensorSpec& target = *inputs[0];
  if (result.shape != target.shape) {
    return Invalid(
        attrs, inputs, "output with shape ", TorchShape(target.shape),
        " doesn't match the broadcast shape ", TorchShape(result.shape));
  }
  if (Category(result.dtype) > Category(target.dtype)) {
    return Invalid(attrs, inputs, "result type ", TorchTypeName(result.dtype),
                   " can't be cast to the desired output type ",
                   TorchTypeName(target.dtype));
  }
  // Filling is the same in any order.
  if (attrs.schema().id == OpId::fill) return absl::OkStatus();
  return RequireWritable(attrs, inputs, 0);
}

absl::Status CheckForm(const Attrs& attrs, SpecList inputs, bool inplace) {
  const OpSchema& schema = attrs.schema();
  if (inplace && !schema.has(kInplace) && !schema.has(kInplaceOnly)) {
    return Invalid(attrs, inputs, "the op has no in-place form");
  }
  if (!inplace && schema.has(kInplaceOnly)) {
    return Invalid(attrs, inputs, "the op has only an in-place form");
  }
  return absl::OkStatus();
}

absl::Status CheckOutput(const Attrs& attrs, SpecList inputs,
                         const TensorSpec& spec) {
  absl::Status s = CheckDType(attrs, inputs, spec.dtype);
  if (!s.ok()) return s;
  if (attrs.schema().has_any(kUnknownSizes)) {
    // The sizes that are known already; the runner checks the rest.
    Dims known = spec.shape;
    std::replace(known.begin(), known.end(), kUnknownSize, int64_t{1});
    s = CheckShape(spec.dtype, known);
  } else if (attrs.schema().has(kView)) {
    s = CheckViewShape(spec.dtype, spec.shape);
  } else {
    s = CheckShape(spec.dtype, spec.shape);
  }
  return s.ok() ? s : WithContext(s, attrs, inputs);
}

// Of ops that are no views: what they compute with. An elementwise op's output
// has as many elements as any input.
absl::Status CheckComputed(const Attrs& attrs, SpecList inputs) {
  for (const TensorSpec* input : inputs) {
    // Views have at most kMaxViewBytes, so that this cannot overflow.
    if (input == nullptr ||
        ABSL_PREDICT_TRUE(input->nbytes() <= kMaxTensorBytes)) {
      continue;
    }
    return Invalid(attrs, inputs, "an op computes with at most ",
                   kMaxTensorBytes, " bytes, and ", input->ToString(), " has ",
                   input->nbytes(),
                   "; only views may. Use a smaller expanded size");
  }
  return absl::OkStatus();
}

absl::Status InferForm(const Attrs& attrs, SpecList inputs, bool inplace,
                       OutputSpecs* out) {
  const OpSchema& schema = attrs.schema();
  out->clear();
  if (absl::Status s = CheckInputs(attrs, inputs); !s.ok()) return s;
  if (schema.required_attrs != 0) {
    if (absl::Status s = CheckRequiredAttrs(attrs, inputs); !s.ok()) return s;
  }
  if (inplace || schema.has(kInplaceOnly)) {
    if (absl::Status s = CheckForm(attrs, inputs, inplace); !s.ok()) return s;
  }
  int device = 0;
  if (absl::Status s = PlaceOp(attrs, inputs, inplace, &device); !s.ok()) {
    return s;
  }
  if (!schema.has_any(kElementwise | kView)) {
    if (absl::Status s = CheckComputed(attrs, inputs); !s.ok()) return s;
  }
  if (absl::Status s = schema.infer(attrs, inputs, out); !s.ok()) return s;
  if (schema.id != OpId::to_device) {
    for (OutputSpec& output : *out) {
      output.spec.device = static_cast<int8_t>(device);
    }
  }
  for (const OutputSpec& output : *out) {
    absl::Status s = CheckOutput(attrs, inputs, output.spec);
    if (!s.ok()) return s;
  }
  if (inplace) {
    absl::Status s = CheckInplace(attrs, inputs, out->front().spec);
    if (!s.ok()) return s;
    out->clear();
    out->emplace_back(*inputs[0], 0);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status InferOp(const Attrs& attrs, SpecList inputs, bool inplace,
                     OutputSpecs* out) {
  absl::Status status = InferForm(attrs, inputs, inplace, out);
  if (status.ok()) return status;
  out->clear();
  if (!inplace) return status;
  // Say `add_`, which is what the user wrote.
  absl::string_view message = status.message();
  const std::string& name = attrs.schema().name;
  if (!absl::ConsumePrefix(&message, absl::StrCat("[", name, "]"))) {
    return status;
  }
  return absl::Status(status.code(), absl::StrCat("[", name, "_]", message));
}

}  // namespace holdfast
