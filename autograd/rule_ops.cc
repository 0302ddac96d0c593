// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "autograd/rule_ops.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"

namespace holdfast {
namespace {

bool Same(const Dims& a, ShapeSpan b) { return absl::MakeConstSpan(a) == b; }

Dims ToDims(ShapeSpan shape) { return Dims(shape.begin(), shape.end()); }

}  // namespace

Value Unary(GradContext& c, OpId op, const Value& a) {
  if (!a) return nullptr;
  return c.Emit(Attrs(&GetOp(op)), absl::MakeConstSpan(&a, 1));
}

Value Binary(GradContext& c, OpId op, const Operand& a, const Operand& b) {
  if (!a.is_number() && !a.tensor) return nullptr;
  if (!b.is_number() && !b.tensor) return nullptr;
  Attrs attrs(&GetOp(op));
  // An operand's attribute slot equals its tensor slot in these rows.
  if (a.is_number()) attrs.Set(0, a.number);
  if (b.is_number()) attrs.Set(1, b.number);
  const Value inputs[] = {a.tensor, b.tensor};
  return c.Emit(attrs, inputs);
}

Value Where(GradContext& c, const Value& condition, const Operand& a,
            const Operand& b) {
  if (!condition) return nullptr;
  if (!a.is_number() && !a.tensor) return nullptr;
  if (!b.is_number() && !b.tensor) return nullptr;
  Attrs attrs(&GetOp(OpId::where));
  if (a.is_number()) attrs.Set(0, a.number);
  if (b.is_number()) attrs.Set(1, b.number);
  const Value inputs[] = {condition, a.tensor, b.tensor};
  return c.Emit(attrs, inputs);
}

Value CastLike(GradContext& c, const Value& a, const Value& like) {
  if (!a || !like || a->spec().dtype == like->spec().dtype) return a;
  return c.Call(OpId::to, {a}, {{"dtype", like->spec().dtype}});
}

Value Slope(GradContext& c, Value grad, const Value& x, const std::string& op,
            const AttrValue& a, const AttrValue& b, const AttrValue& k) {
  if (!grad || !x) return nullptr;
  return c.CallOver(OpId::activation_backward, {std::move(grad), x},
                    {{"op", op}, {"a", a}, {"b", b}, {"c", k}});
}

Value ViewAs(GradContext& c, const Value& a, ShapeSpan shape) {
  if (!a || Same(a->spec().shape, shape)) return a;
  Dims strides;
  const bool viewable = ViewStrides(a->spec(), shape, &strides);
  return c.Call(OpId::view, {viewable ? a : Unary(c, OpId::clone, a)},
                {{"size", ToDims(shape)}});
}

Value Expand(GradContext& c, const Value& a, ShapeSpan shape) {
  if (!a || Same(a->spec().shape, shape)) return a;
  return c.Call(OpId::expand, {a}, {{"size", ToDims(shape)}});
}

Value Transpose(GradContext& c, const Value& a, int dim0, int dim1) {
  if (!a) return nullptr;
  return c.Call(OpId::transpose, {a},
                {{"dim0", int64_t{dim0}}, {"dim1", int64_t{dim1}}});
}

Value MatrixTranspose(GradContext& c, const Value& a) {
  if (!a) return nullptr;
  return Transpose(c, a, a->spec().rank() - 2, a->spec().rank() - 1);
}

Value Flip(GradContext& c, const Value& a, const Dims& dims) {
  if (!a) return nullptr;
  return c.Call(OpId::flip, {a}, {{"dims", dims}});
}

Value Slice(GradContext& c, const Value& a, int dim, int64_t start, int64_t end,
            int64_t step) {
  if (!a) return nullptr;
  return c.Call(
      OpId::slice, {a},
      {{"dim", int64_t{dim}}, {"start", start}, {"end", end}, {"step", step}});
}

Value PadTo(GradContext& c, const Value& a, ShapeSpan shape) {
  if (!a || Same(a->spec().shape, shape)) return a;
  // Ranks 0 and 1 stand for each other.
  if (a->spec().rank() == 0) return PadTo(c, ViewAs(c, a, {1}), shape);
  if (shape.empty() && a->spec().rank() == 1) {
    return ViewAs(c, PadTo(c, a, {1}), shape);
  }
  if (a->spec().rank() != static_cast<int>(shape.size())) {
    c.Fail(absl::InternalError(absl::StrCat("cannot pad ", a->spec().ToString(),
                                            " to ", ShapeString(shape))));
    return nullptr;
  }
  Dims pad;
  for (int i = a->spec().rank() - 1; i >= 0; --i) {
    pad.push_back(0);
    pad.push_back(shape[i] - a->spec().shape[i]);
  }
  return c.Call(OpId::constant_pad, {a}, {{"pad", std::move(pad)}});
}

Value Zeros(GradContext& c, const TensorSpec& like) {
  return c.Call(OpId::full, {},
                {{"size", like.shape},
                 {"fill_value", int64_t{0}},
                 {"dtype", like.dtype}});
}

Value Shift(GradContext& c, const Value& a, int dim, bool back, int64_t fill) {
  if (!a) return nullptr;
  // Pairs from the last dimension on; -1 crops.
  Dims pad(2 * (a->spec().rank() - dim), 0);
  pad[pad.size() - 2] = back ? -1 : 1;
  pad[pad.size() - 1] = back ? 1 : -1;
  return c.Call(OpId::constant_pad, {a},
                {{"pad", std::move(pad)}, {"value", fill}});
}

Value Sum(GradContext& c, const Value& a, const Dims& dims, bool keepdim) {
  if (!a) return nullptr;
  return c.Call(OpId::sum, {a}, {{"dim", dims}, {"keepdim", keepdim}});
}

Value SumTo(GradContext& c, const Value& a, ShapeSpan shape) {
  if (!a || Same(a->spec().shape, shape)) return a;
  const Dims& from = a->spec().shape;
  const int lead = static_cast<int>(from.size() - shape.size());
  Dims dims;
  bool inner = false;  // a dimension that stays is summed
  for (int i = 0; i < static_cast<int>(from.size()); ++i) {
    if (from[i] == 1) continue;
    if (i >= lead && shape[i - lead] != 1) continue;
    dims.push_back(i);
    inner |= i >= lead;
  }
  if (dims.empty()) return ViewAs(c, a, shape);
  return ViewAs(c, Sum(c, a, dims, /*keepdim=*/inner), shape);
}

Value RestoreDims(GradContext& c, const Value& a, const TensorSpec& input,
                  uint64_t mask) {
  if (!a || a->spec().rank() == input.rank()) return a;
  Dims shape = input.shape;
  for (int i = 0; i < input.rank(); ++i) {
    if (((mask >> i) & 1u) != 0) shape[i] = 1;
  }
  return ViewAs(c, a, shape);
}

Value MatMul(GradContext& c, const Value& a, const Value& b) {
  if (!a || !b) return nullptr;
  const Value inputs[] = {a, b};
  return c.Emit(Attrs(&GetOp(OpId::matmul)), inputs);
}

void SetBroadcast(GradContext& c, int i, const Value& grad) {
  c.Set(i, SumTo(c, grad, c.input_spec(i).shape));
}

int DimAttr(const GradContext& c, int rank) {
  const int64_t dim = c.attrs().Int("dim");
  // Inference checked the range; a rank-0 tensor counts as one of rank 1.
  return static_cast<int>(dim < 0 ? dim + (rank > 0 ? rank : 1) : dim);
}

}  // namespace holdfast
