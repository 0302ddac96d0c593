// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/widened.h"

#include <algorithm>
#include <deque>
#include <vector>

#include "absl/strings/str_cat.h"
#include "ops/op_schema.h"

namespace holdfast {
namespace {

bool IsNarrow(const TensorView& view) {
  return view.present() && ComputeType(view.spec->dtype) != view.spec->dtype;
}

// The operands of one call in wide types. Views of the same memory stay so: an
// in-place call has its target on both sides.
class WideOperands {
 public:
  WideOperands(KernelContext& context, CopyFn copy)
      : context_(context), copy_(copy) {}

  // `load`: the kernel reads it.
  absl::StatusOr<TensorView> Add(const TensorView& view, bool load) {
    if (!IsNarrow(view)) return view;
    for (const Operand& operand : operands_) {
      if (operand.narrow.data == view.data &&
          *operand.narrow.spec == *view.spec) {
        return operand.wide;
      }
    }
    Operand& operand = operands_.emplace_back();
    operand.narrow = view;
    operand.spec =
        ContiguousSpec(ComputeType(view.spec->dtype), view.spec->shape);
    operand.wide.spec = &operand.spec;
    operand.wide.data =
        context_.Scratch(std::max<int64_t>(operand.spec.nbytes(), 1));
    if (operand.wide.data == nullptr) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "no scratch memory for ", operand.spec.nbytes(),
          " bytes: ", view.spec->ToString(), " as ", operand.spec.ToString()));
    }
    if (load) {
      if (absl::Status s = copy_(context_, view, operand.wide); !s.ok()) {
        return s;
      }
    }
    return operand.wide;
  }

  // After the kernel has written it.
  absl::Status Store(const TensorView& view) {
    for (const Operand& operand : operands_) {
      if (operand.narrow.data == view.data &&
          *operand.narrow.spec == *view.spec) {
        return copy_(context_, operand.wide, view);
      }
    }
    return absl::OkStatus();
  }

 private:
  struct Operand {
    TensorView narrow, wide;
    TensorSpec spec;
  };

  KernelContext& context_;
  const CopyFn copy_;
  std::deque<Operand> operands_;  // their specs must not move
};

}  // namespace

bool WritesInput(const OpSchema& schema, size_t input, size_t inputs) {
  const size_t per_list =
      schema.num_lists > 0 ? std::max<size_t>(inputs / schema.num_lists, 1) : 1;
  const size_t slot = input / per_list;
  return slot < schema.tensor_params.size() &&
         schema.params[schema.tensor_params[slot]].mutated;
}

bool NeedsWidening(absl::Span<const TensorView> inputs,
                   absl::Span<const TensorView> outputs) {
  return std::any_of(inputs.begin(), inputs.end(), IsNarrow) ||
         std::any_of(outputs.begin(), outputs.end(), IsNarrow);
}

absl::Status RunWidened(KernelFn kernel, CopyFn copy, KernelContext& context,
                        const Attrs& attrs, absl::Span<const TensorView> inputs,
                        absl::Span<const TensorView> outputs) {
  WideOperands operands(context, copy);
  std::vector<TensorView> wide_inputs, wide_outputs;
  for (const TensorView& input : inputs) {
    absl::StatusOr<TensorView> wide = operands.Add(input, /*load=*/true);
    if (!wide.ok()) return wide.status();
    wide_inputs.push_back(*wide);
  }
  for (const TensorView& output : outputs) {
    absl::StatusOr<TensorView> wide = operands.Add(output, /*load=*/false);
    if (!wide.ok()) return wide.status();
    wide_outputs.push_back(*wide);
  }
  absl::Status status = kernel(context, attrs, wide_inputs, wide_outputs);
  if (!status.ok()) return status;
  for (const TensorView& output : outputs) {
    if (IsNarrow(output)) status.Update(operands.Store(output));
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (IsNarrow(inputs[i]) && WritesInput(attrs.schema(), i, inputs.size())) {
      status.Update(operands.Store(inputs[i]));
    }
  }
  return status;
}

}  // namespace holdfast
