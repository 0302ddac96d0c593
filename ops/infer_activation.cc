// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Rules of the fused activations.
#include <algorithm>
#include <iterator>

#include "ops/infer_rule.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"

namespace holdfast {
namespace {

// What activation_backward's `op` may be: any slope that
// kernels/elementwise_activation.h has. Of tanh and sigmoid it takes the
// output, of the others the input.
constexpr const char* kActivations[] = {
    "gelu",       "gelu_tanh",  "silu",      "mish",        "softplus",
    "leaky_relu", "elu",        "hardswish", "hardsigmoid", "hardtanh",
    "hardshrink", "softshrink", "threshold", "softsign",    "huber",
    "tanh",       "sigmoid",    "abs",       "square"};

}  // namespace

HOLDFAST_INFER(InferActivation) {
  if (absl::Status s = RequireFloat(attrs, inputs, 0); !s.ok()) return s;
  if (attrs.schema().id == OpId::gelu) {
    const std::string& approximate = attrs.Str("approximate");
    if (approximate != "none" && approximate != "tanh") {
      return Invalid(attrs, inputs,
                     "approximate argument must be either none or tanh");
    }
  }
  if (attrs.schema().id == OpId::softshrink && attrs.Float("lambd") < 0) {
    return Invalid(attrs, inputs,
                   "lambda must be greater or equal to 0, but found to be ",
                   attrs.Float("lambd"));
  }
  AddOutputLike(out, inputs[0]->dtype, *inputs[0]);
  return absl::OkStatus();
}

HOLDFAST_INFER(InferActivationBackward) {
  absl::Status s = RequireFloat(attrs, inputs, 0);
  if (s.ok()) s = RequireSameDType(attrs, inputs, 0, 1);
  if (!s.ok()) return s;
  if (inputs[0]->shape != inputs[1]->shape) {
    return Invalid(attrs, inputs, "grad and input must have one shape");
  }
  const std::string& op = attrs.Str("op");
  if (std::find(std::begin(kActivations), std::end(kActivations), op) ==
      std::end(kActivations)) {
    return Invalid(attrs, inputs, "unknown activation ", AttrToString(op));
  }
  AddOutputLike(out, inputs[0]->dtype, *inputs[0]);
  return absl::OkStatus();
}

}  // namespace holdfast
