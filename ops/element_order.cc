// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// KeepOrder: in which order the elements of an elementwise op's results lie.
#include <algorithm>

#include "ops/infer_rule.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"

namespace holdfast {
namespace {

// How far an operand's elements lie apart along dimension `dim` of the result;
// 0 where it is broadcast.
int64_t StrideAlong(const TensorSpec& operand, const Dims& shape, size_t dim) {
  const size_t added = shape.size() - operand.shape.size();
  if (dim < added) return 0;
  if (operand.shape[dim - added] != shape[dim]) return 0;
  return operand.strides[dim - added];
}

// > 0: dimension `a` of the result goes outside of `b`; < 0: inside. 0: no
// operand tells. The first operand that tells decides.
int Compare(SpecList inputs, const Dims& shape, size_t a, size_t b) {
  for (const TensorSpec* input : inputs) {
    if (input == nullptr) continue;
    const int64_t x = StrideAlong(*input, shape, a);
    const int64_t y = StrideAlong(*input, shape, b);
    if (x == 0 || y == 0) continue;
    if (x != y) return x > y ? 1 : -1;
    if (shape[a] > shape[b]) return 1;
  }
  return 0;
}

// The dimensions of the result from the innermost to the outermost: row-major
// order, changed where the operands tell another.
Dims InnermostFirst(SpecList inputs, const Dims& shape) {
  const size_t rank = shape.size();
  Dims order(rank);
  for (size_t i = 0; i < rank; ++i) {
    order[i] = static_cast<int64_t>(rank - 1 - i);
  }
  for (size_t i = 1; i < rank; ++i) {
    size_t moving = i;
    for (size_t j = i; j-- > 0;) {
      const int told = Compare(inputs, shape, static_cast<size_t>(order[j]),
                               static_cast<size_t>(order[moving]));
      if (told < 0) break;
      if (told > 0) {
        std::swap(order[j], order[moving]);
        moving = j;
      }
    }
  }
  return order;
}

}  // namespace

bool KeepOtherOrder(const Attrs& attrs, SpecList inputs, OutputSpecs* out) {
  const OpSchema& schema = attrs.schema();
  // A clone is what everything that needs row-major order asks for.
  if (!schema.has(kElementwise) || schema.id == OpId::clone) return false;
  const Dims shape = out->front().spec.shape;
  if (out->front().spec.numel() == 0) return false;
  Dims strides(shape.size());
  int64_t step = 1;
  for (const int64_t dim : InnermostFirst(inputs, shape)) {
    strides[static_cast<size_t>(dim)] = step;
    step *= shape[static_cast<size_t>(dim)];
  }
  bool kept = false;
  for (OutputSpec& output : *out) {
    if (output.alias >= 0 || output.spec.shape != shape) continue;
    TensorSpec permuted = output.spec;
    permuted.strides = strides;
    if (permuted.contiguous()) continue;  // strides as everywhere else
    output.spec = std::move(permuted);
    kept = true;
  }
  return kept;
}

}  // namespace holdfast
