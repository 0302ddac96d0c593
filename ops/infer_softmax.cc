// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Rules of softmax and of the negative log likelihood.
#include "ops/infer_rule.h"
#include "ops/op_schema.h"

namespace holdfast {
namespace {

bool IsReduction(const std::string& text) {
  return text == "none" || text == "mean" || text == "sum";
}

// What nll_loss and its gradient share. `input`: the log-probabilities' shape.
absl::Status CheckLoss(const Attrs& attrs, SpecList inputs, DType dtype,
                       absl::Span<const int64_t> input,
                       const TensorSpec& target, const TensorSpec* weight) {
  if (input.size() != 1 && input.size() != 2) {
    return Invalid(attrs, inputs, "input tensor should be 1D or 2D");
  }
  if (target.rank() > 1) {
    return Invalid(attrs, inputs,
                   "0D or 1D target tensor expected, multi-target not "
                   "supported");
  }
  if (target.rank() + 1 != static_cast<int>(input.size()) ||
      (input.size() == 2 && input[0] != target.shape[0])) {
    return Invalid(attrs, inputs,
                   "size mismatch (got input: ", TorchShape(input),
                   ", target: ", TorchShape(target.shape), ")");
  }
  if (target.dtype != DType::kInt64) {
    return Invalid(attrs, inputs, "expected scalar type Long but found ",
                   TorchTypeName(target.dtype));
  }
  const int64_t classes = input.back();
  if (weight != nullptr &&
      (weight->rank() != 1 || weight->shape[0] != classes)) {
    return Invalid(attrs, inputs,
                   "weight tensor should be defined either for all ", classes,
                   " classes or no classes but got weight tensor of shape: ",
                   TorchShape(weight->shape));
  }
  if (weight != nullptr && weight->dtype != dtype) {
    return Invalid(attrs, inputs, "expected scalar type ", TorchTypeName(dtype),
                   " but found ", TorchTypeName(weight->dtype));
  }
  const std::string& reduction = attrs.Str("reduction");
  if (!IsReduction(reduction)) {
    return Invalid(attrs, inputs, AttrToString(reduction),
                   " is not a valid value for reduction");
  }
  return absl::OkStatus();
}

}  // namespace

HOLDFAST_INFER(InferSoftmax) {
  const TensorSpec& input = *inputs[0];
  int dim = 0;
  absl::Status s = DimAttr(attrs, inputs, "dim", input.rank(), &dim);
  if (!s.ok()) return s;
  const DType dtype = attrs.DTypeOr("dtype", input.dtype);
  if (!IsFloat(dtype)) return NotImplementedFor(attrs, inputs, dtype);
  AddOutputLike(out, dtype, input);
  return absl::OkStatus();
}

HOLDFAST_INFER(InferSoftmaxBackward) {
  const TensorSpec& grad = *inputs[0];
  int dim = 0;
  absl::Status s = DimAttr(attrs, inputs, "dim", grad.rank(), &dim);
  if (s.ok()) s = RequireFloat(attrs, inputs, 0);
  if (s.ok()) s = RequireSameDType(attrs, inputs, 0, 1);
  if (!s.ok()) return s;
  if (grad.shape != inputs[1]->shape) {
    return Invalid(attrs, inputs, "grad and output must have one shape");
  }
  AddOutputLike(out, grad.dtype, grad);
  return absl::OkStatus();
}

HOLDFAST_INFER(InferNllLoss) {
  const TensorSpec& input = *inputs[0];
  const TensorSpec& target = *inputs[1];
  absl::Status s =
      CheckLoss(attrs, inputs, input.dtype, input.shape, target, inputs[2]);
  if (s.ok()) s = RequireFloat(attrs, inputs, 0);
  if (!s.ok()) return s;
  if (attrs.Str("reduction") == "none") {
    AddOutput(out, input.dtype, target.shape);
  } else {
    AddOutput(out, input.dtype, {});
  }
  AddOutput(out, input.dtype, {});
  return absl::OkStatus();
}

HOLDFAST_INFER(InferNllLossBackward) {
  const TensorSpec& grad = *inputs[0];
  const TensorSpec& target = *inputs[1];
  const TensorSpec& total_weight = *inputs[3];
  const Dims& size = attrs.Ints("input_size");
  absl::Status s = CheckShape(grad.dtype, size);
  if (!s.ok()) return WithContext(s, attrs, inputs);
  s = CheckLoss(attrs, inputs, grad.dtype, size, target, inputs[2]);
  if (s.ok()) s = RequireFloat(attrs, inputs, 0);
  if (s.ok()) s = RequireSameDType(attrs, inputs, 0, 3);
  if (!s.ok()) return s;
  const bool per_target = attrs.Str("reduction") == "none";
  if (grad.shape != (per_target ? target.shape : Dims{})) {
    return Invalid(attrs, inputs, "grad must have the loss's shape ",
                   per_target ? TorchShape(target.shape) : "[]");
  }
  if (total_weight.rank() != 0) {
    return Invalid(attrs, inputs, "total_weight must be a scalar");
  }
  AddOutput(out, grad.dtype, size);
  return absl::OkStatus();
}

}  // namespace holdfast
