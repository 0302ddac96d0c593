// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Elementwise ops whose results are not in row-major order (KeepOrder in
// ops/infer_rule.h). A kernel's outputs are contiguous, and which element is
// which does not matter to such an op: its views are shown to the kernel with
// their dimensions in the order in which the outputs lie. Operands that lie
// so, too, are then contiguous as well.
#include <algorithm>
#include <utility>

#include "server/exec/op_runner.h"

namespace holdfast {
namespace {

// The dimensions from the outermost to the innermost.
Dims OutermostFirst(const TensorSpec& spec) {
  Dims order(spec.shape.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return spec.strides[static_cast<size_t>(a)] >
           spec.strides[static_cast<size_t>(b)];
  });
  return order;
}

// `spec` with the dimensions in that order; dimensions that broadcasting adds
// have one element.
TensorSpec Permuted(const TensorSpec& spec, const Dims& order) {
  const int64_t added =
      static_cast<int64_t>(order.size()) - static_cast<int64_t>(spec.rank());
  TensorSpec permuted = spec;
  permuted.shape.assign(order.size(), 1);
  permuted.strides.assign(order.size(), 0);
  for (size_t i = 0; i < order.size(); ++i) {
    if (order[i] < added) continue;
    const size_t dim = static_cast<size_t>(order[i] - added);
    permuted.shape[i] = spec.shape[dim];
    permuted.strides[i] = spec.strides[dim];
  }
  return permuted;
}

}  // namespace

void OpRunner::ShowInOrder(absl::Span<TensorView> inputs,
                           absl::Span<TensorView> outputs,
                           OrderedSpecs* specs) {
  const Dims order = OutermostFirst(*outputs[0].spec);
  specs->reserve(inputs.size() + outputs.size());  // views point into it
  for (absl::Span<TensorView> views : {inputs, outputs}) {
    for (TensorView& view : views) {
      // A number is the same everywhere.
      if (!view.present() || view.spec->rank() == 0) continue;
      specs->push_back(Permuted(*view.spec, order));
      view.spec = &specs->back();
    }
  }
}

}  // namespace holdfast
