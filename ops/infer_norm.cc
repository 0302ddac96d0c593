// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Rules of the normalisations.
#include <algorithm>

#include "ops/infer_rule.h"
#include "ops/op_schema.h"

namespace holdfast {
namespace {

// An optional per-channel tensor: shape `shape`, the type of input 0.
absl::Status CheckAffine(const Attrs& attrs, SpecList inputs, int slot,
                         absl::Span<const int64_t> shape) {
  const TensorSpec* spec = inputs[slot];
  if (spec == nullptr) return absl::OkStatus();
  if (absl::MakeConstSpan(spec->shape) != shape) {
    const OpSchema& schema = attrs.schema();
    return Invalid(attrs, inputs, "Expected ",
                   schema.params[schema.tensor_params[slot]].name,
                   " to be a tensor of shape ", TorchShape(shape),
                   ", but got shape ", TorchShape(spec->shape));
  }
  return RequireSameDType(attrs, inputs, 0, slot);
}

absl::Status CheckBatchNorm(const Attrs& attrs, SpecList inputs,
                            const TensorSpec& input) {
  absl::Status s = RequireFloat(attrs, inputs, 0);
  if (!s.ok()) return s;
  if (input.rank() < 2) {
    return Invalid(attrs, inputs, "input must be [N, C, ...]");
  }
  return absl::OkStatus();
}

// The layout that group_norm's attributes give `input`: the shape of weight
// and the number of statistics.
absl::Status GroupLayout(const Attrs& attrs, SpecList inputs,
                         const TensorSpec& input, Dims* affine,
                         Dims* statistics) {
  absl::Status s = RequireFloat(attrs, inputs, 0);
  if (!s.ok()) return s;
  const int64_t groups = attrs.Int("groups");
  const int64_t dims = attrs.Int("normalized_dims");
  if (dims < 0 || dims > input.rank()) {
    return Invalid(attrs, inputs, "normalized_dims must be at most ",
                   input.rank());
  }
  if (dims > 0) {
    if (groups != 1) return Invalid(attrs, inputs, "groups must be 1");
    const int lead = input.rank() - static_cast<int>(dims);
    affine->assign(input.shape.begin() + lead, input.shape.end());
    statistics->assign(input.shape.begin(), input.shape.begin() + lead);
    return absl::OkStatus();
  }
  if (input.rank() < 2) {
    return Invalid(attrs, inputs, "input must be [N, C, ...]");
  }
  const int64_t channels = input.shape[1];
  if (groups < 1 || groups > std::max<int64_t>(1, channels) ||
      channels % groups != 0) {
    return Invalid(attrs, inputs,
                   "Expected number of channels in input to be divisible by "
                   "num_groups, but got input of shape ",
                   TorchShape(input.shape), " and num_groups=", groups);
  }
  affine->assign({channels});
  statistics->assign({input.shape[0], groups});
  return absl::OkStatus();
}

}  // namespace

HOLDFAST_INFER(InferBatchNorm) {
  const TensorSpec& input = *inputs[0];
  absl::Status s = CheckBatchNorm(attrs, inputs, input);
  if (!s.ok()) return s;
  const int64_t channels[] = {input.shape[1]};
  for (int slot = 1; slot <= 4 && s.ok(); ++slot) {
    s = CheckAffine(attrs, inputs, slot, channels);
  }
  if (!s.ok()) return s;
  if ((inputs[3] == nullptr) != (inputs[4] == nullptr)) {
    return Invalid(attrs, inputs,
                   "running_mean and running_var must be given together");
  }
  AddOutputLike(out, input.dtype, input);
  AddOutput(out, input.dtype, channels);
  AddOutput(out, input.dtype, channels);
  return absl::OkStatus();
}

HOLDFAST_INFER(InferBatchNormBackward) {
  const TensorSpec& input = *inputs[1];
  absl::Status s = CheckBatchNorm(attrs, inputs, input);
  if (s.ok()) s = RequireSameDType(attrs, inputs, 0, 1);
  if (!s.ok()) return s;
  if (inputs[0]->shape != input.shape) {
    return Invalid(attrs, inputs, "grad and input must have one shape");
  }
  const int64_t channels[] = {input.shape[1]};
  for (int slot = 2; slot <= 4 && s.ok(); ++slot) {
    s = CheckAffine(attrs, inputs, slot, channels);
  }
  if (!s.ok()) return s;
  AddOutputLike(out, input.dtype, input);
  AddOutput(out, input.dtype, channels);
  AddOutput(out, input.dtype, channels);
  return absl::OkStatus();
}

HOLDFAST_INFER(InferGroupNorm) {
  const TensorSpec& input = *inputs[0];
  Dims affine, statistics;
  absl::Status s = GroupLayout(attrs, inputs, input, &affine, &statistics);
  if (s.ok()) s = CheckAffine(attrs, inputs, 1, affine);
  if (s.ok()) s = CheckAffine(attrs, inputs, 2, affine);
  if (!s.ok()) return s;
  AddOutputLike(out, input.dtype, input);
  AddOutput(out, input.dtype, statistics);
  AddOutput(out, input.dtype, statistics);
  return absl::OkStatus();
}

HOLDFAST_INFER(InferGroupNormBackward) {
  const TensorSpec& input = *inputs[1];
  Dims affine, statistics;
  absl::Status s = GroupLayout(attrs, inputs, input, &affine, &statistics);
  if (s.ok()) s = RequireSameDType(attrs, inputs, 0, 1);
  if (s.ok()) s = CheckAffine(attrs, inputs, 2, affine);
  if (s.ok()) s = CheckAffine(attrs, inputs, 3, statistics);
  if (s.ok()) s = CheckAffine(attrs, inputs, 4, statistics);
  if (!s.ok()) return s;
  if (inputs[0]->shape != input.shape) {
    return Invalid(attrs, inputs, "grad and input must have one shape");
  }
  AddOutputLike(out, input.dtype, input);
  AddOutput(out, input.dtype, affine);
  AddOutput(out, input.dtype, affine);
  return absl::OkStatus();
}

}  // namespace holdfast
