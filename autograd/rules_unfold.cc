// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Gradients of im2col and col2im, each other's adjoints.
#include "autograd/rule_ops.h"
#include "ops/op_id.h"

namespace holdfast {

HOLDFAST_GRAD(im2col) {
  const Attrs& a = c.attrs();
  const Dims& image = c.input_spec(0).shape;
  c.Set(0, c.Call(OpId::col2im, {c.grad()},
                  {{"output_size", Dims{image[2], image[3]}},
                   {"kernel_size", a.Get("kernel_size")},
                   {"dilation", a.Get("dilation")},
                   {"padding", a.Get("padding")},
                   {"stride", a.Get("stride")}}));
}

HOLDFAST_GRAD(col2im) {
  const Attrs& a = c.attrs();
  c.Set(0, c.Call(OpId::im2col, {c.grad()},
                  {{"kernel_size", a.Get("kernel_size")},
                   {"dilation", a.Get("dilation")},
                   {"padding", a.Get("padding")},
                   {"stride", a.Get("stride")}}));
}

}  // namespace holdfast
