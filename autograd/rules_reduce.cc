// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Gradients of reductions: g has the reduced shape and is spread over the
// input's.
#include <utility>

#include "autograd/rule_ops.h"
#include "ops/op_id.h"

namespace holdfast {
namespace {

// The dimensions that this node's `dim` names, as a bit mask.
uint64_t Mask(const GradContext& c) {
  const TensorSpec* input = &c.input_spec(0);
  uint64_t mask = 0;
  // Cannot fail: the same call passed inference.
  ReducedDims(c.attrs(), absl::MakeConstSpan(&input, 1), &mask).IgnoreError();
  return mask;
}

// `a`, of the reduced shape, repeated over the input's.
Value Spread(GradContext& c, const Value& a) {
  const TensorSpec& input = c.input_spec(0);
  // A rank-0 result broadcasts as it is.
  if (!a || a->spec().rank() == 0) return Expand(c, a, input.shape);
  return Expand(c, RestoreDims(c, a, input, Mask(c)), input.shape);
}

// g / (number of equals) where x equals the extremum y
void SpreadOverEquals(GradContext& c) {
  const TensorSpec& input = c.input_spec(0);
  const uint64_t mask = Mask(c);
  Dims dims;
  for (int i = 0; i < input.rank(); ++i) {
    if (((mask >> i) & 1u) != 0) dims.push_back(i);
  }
  if (dims.empty()) {  // rank 0
    c.Set(0, c.grad());
    return;
  }
  const Value g = RestoreDims(c, c.grad(), input, mask);
  const Value y = RestoreDims(c, c.output(), input, mask);
  const Value equal = Equal(c, c.input(0), y);
  const Value count = CastLike(c, Sum(c, equal, dims, /*keepdim=*/true), g);
  c.Set(0, Where(c, equal, Div(c, g, count), int64_t{0}));
}

}  // namespace

// g
HOLDFAST_GRAD(sum) { c.Set(0, Spread(c, c.grad())); }

// g / (elements per result)
HOLDFAST_GRAD(mean) {
  const Dims& shape = c.input_spec(0).shape;
  const uint64_t mask = Mask(c);
  int64_t n = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (((mask >> i) & 1u) != 0) n *= shape[i];
  }
  c.Set(0, Spread(c, Div(c, c.grad(), n)));
}

HOLDFAST_GRAD(amax, Bit(0), Bit(0)) { SpreadOverEquals(c); }
HOLDFAST_GRAD(amin, Bit(0), Bit(0)) { SpreadOverEquals(c); }

// The running sum of g from the other end.
HOLDFAST_GRAD(cumsum) {
  const TensorSpec& input = c.input_spec(0);
  if (input.rank() == 0) {
    c.Set(0, c.grad());
    return;
  }
  const int64_t dim = DimAttr(c, input.rank());
  const Value reversed = Flip(c, c.grad(), {dim});
  if (!reversed) return;
  const Value sums = c.Call(OpId::cumsum, {reversed}, {{"dim", dim}});
  c.Set(0, Flip(c, sums, {dim}));
}

}  // namespace holdfast
