// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Gradients of matrix products.
#include "autograd/rule_ops.h"
#include "ops/op_id.h"

namespace holdfast {
namespace {

// `a` as a matrix: all dimensions but the last folded into one.
Value Rows(GradContext& c, const Value& a) {
  if (!a || a->spec().rank() == 2) return a;
  const Dims& shape = a->spec().shape;
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < shape.size(); ++i) rows *= shape[i];
  return ViewAs(c, a, {rows, shape.back()});
}

// a^T b over the rows of both: [.., n], [.., m] -> [n, m]
Value RowProduct(GradContext& c, const Value& a, const Value& b) {
  return MatMul(c, MatrixTranspose(c, Rows(c, a)), Rows(c, b));
}

// A size-1 dimension at `dim`.
Value WithDim(GradContext& c, const Value& a, int64_t dim) {
  if (!a) return nullptr;
  return c.Call(OpId::unsqueeze, {a}, {{"dim", dim}});
}

// y = a b for all ranks; batch dimensions broadcast. Ranks below are those of
// a and b.
void GradOfFirst(GradContext& c) {
  const Value& g = c.grad();
  const Value b = c.input(1);
  if (!b) return;
  const int rank_a = c.input_spec(0).rank();
  const int rank_b = b->spec().rank();
  Value grad;
  if (rank_b == 1 && rank_a == 1) {
    grad = Mul(c, g, b);  // [k]
  } else if (rank_b == 1) {
    grad = Mul(c, WithDim(c, g, -1), b);  // [.., n, 1] * [k]
  } else if (rank_a == 1) {
    // b [.., k, m] g [.., m, 1] -> [.., k], then over the batch
    grad = MatMul(c, b, WithDim(c, g, -1));
    if (grad)
      grad = ViewAs(c, grad,
                    absl::MakeConstSpan(grad->spec().shape)
                        .first(grad->spec().rank() - 1));
  } else {
    grad = MatMul(c, g, MatrixTranspose(c, b));  // g b^T
  }
  SetBroadcast(c, 0, grad);
}

void GradOfSecond(GradContext& c) {
  const Value& g = c.grad();
  const Value a = c.input(0);
  if (!a) return;
  const int rank_a = a->spec().rank();
  const int rank_b = c.input_spec(1).rank();
  Value grad;
  if (rank_a == 1 && rank_b == 1) {
    grad = Mul(c, g, a);  // [k]
  } else if (rank_a == 1) {
    grad = Mul(c, WithDim(c, a, -1), WithDim(c, g, -2));  // a_k g_m
  } else if (rank_b == 1) {
    // sum over rows of g_n a_nk: one product for the whole batch
    if (!g) return;
    const Value rows = ViewAs(c, g, {NumElements(g->spec().shape)});
    grad = MatMul(c, MatrixTranspose(c, Rows(c, a)), rows);
  } else if (rank_b == 2) {
    grad = RowProduct(c, a, g);  // one product for the whole batch
  } else {
    grad = MatMul(c, MatrixTranspose(c, a), g);  // a^T g
  }
  SetBroadcast(c, 1, grad);
}

}  // namespace

// g b^T, a^T g
HOLDFAST_GRAD(matmul, Bit(0) | Bit(1), 0, Bit(0) | Bit(1)) {
  if (c.needs(0)) GradOfFirst(c);
  if (c.needs(1)) GradOfSecond(c);
}

// y = x w^T + b, x [.., in], w [out, in], g [.., out]:
// g w, sum_rows g^T x, sum_rows g
HOLDFAST_GRAD(linear, Bit(0) | Bit(1), 0, Bit(0) | Bit(1)) {
  const Value& g = c.grad();
  if (c.needs(0)) c.Set(0, MatMul(c, g, c.input(1)));
  if (c.needs(1)) c.Set(1, RowProduct(c, g, c.input(0)));
  if (c.needs(2)) SetBroadcast(c, 2, g);
}

}  // namespace holdfast
