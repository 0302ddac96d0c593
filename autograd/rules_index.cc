// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Gradients of joining and indexing. Reading at indices and adding at
// indices are each other's adjoint.
#include <utility>

#include "autograd/rule_ops.h"
#include "ops/op_id.h"

namespace holdfast {
namespace {

// g[index], grown to the source's shape where the index is smaller: what lies
// outside was never read.
void SetSource(GradContext& c, int source) {
  const TensorSpec& spec = c.input_spec(source);
  const Value part = c.Call(OpId::gather, {c.grad(), c.input(1)},
                            {{"dim", c.attrs().Get("dim")}});
  if (!part) return;
  // Ranks 0 and 1 stand for each other.
  const bool same_rank = part->spec().rank() == spec.rank();
  c.Set(source,
        same_rank ? PadTo(c, part, spec.shape) : ViewAs(c, part, spec.shape));
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
