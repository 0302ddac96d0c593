// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Gradients of convolution. conv2d(x, w) is linear in both, and so are its two
// backward ops: the three are each other's gradients. So are conv3d's.
#include "autograd/rule_ops.h"
#include "ops/op_id.h"

namespace holdfast {
namespace {

bool IsConv3d(const Attrs& attrs) {
  switch (attrs.schema().id) {
    case OpId::conv3d:
    case OpId::conv3d_backward_input:
    case OpId::conv3d_backward_weight:
      return true;
    default:
      return false;
  }
}

// conv2d(x, w) or conv3d(x, w) with this node's geometry.
Value Conv(GradContext& c, const Value& x, const Value& w) {
  if (!x || !w) return nullptr;
  const Attrs& a = c.attrs();
  return c.Call(IsConv3d(a) ? OpId::conv3d : OpId::conv2d, {x, w, nullptr},
                {{"stride", a.Get("stride")},
                 {"padding", a.Get("padding")},
                 {"dilation", a.Get("dilation")},
                 {"groups", a.Get("groups")}});
}

// A backward op with this node's geometry; `size_name` names the attribute
// with the shape of the result.
Value ConvBackward(GradContext& c, OpId op, const Value& g, const Value& other,
                   absl::string_view size_name, const TensorSpec& result) {
  if (!g || !other) return nullptr;
  const Attrs& a = c.attrs();
  return c.Call(op, {g, other},
                {{size_name, result.shape},
                 {"stride", a.Get("stride")},
                 {"padding", a.Get("padding")},
                 {"dilation", a.Get("dilation")},
                 {"groups", a.Get("groups")}});
}

Value ConvInput(GradContext& c, const Value& g, const Value& w,
                const TensorSpec& x) {
  return ConvBackward(c,
                      IsConv3d(c.attrs()) ? OpId::conv3d_backward_input
                                          : OpId::conv2d_backward_input,
                      g, w, "input_size", x);
}

Value ConvWeight(GradContext& c, const Value& g, const Value& x,
                 const TensorSpec& w) {
  return ConvBackward(c,
                      IsConv3d(c.attrs()) ? OpId::conv3d_backward_weight
                                          : OpId::conv2d_backward_weight,
                      g, x, "weight_size", w);
}

constexpr GradRule Both(void (*apply)(GradContext& c)) {
  return {apply, Bit(0) | Bit(1), 0, Bit(0) | Bit(1)};
}

// x [N,C,...], w [O,C/groups,...], b [O], g [N,O,...]; N may be missing.
void ApplyConv(GradContext& c) {
  const Value& g = c.grad();
  if (c.needs(0)) {
    c.Set(0, ConvInput(c, g, c.input(1), c.input_spec(0)));
  }
  if (c.needs(1)) {
    c.Set(1, ConvWeight(c, g, c.input(0), c.input_spec(1)));
  }
  if (!c.needs(2)) return;
  const int rank = g->spec().rank();
  const int channels = rank - 1 - (IsConv3d(c.attrs()) ? 3 : 2);
  Dims others;
  for (int dim = 0; dim < rank; ++dim) {
    if (dim != channels) others.push_back(dim);
  }
  c.Set(2, Sum(c, g, others, /*keepdim=*/false));
}

// y = input gradient of (grad, w); g has the shape of x.
void ApplyInput(GradContext& c) {
  if (c.needs(0)) c.Set(0, Conv(c, c.grad(), c.input(1)));
  if (c.needs(1)) {
    c.Set(1, ConvWeight(c, c.input(0), c.grad(), c.input_spec(1)));
  }
}

// y = weight gradient of (grad, x); g has the shape of w.
void ApplyWeight(GradContext& c) {
  if (c.needs(0)) c.Set(0, Conv(c, c.input(1), c.grad()));
  if (c.needs(1)) {
    c.Set(1, ConvInput(c, c.input(0), c.grad(), c.input_spec(1)));
  }
}

}  // namespace

const GradRule Grad_conv2d = Both(&ApplyConv);
const GradRule Grad_conv3d = Both(&ApplyConv);
const GradRule Grad_conv2d_backward_input = Both(&ApplyInput);
const GradRule Grad_conv3d_backward_input = Both(&ApplyInput);
const GradRule Grad_conv2d_backward_weight = Both(&ApplyWeight);
const GradRule Grad_conv3d_backward_weight = Both(&ApplyWeight);

}  // namespace holdfast
