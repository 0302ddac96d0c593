// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// How long an op may take, guessed from shapes alone: in nanoseconds of a
// processor of no special speed. What a device really takes is measured
// (run_ahead.h), so only what ops cost beside each other matters here, to an
// order of magnitude.
// Thread-safety: pure functions.
#ifndef HOLDFAST_CLIENT_OP_COST_H_
#define HOLDFAST_CLIENT_OP_COST_H_

#include <cstdint>

#include "absl/base/optimization.h"
#include "absl/types/span.h"
#include "ops/op_schema.h"
#include "ops/tensor_spec.h"

namespace holdfast::client {

enum class CostKind : uint8_t {
  kByOutput,   // as long as it takes to write what it makes
  kByInputs,   // or to read what it takes
  kView,       // nothing
  kProduct,    // a product of matrices
  kConv,       // an output element takes a window
  kAttention,  // a row of scores for each row
  kRecurrent,  // products with all weights, step by step
  kCubic,      // a factorisation
};
// By OpId; made once.
const CostKind* CostKinds();

// Of an op whatever it does.
inline constexpr uint64_t kLeastCost = 1000;

// Of kinds that look at inputs. Null specs are no tensors.
uint64_t CostByInputs(CostKind kind, absl::Span<const TensorSpec* const> inputs,
                      const TensorSpec* output);

// `output`: the first one, null if there is none.
inline uint64_t CostOf(CostKind kind,
                       absl::Span<const TensorSpec* const> inputs,
                       const TensorSpec* output) {
  if (ABSL_PREDICT_FALSE(kind > CostKind::kByOutput)) {
    return kind == CostKind::kView ? kLeastCost
                                   : CostByInputs(kind, inputs, output);
  }
  // An element takes about half a nanosecond. Unknown sizes make it negative.
  const int64_t elements = output == nullptr ? 0 : output->numel();
  return kLeastCost + (elements > 0 ? static_cast<uint64_t>(elements) / 2 : 0);
}

}  // namespace holdfast::client

#endif  // HOLDFAST_CLIENT_OP_COST_H_
