// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Rules of connectionist temporal classification.
#include "ops/infer_rule.h"
#include "ops/op_schema.h"

namespace holdfast {
namespace {

// Checks log_probs [T,N,C] at slot `first` and the three that follow it.
absl::Status CheckCtc(const Attrs& attrs, SpecList inputs, int first) {
  const TensorSpec& log_probs = *inputs[first];
  const TensorSpec& targets = *inputs[first + 1];
  absl::Status s = RequireFloat(attrs, inputs, first);
  if (!s.ok()) return s;
  if (log_probs.rank() != 3) {
    return Invalid(attrs, inputs, "log_probs must be [T, N, C]");
  }
  const int64_t batch = log_probs.shape[1];
  if (targets.rank() != 2 || targets.shape[0] != batch) {
    return Invalid(attrs, inputs, "targets must be [N, S] with N=", batch);
  }
  for (int i = first + 1; i <= first + 3; ++i) {
    if (inputs[i]->dtype != DType::kInt64) {
      return Invalid(attrs, inputs, "expected scalar type Long but found ",
                     TorchTypeName(inputs[i]->dtype));
    }
  }
  for (int i = first + 2; i <= first + 3; ++i) {
    if (inputs[i]->rank() != 1 || inputs[i]->shape[0] != batch) {
      return Invalid(attrs, inputs,
                     "input_lengths and target_lengths must be of size "
                     "batch_size=",
                     batch);
    }
  }
  if (targets.shape[1] > kMaxTensorBytes) {
    return Invalid(attrs, inputs, "targets has too many columns");
  }
  const int64_t blank = attrs.Int("blank");
  if (blank < 0 || blank >= log_probs.shape[2]) {
    return Invalid(attrs, inputs, "blank must be in label range [0, ",
                   log_probs.shape[2], "), but got ", blank);
  }
  return absl::OkStatus();
}

// [N, T, 2S+1]. Cannot overflow: CheckCtc bounds S.
Dims AlphaShape(const TensorSpec& log_probs, const TensorSpec& targets) {
  return {log_probs.shape[1], log_probs.shape[0], 2 * targets.shape[1] + 1};
}

}  // namespace

HOLDFAST_INFER(InferCtcLoss) {
  absl::Status s = CheckCtc(attrs, inputs, 0);
  if (!s.ok()) return s;
  const TensorSpec& log_probs = *inputs[0];
  // An expanded tensor of targets can claim any size.
  const Dims alpha = AlphaShape(log_probs, *inputs[1]);
  s = CheckShape(log_probs.dtype, alpha);
  if (!s.ok()) return WithContext(s, attrs, inputs);
  AddOutput(out, log_probs.dtype, {log_probs.shape[1]});
  AddOutput(out, log_probs.dtype, alpha);
  return absl::OkStatus();
}

HOLDFAST_INFER(InferCtcLossBackward) {
  absl::Status s = CheckCtc(attrs, inputs, 1);
  if (s.ok()) s = RequireSameDType(attrs, inputs, 0, 1);
  if (s.ok()) s = RequireSameDType(attrs, inputs, 1, 5);
  if (s.ok()) s = RequireSameDType(attrs, inputs, 1, 6);
  if (!s.ok()) return s;
  const TensorSpec& log_probs = *inputs[1];
  const Dims each = {log_probs.shape[1]};
  if (inputs[0]->shape != each || inputs[5]->shape != each) {
    return Invalid(attrs, inputs, "grad and loss must be [N]");
  }
  if (inputs[6]->shape != AlphaShape(log_probs, *inputs[2])) {
    return Invalid(attrs, inputs, "log_alpha must be [N, T, 2S+1]");
  }
  AddOutputLike(out, log_probs.dtype, log_probs);
  return absl::OkStatus();
}

}  // namespace holdfast
