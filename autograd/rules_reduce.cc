// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Gradients of reductions: g has the reduced shape and is spread over the
// input's.
#include <algorithm>
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

// Elements that make one result.
int64_t Count(const GradContext& c) {
  const Dims& shape = c.input_spec(0).shape;
  const uint64_t mask = Mask(c);
  int64_t n = 1;
  for (size_t i = 0; i < shape.size(); ++i) {
    if (((mask >> i) & 1u) != 0) n *= shape[i];
  }
  return n;
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

// g where x is a number: NaN is not equal to itself
HOLDFAST_GRAD(nansum, Bit(0)) {
  const Value number = Equal(c, c.input(0), c.input(0));
  c.Set(0, Where(c, number, Spread(c, c.grad()), int64_t{0}));
}

// g / (elements per result)
HOLDFAST_GRAD(mean) { c.Set(0, Spread(c, Div(c, c.grad(), Count(c)))); }

HOLDFAST_GRAD(amax, Bit(0), Bit(0)) { SpreadOverEquals(c); }
HOLDFAST_GRAD(amin, Bit(0), Bit(0)) { SpreadOverEquals(c); }

// g * (product of the others), which is the product of those before times the
// product of those after: right where factors are zero.
HOLDFAST_GRAD(prod, Bit(0)) {
  const TensorSpec& input = c.input_spec(0);
  const int64_t numel = NumElements(input.shape);
  if (input.rank() == 0) c.Set(0, c.grad());
  if (input.rank() == 0 || numel == 0) return;
  const bool all = c.attrs().None("dim");
  const int64_t dim = all ? 0 : DimAttr(c, input.rank());
  Value x = CastLike(c, c.input(0), c.grad());
  if (all) x = ViewAs(c, x, {numel});
  const auto before = [&](const Value& v) -> Value {
    if (!v) return nullptr;
    const Value running = c.Call(OpId::cumprod, {v}, {{"dim", dim}});
    return Shift(c, running, static_cast<int>(dim), /*back=*/false, 1);
  };
  const Value after = Flip(c, before(Flip(c, x, {dim})), {dim});
  const Value others = ViewAs(c, Mul(c, before(x), after), input.shape);
  const uint64_t mask = all ? ~uint64_t{0} : uint64_t{1} << dim;
  c.Set(0, Mul(c, RestoreDims(c, c.grad(), input, mask), others));
}

// g_var * 2 (x - mean) / (count - correction) + g_mean / count
HOLDFAST_GRAD(var_mean, Bit(0), Bit(1)) {
  const TensorSpec& input = c.input_spec(0);
  const double count = static_cast<double>(Count(c));
  Value total;
  if (c.grad(0)) {
    const double freedom = std::max(count - c.attrs().Float("correction"), 0.0);
    const Value centred =
        Sub(c, c.input(0), RestoreDims(c, c.output(1), input, Mask(c)));
    total = Mul(c, Mul(c, centred, 2.0 / freedom),
                RestoreDims(c, c.grad(0), input, Mask(c)));
  }
  if (c.grad(1)) {
    const Value share = Spread(c, Div(c, c.grad(1), count));
    total = total ? Add(c, total, share) : share;
  }
  c.Set(0, total);
}

// 2: g x / y. 1: g sign(x). inf: as amax of |x|. 0: nothing. Where y is 0,
// PyTorch has 0.
HOLDFAST_GRAD(vector_norm, Bit(0), Bit(0)) {
  const TensorSpec& input = c.input_spec(0);
  const uint64_t mask = Mask(c);
  const double ord = c.attrs().Float("ord");
  if (ord == 0) {
    c.Set(0, Zeros(c, input));
    return;
  }
  const Value x = c.input(0);
  const Value g = RestoreDims(c, c.grad(), input, mask);
  const Value y = RestoreDims(c, c.output(), input, mask);
  if (ord == 2) {
    const Value zero = Equal(c, y, int64_t{0});
    const Value divisor = Where(c, zero, int64_t{1}, y);
    c.Set(0, Mul(c, x, Where(c, zero, int64_t{0}, Div(c, g, divisor))));
    return;
  }
  const Value sign = Unary(c, OpId::sign, x);
  if (ord == 1 || input.rank() == 0) {
    c.Set(0, Mul(c, sign, g));
    return;
  }
  Dims dims;
  for (int i = 0; i < input.rank(); ++i) {
    if (((mask >> i) & 1u) != 0) dims.push_back(i);
  }
  const Value equal = Equal(c, Unary(c, OpId::abs, x), y);
  const Value count = CastLike(c, Sum(c, equal, dims, /*keepdim=*/true), g);
  c.Set(0, Mul(c, sign, Where(c, equal, Div(c, g, count), int64_t{0})));
}

}  // namespace holdfast
