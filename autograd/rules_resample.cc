// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Gradients of resampling. resample2d is linear. The sum <grad, out> of
// weighted_gather is linear in input, weight and grad: its three ops are each
// other's gradients.
#include "autograd/rule_ops.h"
#include "ops/op_id.h"

namespace holdfast {
namespace {

// The adjoint of this node, from the planes of g to those of input 0.
void Resample(GradContext& c, OpId op, absl::string_view size_name) {
  const Attrs& a = c.attrs();
  const Dims& shape = c.input_spec(0).shape;
  c.Set(0, c.Call(op, {c.grad()},
                  {{size_name, Dims(shape.end() - 2, shape.end())},
                   {"mode", a.Get("mode")},
                   {"align_corners", a.Get("align_corners")},
                   {"scale_h", a.Get("scale_h")},
                   {"scale_w", a.Get("scale_w")}}));
}

// out = gather(x, w), x = scatter(g, w), w = dots(g, x); i: the index.
Value Gather(GradContext& c, const Value& x, const Value& i, const Value& w) {
  if (!x || !w) return nullptr;
  return c.Call(OpId::weighted_gather, {x, i, w});
}
Value Scatter(GradContext& c, const Value& g, const Value& i, const Value& w,
              int64_t size) {
  if (!g || !w) return nullptr;
  return c.Call(OpId::weighted_gather_backward_input, {g, i, w},
                {{"size", size}});
}
Value Dots(GradContext& c, const Value& g, const Value& i, const Value& x) {
  if (!g || !x) return nullptr;
  return c.Call(OpId::weighted_gather_backward_weight, {g, i, x});
}

}  // namespace

HOLDFAST_GRAD(resample2d) {
  Resample(c, OpId::resample2d_backward, "input_size");
}

HOLDFAST_GRAD(resample2d_backward) {
  Resample(c, OpId::resample2d, "output_size");
}

// (x, i, w)
HOLDFAST_GRAD(weighted_gather, Bit(0) | Bit(1) | Bit(2), 0, Bit(0) | Bit(2)) {
  const Value& g = c.grad();
  if (c.needs(0)) {
    c.Set(0, Scatter(c, g, c.input(1), c.input(2), c.input_spec(0).shape[2]));
  }
  if (c.needs(2)) c.Set(2, Dots(c, g, c.input(1), c.input(0)));
}

// (g, i, w); c.grad() has the shape of x.
HOLDFAST_GRAD(weighted_gather_backward_input, Bit(0) | Bit(1) | Bit(2), 0,
              Bit(0) | Bit(2)) {
  const Value& x = c.grad();
  if (c.needs(0)) c.Set(0, Gather(c, x, c.input(1), c.input(2)));
  if (c.needs(2)) c.Set(2, Dots(c, c.input(0), c.input(1), x));
}

// (g, i, x); c.grad() has the shape of w.
HOLDFAST_GRAD(weighted_gather_backward_weight, Bit(0) | Bit(1) | Bit(2), 0,
              Bit(0) | Bit(2)) {
  const Value& w = c.grad();
  if (c.needs(0)) c.Set(0, Gather(c, c.input(2), c.input(1), w));
  if (c.needs(2)) {
    c.Set(2, Scatter(c, c.input(0), c.input(1), w, c.input_spec(2).shape[2]));
  }
}

}  // namespace holdfast
