// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Rules of optimizer steps: lists of equal length, entry i of every list for
// parameter i. They have no outputs; hyperparameters are the optimizers' own to
// judge (schedules may pass values that constructors refuse).
#include <string>

#include "ops/infer_rule.h"
#include "ops/op_schema.h"

namespace holdfast {
namespace {

// `written`: bit per list that the step writes.
absl::Status CheckGroups(const Attrs& attrs, SpecList inputs,
                         uint32_t written) {
  const OpSchema& schema = attrs.schema();
  const size_t count = inputs.size() / schema.num_lists;
  for (size_t i = 0; i < count; ++i) {
    const TensorSpec& param = *inputs[i];
    if (!IsFloat(param.dtype)) {
      return NotImplementedFor(attrs, inputs, param.dtype);
    }
    for (int list = 0; list < schema.num_lists; ++list) {
      const size_t at = list * count + i;
      const TensorSpec& tensor = *inputs[at];
      if (tensor.shape != param.shape || tensor.dtype != param.dtype) {
        return Invalid(attrs, inputs, "entry ", i, " of ",
                       schema.params[schema.tensor_params[list]].name,
                       " must be as parameter ", i, ", ", param.ToString(),
                       ", not ", tensor.ToString());
      }
      if ((written >> list & 1) == 0) continue;
      if (absl::Status s = RequireWritable(attrs, inputs, at); !s.ok()) {
        return s;
      }
    }
  }
  return absl::OkStatus();
}

}  // namespace

HOLDFAST_INFER(InferSgd) {
  (void)out;
  // Without momentum the third list is the gradients again, only named.
  const bool buffers = attrs.Float("momentum") != 0;
  return CheckGroups(attrs, inputs, buffers ? 0b101 : 0b001);
}

HOLDFAST_INFER(InferAdam) {
  (void)out;
  if (attrs.Int("step") < 1) {
    return Invalid(attrs, inputs, "step must count from 1");
  }
  return CheckGroups(attrs, inputs, 0b1101);
}

HOLDFAST_INFER(InferOptimizerStep) {
  (void)out;
  // Bit i: the algorithm has state i.
  struct Algorithm {
    const char* name;
    uint32_t states;
  };
  static constexpr Algorithm kAlgorithms[] = {
      {"adagrad", 0b001}, {"adadelta", 0b011}, {"adamax", 0b011},
      {"nadam", 0b011},   {"radam", 0b011},    {"rmsprop", 0b001},
      {"rprop", 0b011},   {"asgd", 0b001},     {"amsgrad", 0b111}};
  const std::string& name = attrs.Str("algorithm");
  for (const Algorithm& algorithm : kAlgorithms) {
    if (name != algorithm.name) continue;
    uint32_t states = algorithm.states;
    if (name == "rmsprop") {
      if (attrs.Float("momentum") > 0) states |= 0b010;
      if (attrs.Bool("centered")) states |= 0b100;
    }
    return CheckGroups(attrs, inputs, 1 | states << 2);
  }
  return Invalid(attrs, inputs, "there is no algorithm ", name);
}

}  // namespace holdfast
