// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Gradients of pooling. Max pooling reads at the indices it found; its adjoint
// adds there. Average pooling is linear.
#include "autograd/rule_ops.h"
#include "ops/op_id.h"

namespace holdfast {
namespace {

// g added into zeros of the shape of input 0, at `indices`
Value ScatterPlanes(GradContext& c, const Value& indices) {
  return c.Call(OpId::max_pool2d_backward, {c.grad(), indices},
                {{"input_size", c.input_spec(0).shape}});
}

// The stride, which is the kernel size by default.
AttrValue Stride(const Attrs& attrs) {
  return attrs.None("stride") ? attrs.Get("kernel_size") : attrs.Get("stride");
}

}  // namespace

HOLDFAST_GRAD(max_pool2d, 0, Bit(1)) {
  if (c.grad()) c.Set(0, ScatterPlanes(c, c.output(1)));
}

HOLDFAST_GRAD(adaptive_max_pool2d, 0, Bit(1)) {
  if (c.grad()) c.Set(0, ScatterPlanes(c, c.output(1)));
}

HOLDFAST_GRAD(max_pool2d_gather, Bit(1)) {
  c.Set(0, ScatterPlanes(c, c.input(1)));
}

HOLDFAST_GRAD(max_pool2d_backward, Bit(1)) {
  c.Set(0, c.Call(OpId::max_pool2d_gather, {c.grad(), c.input(1)}));
}

HOLDFAST_GRAD(avg_pool2d) {
  const Attrs& a = c.attrs();
  c.Set(0, c.Call(OpId::avg_pool2d_backward, {c.grad()},
                  {{"input_size", c.input_spec(0).shape},
                   {"kernel_size", a.Get("kernel_size")},
                   {"stride", Stride(a)},
                   {"padding", a.Get("padding")},
                   {"ceil_mode", a.Get("ceil_mode")},
                   {"count_include_pad", a.Get("count_include_pad")},
                   {"divisor_override", a.Get("divisor_override")}}));
}

HOLDFAST_GRAD(avg_pool2d_backward) {
  const Attrs& a = c.attrs();
  c.Set(0, c.Call(OpId::avg_pool2d, {c.grad()},
                  {{"kernel_size", a.Get("kernel_size")},
                   {"stride", a.Get("stride")},
                   {"padding", a.Get("padding")},
                   {"ceil_mode", a.Get("ceil_mode")},
                   {"count_include_pad", a.Get("count_include_pad")},
                   {"divisor_override", a.Get("divisor_override")}}));
}

}  // namespace holdfast
