// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Gradients of joining and indexing. Reading at indices and adding at
// indices are each other's adjoint.
#include <string>
#include <utility>

#include "autograd/rule_ops.h"
#include "ops/op_id.h"

namespace holdfast {
namespace {

// Writes nothing, and need not fit the other operands.
bool IsEmptyIndex(const Value& index) { return index->spec().numel() == 0; }

// g[index], grown to the source's shape where the index is smaller: what lies
// outside was never read.
void SetSource(GradContext& c, int source) {
  const TensorSpec& spec = c.input_spec(source);
  if (IsEmptyIndex(c.input(1))) return c.Set(source, Zeros(c, spec));
  const Value part = c.Call(OpId::gather, {c.grad(), c.input(1)},
                            {{"dim", c.attrs().Get("dim")}});
  c.Set(source, PadTo(c, part, spec.shape));
}

// The triangle of g.
void SameTriangle(GradContext& c, OpId op) {
  c.Set(0, c.Call(op, {c.grad()}, {{"diagonal", c.attrs().Get("diagonal")}}));
}

}  // namespace

// The part of g that came from each input.
HOLDFAST_GRAD(cat, 0, 0, 0, /*all_specs=*/true) {
  const int rank = c.grad()->spec().rank();
  const int dim = DimAttr(c, rank);
  int64_t start = 0;
  for (int i = 0; i < c.num_inputs(); ++i) {
    const TensorSpec& input = c.input_spec(i);
    // An empty 1-D tensor may stand among tensors of any rank.
    if (input.rank() != rank) continue;
    const int64_t end = start + input.shape[dim];
    if (c.needs(i)) c.Set(i, Slice(c, c.grad(), dim, start, end));
    start = end;
  }
}

// g added into zeros at the index
HOLDFAST_GRAD(gather, Bit(1)) {
  c.Set(0, c.Call(OpId::scatter_add,
                  {Zeros(c, c.input_spec(0)), c.input(1), c.grad()},
                  {{"dim", c.attrs().Get("dim")}}));
}

// g with zeros at the index, g[index]
HOLDFAST_GRAD(scatter, Bit(1)) {
  if (c.needs(0)) {
    c.Set(0, c.Call(OpId::scatter, {c.grad(), c.input(1), nullptr},
                    {{"dim", c.attrs().Get("dim")}, {"src", int64_t{0}}}));
  }
  if (c.needs(2)) SetSource(c, 2);
}

// g, g[index]
HOLDFAST_GRAD(scatter_add, Bit(1)) {
  if (c.needs(0)) c.Set(0, c.grad());
  if (c.needs(2)) SetSource(c, 2);
}

// sum and mean: shares of g. Extrema: g shared by the elements that are equal
// to the result. prod: g times the product of the others.
HOLDFAST_GRAD(scatter_reduce, Bit(0) | Bit(1) | Bit(2), Bit(0)) {
  const std::string& reduce = c.attrs().Str("reduce");
  const bool include_self = c.attrs().Bool("include_self");
  const AttrValue dim = c.attrs().Get("dim");
  const Value index = c.input(1), self = c.input(0);
  if (!index || !self) return;
  if (IsEmptyIndex(index)) {
    if (c.needs(0)) c.Set(0, c.grad());
    if (c.needs(2)) c.Set(2, Zeros(c, c.input_spec(2)));
    return;
  }
  const auto at_index = [&](const Value& x) {
    return c.Call(OpId::gather, {x, index}, {{"dim", dim}});
  };
  const auto sum_at_index = [&](const Value& to, const Value& x) {
    return c.Call(OpId::scatter_add, {to, index, x}, {{"dim", dim}});
  };
  const auto zero_at_index = [&](const Value& x) {
    return c.Call(OpId::scatter, {x, index, nullptr},
                  {{"dim", dim}, {"src", int64_t{0}}});
  };
  const auto reduced = [&](const Value& to, const Value& x) {
    return c.Call(
        OpId::scatter_reduce, {to, index, x},
        {{"dim", dim}, {"reduce", reduce}, {"include_self", include_self}});
  };
  const auto not_zero = [&](const Value& x) {
    return Where(c, Equal(c, x, int64_t{0}), 1.0, x);
  };
  // The part of the source that the index reaches.
  Value src = c.input(2);
  Dims used = index->spec().shape;
  if (used.empty()) used.push_back(1);
  for (int d = 0; src && d < static_cast<int>(used.size()); ++d) {
    if (src->spec().rank() == 0 || src->spec().shape[d] == used[d]) continue;
    src = Slice(c, src, d, 0, used[d]);
  }
  if (!src) return;
  const Value& g = c.grad();
  Value grad_self, grad_src;
  if (reduce == "sum") {
    grad_self = g;
    grad_src = at_index(g);
  } else if (reduce == "mean") {
    TensorSpec ones = src->spec();
    const Value one = Add(c, Zeros(c, ones), 1.0);
    Value count = Zeros(c, self->spec());
    if (include_self) count = Add(c, count, 1.0);
    grad_self = Div(c, g, not_zero(sum_at_index(count, one)));
    grad_src = at_index(grad_self);
  } else if (reduce == "prod") {
    const Value self_zero = Equal(c, self, int64_t{0});
    const Value other_self = Where(c, self_zero, 1.0, self);
    grad_self = Div(c, Mul(c, g, reduced(other_self, src)), other_self);
    // A zero's gradient is the product of the others; with two, it is 0.
    const Value zero = Equal(c, src, int64_t{0});
    const Value zeros =
        at_index(sum_at_index(Zeros(c, self->spec()), CastLike(c, zero, src)));
    const Value only = And(c, zero, Equal(c, zeros, int64_t{1}));
    const Value others = reduced(self, Where(c, only, 1.0, src));
    grad_src = Where(
        c, only, at_index(Mul(c, g, others)),
        Div(c, at_index(Mul(c, g, c.output())), Where(c, zero, 1.0, src)));
  } else {
    const Value result = c.output();
    Value from_self = CastLike(c, Equal(c, self, result), self);
    if (!include_self) from_self = zero_at_index(from_self);
    const Value from_src = CastLike(c, Equal(c, src, at_index(result)), src);
    const Value share = Div(c, g, not_zero(sum_at_index(from_self, from_src)));
    grad_self = include_self ? Mul(c, from_self, share) : g;
    grad_src = Mul(c, from_src, at_index(share));
  }
  if (c.needs(0)) {
    c.Set(0, include_self || !grad_self ? grad_self : zero_at_index(grad_self));
  }
  if (c.needs(2) && grad_src) {
    const Dims& shape = c.input_spec(2).shape;
    c.Set(2, PadTo(c, grad_src, shape));
  }
}

// g's rows added into zeros at the index
HOLDFAST_GRAD(index_select, Bit(1)) {
  c.Set(0, c.Call(OpId::index_add,
                  {Zeros(c, c.input_spec(0)), c.input(1), c.grad()},
                  {{"dim", c.attrs().Get("dim")}}));
}

// g, g's rows at the index
HOLDFAST_GRAD(index_add, Bit(1)) {
  if (c.needs(0)) c.Set(0, c.grad());
  if (c.needs(2)) {
    c.Set(2, c.Call(OpId::index_select, {c.grad(), c.input(1)},
                    {{"dim", c.attrs().Get("dim")}}));
  }
}

// The same flip of g.
HOLDFAST_GRAD(flip) { c.Set(0, Flip(c, c.grad(), c.attrs().Ints("dims"))); }

HOLDFAST_GRAD(tril) { SameTriangle(c, OpId::tril); }
HOLDFAST_GRAD(triu) { SameTriangle(c, OpId::triu); }

// g cropped by the padding (where that was negative: padded with zeros)
HOLDFAST_GRAD(constant_pad) {
  Dims pad = c.attrs().Ints("pad");
  for (int64_t& count : pad) count = -count;
  c.Set(0, c.Call(OpId::constant_pad, {c.grad()}, {{"pad", std::move(pad)}}));
}

}  // namespace holdfast
