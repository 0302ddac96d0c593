// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Gradients of views: the inverse view, or the adjoint of a partial one.
#include <algorithm>
#include <utility>
#include <vector>

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

// Elements of a flat storage that a view spans, from `low` on.
int64_t EndOf(ShapeSpan shape, ShapeSpan strides, int64_t offset, int64_t low) {
  int64_t last = offset - low;
  for (size_t d = 0; d < shape.size(); ++d) last += (shape[d] - 1) * strides[d];
  return last + 1;
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
  c.SetPart(0, OpId::slice_backward,
            {{"input_size", input.shape},
             {"dim", int64_t{dim}},
             {"start", start},
             {"step", c.attrs().Get("step")}});
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
  c.SetPart(0, OpId::select_backward,
            {{"input_size", input.shape},
             {"dim", int64_t{dim}},
             {"index", index < 0 ? index + input.shape[dim] : index}});
}

// The selected part of g.
HOLDFAST_GRAD(select_backward) {
  c.Set(0, c.Call(OpId::select, {c.grad()},
                  {{"dim", c.attrs().Get("dim")},
                   {"index", c.attrs().Get("index")}}));
}

// The storage's gradient, where several elements of g may meet in one place,
// seen as the input lies in it.
HOLDFAST_GRAD(as_strided) {
  const TensorSpec& input = c.input_spec(0);
  const Value& g = c.grad();
  if (input.numel() == 0 || g->spec().numel() == 0) {
    return c.Set(0, Zeros(c, input));
  }
  const Dims& shape = g->spec().shape;
  const Dims& strides = c.attrs().Ints("stride");
  const int64_t offset = c.attrs().None("storage_offset")
                             ? input.offset
                             : c.attrs().Int("storage_offset");
  TensorSpec view = ContiguousSpec(input.dtype, shape);
  view.strides = strides;
  if (input.contiguous() && offset >= input.offset && !MayOverlap(view)) {
    return c.Set(0, c.Call(OpId::as_strided_scatter, {Zeros(c, input), g},
                           {{"size", shape},
                            {"stride", strides},
                            {"storage_offset", offset - input.offset}}));
  }
  const int64_t low = std::min(offset, input.offset);
  const int64_t size =
      std::max(EndOf(shape, strides, offset, low),
               EndOf(input.shape, input.strides, input.offset, low));
  const Value places =
      c.Call(OpId::arange, {},
             {{"start", int64_t{0}}, {"end", size}, {"dtype", DType::kInt64}});
  const auto seen_as = [&](const Value& x, const Dims& sizes, const Dims& steps,
                           int64_t first) {
    return c.Call(
        OpId::as_strided, {x},
        {{"size", sizes}, {"stride", steps}, {"storage_offset", first - low}});
  };
  const auto add_at = [&](const Value& at, const Value& x) {
    if (!at || !x) return Value();
    const TensorSpec flat = ContiguousSpec(input.dtype, {size});
    const Dims all{at->spec().numel()};
    return c.Call(OpId::index_add,
                  {Zeros(c, flat), ViewAs(c, at, all), ViewAs(c, x, all)},
                  {{"dim", int64_t{0}}});
  };
  Value storage = add_at(seen_as(places, shape, strides, offset), g);
  if (MayOverlap(input)) {
    // Elements of the input that share a place share its gradient.
    const Value ones = Add(c, Zeros(c, input), 1.0);
    const Value count =
        add_at(seen_as(places, input.shape, input.strides, input.offset), ones);
    storage =
        Div(c, storage, Where(c, Equal(c, count, int64_t{0}), 1.0, count));
  }
  c.Set(0, seen_as(storage, input.shape, input.strides, input.offset));
}

// g with zeros where src was written; what g has there.
HOLDFAST_GRAD(as_strided_scatter) {
  const Attrs& a = c.attrs();
  const int64_t offset = a.None("storage_offset") ? 0 : a.Int("storage_offset");
  const Value g = c.grad()->spec().contiguous()
                      ? c.grad()
                      : c.Call(OpId::clone, {c.grad()});
  if (!g) return;
  if (c.needs(0)) {
    const TensorSpec part = ContiguousSpec(g->spec().dtype, a.Ints("size"));
    c.Set(0, c.Call(OpId::as_strided_scatter, {g, Zeros(c, part)},
                    {{"size", a.Get("size")},
                     {"stride", a.Get("stride")},
                     {"storage_offset", offset}}));
  }
  if (c.needs(1)) {
    c.Set(1, c.Call(OpId::as_strided, {g},
                    {{"size", a.Get("size")},
                     {"stride", a.Get("stride")},
                     {"storage_offset", g->spec().offset + offset}}));
  }
}

}  // namespace holdfast
