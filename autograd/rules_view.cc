// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Gradients of views: the inverse view, or the adjoint of a partial one.
#include <algorithm>
#include <utility>

#include "autograd/rule_ops.h"
#include "ops/op_id.h"

namespace holdfast {
namespace {

// g in the input's shape
void Reshape(GradContext& c) {
  c.Set(0, ViewAs(c, c.grad(), c.input_spec(0).shape));
}

// First element of a slice along a dimension of `size`, as Python counts.
int64_t SliceStart(const AttrValue& start, int64_t size) {
  if (IsNone(start)) return 0;
  const int64_t first = AttrAsInt(start);
  return std::clamp<int64_t>(first < 0 ? first + size : first, 0, size);
}

}  // namespace

HOLDFAST_GRAD(view) { Reshape(c); }
HOLDFAST_GRAD(unsqueeze) { Reshape(c); }
HOLDFAST_GRAD(squeeze) { Reshape(c); }

// The inverse permutation of g.
HOLDFAST_GRAD(permute) {
  const Dims& dims = c.attrs().Ints("dims");
  const int rank = c.input_spec(0).rank();
  Dims inverse(rank);
  for (int i = 0; i < rank; ++i) {
    inverse[dims[i] < 0 ? dims[i] + rank : dims[i]] = i;
  }
  c.Set(0, c.Call(OpId::permute, {c.grad()}, {{"dims", std::move(inverse)}}));
}

// The same swap of g.
HOLDFAST_GRAD(transpose) {
  c.Set(0, c.Call(OpId::transpose, {c.grad()},
                  {{"dim0", c.attrs().Get("dim0")},
                   {"dim1", c.attrs().Get("dim1")}}));
}

// g summed over what was repeated
HOLDFAST_GRAD(expand) { SetBroadcast(c, 0, c.grad()); }

// Zeros with g at the slice.
HOLDFAST_GRAD(slice) {
  const TensorSpec& input = c.input_spec(0);
  const int dim = DimAttr(c, input.rank());
  const int64_t start = SliceStart(c.attrs().Get("start"), input.shape[dim]);
  c.Set(0, c.Call(OpId::slice_backward, {c.grad()},
                  {{"input_size", input.shape},
                   {"dim", int64_t{dim}},
                   {"start", start},
                   {"step", c.attrs().Get("step")}}));
}

// The slice of g.
HOLDFAST_GRAD(slice_backward) {
  const int dim = DimAttr(c, c.input_spec(0).rank());
  const int64_t start = c.attrs().Int("start");
  const int64_t step = c.attrs().Int("step");
  const int64_t count = c.input_spec(0).shape[dim];
  const int64_t end = count > 0 ? start + (count - 1) * step + 1 : start;
  c.Set(0, Slice(c, c.grad(), dim, start, end, step));
}

// Zeros with g at the index.
HOLDFAST_GRAD(select) {
  const TensorSpec& input = c.input_spec(0);
  const int dim = DimAttr(c, input.rank());
  const int64_t index = c.attrs().Int("index");
  c.Set(0, c.Call(OpId::select_backward, {c.grad()},
                  {{"input_size", input.shape},
                   {"dim", int64_t{dim}},
                   {"index", index < 0 ? index + input.shape[dim] : index}}));
}

// The selected part of g.
HOLDFAST_GRAD(select_backward) {
  c.Set(0, c.Call(OpId::select, {c.grad()},
                  {{"dim", c.attrs().Get("dim")},
                   {"index", c.attrs().Get("index")}}));
}

}  // namespace holdfast
