// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Gradients of scans: scans in the other direction. linear_scan is the one
// that expresses the others' without dividing by anything that may be zero.
#include <utility>

#include "autograd/rule_ops.h"
#include "ops/op_id.h"

namespace holdfast {
namespace {

// y[i] = input[i] + factor[i] * y[i -+ 1]
Value LinearScan(GradContext& c, const Value& input, const Value& factor,
                 int64_t dim, bool reverse) {
  if (!input || !factor) return nullptr;
  return c.Call(OpId::linear_scan, {input, factor},
                {{"dim", dim}, {"reverse", reverse}});
}

bool IsEmpty(const GradContext& c) {
  return NumElements(c.input_spec(0).shape) == 0;
}

// g added into zeros at the indices that were found
void AddAtIndices(GradContext& c) {
  if (!c.grad()) return;
  if (c.input_spec(0).rank() == 0) {
    c.Set(0, c.grad());
    return;
  }
  c.Set(0, c.Call(OpId::scatter_add,
                  {Zeros(c, c.input_spec(0)), c.output(1), c.grad()},
                  {{"dim", c.attrs().Get("dim")}}));
}

}  // namespace

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

// The sum over i >= k of g[i] * (product of x[j], j <= i, without x[k]):
// y[k - 1] * s[k], where s[k] = g[k] + x[k + 1] * s[k + 1]
HOLDFAST_GRAD(cumprod, Bit(0), Bit(0)) {
  const TensorSpec& input = c.input_spec(0);
  if (input.rank() == 0 || IsEmpty(c)) {
    c.Set(0, c.grad());
    return;
  }
  const int64_t dim = DimAttr(c, input.rank());
  const Value x = CastLike(c, c.input(0), c.grad());
  const Value s = LinearScan(c, c.grad(), Shift(c, x, dim, /*back=*/true, 0),
                             dim, /*reverse=*/true);
  c.Set(0, Mul(c, Shift(c, c.output(), dim, /*back=*/false, 1), s));
}

HOLDFAST_GRAD(cummax, 0, Bit(1)) { AddAtIndices(c); }
HOLDFAST_GRAD(cummin, 0, Bit(1)) { AddAtIndices(c); }

// The sum over i >= k of g[i] * exp(x[k] - y[i]): exp(x[k] - y[k]) * t[k],
// where t[k] = g[k] + exp(y[k] - y[k + 1]) * t[k + 1]; y never falls, so that
// nothing overflows.
HOLDFAST_GRAD(logcumsumexp, Bit(0), Bit(0)) {
  const TensorSpec& input = c.input_spec(0);
  if (input.rank() == 0 || IsEmpty(c)) {
    c.Set(0, c.grad());
    return;
  }
  const int64_t dim = DimAttr(c, input.rank());
  const Value y = c.output();
  const Value next = Shift(c, y, dim, /*back=*/true, 0);
  // Not below: two equal infinities, or the end.
  const Value fall =
      Where(c, Binary(c, OpId::ge, y, next), int64_t{0}, Sub(c, y, next));
  const Value t = LinearScan(c, c.grad(), Unary(c, OpId::exp, fall), dim,
                             /*reverse=*/true);
  const Value x = c.input(0);
  const Value share = Where(c, Equal(c, x, y), int64_t{0}, Sub(c, x, y));
  c.Set(0, Mul(c, Unary(c, OpId::exp, share), t));
}

// s[i] = g[i] + a[i + 1] * s[i + 1] for the input; y[i - 1] * s[i] for the
// factor; from the other end with `reverse`.
HOLDFAST_GRAD(linear_scan, Bit(1), Bit(0)) {
  const int rank = c.grad()->spec().rank();
  if (rank == 0 || c.grad()->spec().numel() == 0) {
    if (c.needs(0)) c.Set(0, c.grad());
    return;
  }
  const int64_t dim = DimAttr(c, rank);
  const bool reverse = c.attrs().Bool("reverse");
  const Value s = LinearScan(
      c, c.grad(), Shift(c, c.input(1), dim, !reverse, 0), dim, !reverse);
  if (c.needs(0)) c.Set(0, s);
  if (c.needs(1)) {
    c.Set(1, Mul(c, Shift(c, c.output(), dim, reverse, 0), s));
  }
}

}  // namespace holdfast
