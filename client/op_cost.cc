// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "client/op_cost.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "absl/strings/match.h"
#include "absl/strings/string_view.h"
#include "ops/op_id.h"

namespace holdfast::client {
namespace {

// Multiplications and additions in a nanosecond.
constexpr double kProductsPerNs = 16;
// What a step of a factorisation costs beside that.
constexpr double kFactorSteps = 10;
// So that sums of costs overflow in no program's life.
constexpr double kMostCost = 1e15;

CostKind KindOf(const OpSchema& op) {
  const absl::string_view name = op.name;
  if (op.has(kView)) return CostKind::kView;
  if (name == "matmul" || name == "linear") return CostKind::kProduct;
  if (absl::StartsWith(name, "conv")) return CostKind::kConv;
  if (absl::StartsWith(name, "attention")) return CostKind::kAttention;
  if (absl::StartsWith(name, "rnn_layer")) return CostKind::kRecurrent;
  if (absl::StartsWith(name, "linalg_")) return CostKind::kCubic;
  if (op.has(kReduce) || op.has(kMutates) || op.num_outputs == 0) {
    return CostKind::kByInputs;
  }
  // An output element of these takes one of the input: other rows of a large
  // table are not looked at.
  if (op.has(kElementwise) || op.has(kInplaceOnly) || name == "gather" ||
      name == "index" || name == "index_select" ||
      absl::StartsWith(name, "weighted_gather")) {
    return CostKind::kByOutput;
  }
  return CostKind::kByInputs;
}

double Elements(const TensorSpec* spec) {
  if (spec == nullptr) return 0;
  double elements = 1;
  for (const int64_t size : spec->shape) {
    elements *= static_cast<double>(std::max<int64_t>(size, 0));
  }
  return elements;
}

// Size `from_last` places from the end, 1 where there is none.
double Size(const TensorSpec* spec, int from_last) {
  if (spec == nullptr || spec->rank() <= from_last) return 1;
  return static_cast<double>(
      std::max<int64_t>(spec->shape[spec->rank() - 1 - from_last], 1));
}

double Products(CostKind kind, absl::Span<const TensorSpec* const> inputs,
                const TensorSpec* output) {
  const TensorSpec* first = inputs.empty() ? nullptr : inputs[0];
  const TensorSpec* second = inputs.size() < 2 ? nullptr : inputs[1];
  switch (kind) {
    case CostKind::kProduct:
      return Elements(output) * Size(first, 0);
    case CostKind::kConv:
      // Images, channels and positions stand in two of the three each, be it
      // the convolution or a gradient of it; a window has some nine elements,
      // of which the root finds three.
      return 3 *
             std::sqrt(Elements(first) * Elements(second) * Elements(output));
    case CostKind::kAttention:
      return 2 * Elements(first) * Size(second, 1);
    case CostKind::kRecurrent: {
      double weights = 0;
      for (const TensorSpec* input : inputs.subspan(1)) {
        if (input != nullptr && input->rank() == 2) weights += Elements(input);
      }
      return Elements(first) / Size(first, 0) * weights;
    }
    default:  // kCubic
      return kFactorSteps * Elements(first) *
             std::max(Size(first, 0), Size(first, 1));
  }
}

}  // namespace

const CostKind* CostKinds() {
  static const auto* const kinds = [] {
    auto* all = new std::array<CostKind, kNumOps>;
    for (int i = 0; i < kNumOps; ++i) (*all)[i] = KindOf(GetOp(OpId(i)));
    return all;
  }();
  return kinds->data();
}

uint64_t CostByInputs(CostKind kind, absl::Span<const TensorSpec* const> inputs,
                      const TensorSpec* output) {
  double elements = Elements(output);
  for (const TensorSpec* input : inputs) elements += Elements(input);
  double cost = elements / 2;
  if (kind != CostKind::kByInputs && !inputs.empty()) {
    cost += Products(kind, inputs, output) / kProductsPerNs;
  }
  return kLeastCost + static_cast<uint64_t>(std::min(cost, kMostCost));
}

}  // namespace holdfast::client
