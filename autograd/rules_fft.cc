// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Gradients of Fourier transforms. F is symmetric, and complex gradients come
// conjugated (GradContext::grad), so that F's adjoint reads as F itself.
#include "autograd/rule_ops.h"
#include "ops/op_id.h"

namespace holdfast {
namespace {

// Along the dimension that a real transform halves, of `size` points: `edge`
// for the elements that stand for themselves (the first, and the last of an
// even size), `inside` for those that stand for their conjugates as well.
Value Weights(GradContext& c, const Value& like, int64_t size, double edge,
              double inside) {
  const Dims& dims = c.attrs().Ints("dim");
  const int rank = like->spec().rank();
  const int d =
      static_cast<int>(dims.back() < 0 ? dims.back() + rank : dims.back());
  const DType real = RealType(like->spec().dtype);
  const auto run = [&](int64_t count, double value) {
    Dims shape(rank, 1);
    shape[d] = count;
    return c.Call(OpId::full, {},
                  {{"size", shape}, {"fill_value", value}, {"dtype", real}});
  };
  const int64_t half = size / 2 + 1;
  const bool even = size % 2 == 0;
  const Value first = run(1, edge), middle = run(half - 1 - even, inside);
  if (!first || !middle) return nullptr;
  const NamedAttr dim = {"dim", int64_t{d}};
  if (!even) return c.Call(OpId::cat, {first, middle}, {dim});
  const Value last = run(1, edge);
  if (!last) return nullptr;
  return c.Call(OpId::cat, {first, middle, last}, {dim});
}

int64_t LastSize(const GradContext& c, const Dims& shape) {
  const int64_t d = c.attrs().Ints("dim").back();
  return shape[d < 0 ? d + static_cast<int64_t>(shape.size()) : d];
}

}  // namespace

// F g
HOLDFAST_GRAD(fft_c2c) {
  c.Set(0, c.Call(OpId::fft_c2c, {c.grad()},
                  {{"dim", c.attrs().Get("dim")},
                   {"scale", c.attrs().Get("scale")},
                   {"forward", c.attrs().Get("forward")}}));
}

// The real part of F's adjoint of g with zeros for the half that is not there:
// the inverse real transform, which would count the inner elements twice.
HOLDFAST_GRAD(fft_r2c) {
  const int64_t size = LastSize(c, c.input_spec(0).shape);
  const Value g = Unary(c, OpId::conj, c.grad());
  if (!g) return;
  const Value weighted = Mul(c, g, Weights(c, g, size, 1.0, 0.5));
  if (!weighted) return;
  c.Set(0, c.Call(OpId::fft_c2r, {weighted},
                  {{"dim", c.attrs().Get("dim")},
                   {"scale", c.attrs().Get("scale")},
                   {"last_size", size}}));
}

// The real transform of g, the inner elements twice: they stand for two.
HOLDFAST_GRAD(fft_c2r) {
  const Value half = c.Call(
      OpId::fft_r2c, {c.grad()},
      {{"dim", c.attrs().Get("dim")}, {"scale", c.attrs().Get("scale")}});
  if (!half) return;
  const int64_t size = c.attrs().Int("last_size");
  const Value g = Mul(c, half, Weights(c, half, size, 1.0, 2.0));
  c.Set(0, Unary(c, OpId::conj, g));
}

}  // namespace holdfast
