// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Gradients of linear algebra: Giles, "An extended collection of matrix
// derivative results for forward and reverse mode algorithmic differentiation"
// (2008); Seeger et al., "Auto-differentiating linear algebra" (2017). Written
// g_Y for the gradient of output Y; ^-T is the inverse of the transpose.
#include <algorithm>
#include <cmath>

#include "autograd/rule_ops.h"
#include "ops/op_id.h"

namespace holdfast {
namespace {

Value T(GradContext& c, const Value& a) { return MatrixTranspose(c, a); }

int64_t Rows(const Value& a) { return a->spec().shape[a->spec().rank() - 2]; }
int64_t Columns(const Value& a) { return a->spec().shape.back(); }

// The missing ones are zero.
Value Plus(GradContext& c, const Value& a, const Value& b) {
  return a == nullptr ? b : b == nullptr ? a : Add(c, a, b);
}

Value Triangle(GradContext& c, OpId op, const Value& a, int64_t diagonal) {
  if (!a) return nullptr;
  return c.Call(op, {a}, {{"diagonal", diagonal}});
}
Value Lower(GradContext& c, const Value& a, int64_t diagonal = 0) {
  return Triangle(c, OpId::tril, a, diagonal);
}
Value Upper(GradContext& c, const Value& a, int64_t diagonal = 0) {
  return Triangle(c, OpId::triu, a, diagonal);
}

// The n x n identity in the type of `like`.
Value Identity(GradContext& c, int64_t n, const Value& like) {
  return c.Call(OpId::eye, {}, {{"n", n}, {"dtype", like->spec().dtype}});
}

Value WithDim(GradContext& c, const Value& a, int64_t dim) {
  if (!a) return nullptr;
  return c.Call(OpId::unsqueeze, {a}, {{"dim", dim}});
}

// Vectors [.., n] as diagonal matrices.
Value Diagonal(GradContext& c, const Value& a) {
  if (!a) return nullptr;
  return Mul(c, WithDim(c, a, -1), Identity(c, Columns(a), a));
}

// op(A)^-1 B, or B op(A)^-1 with !left.
Value SolveTriangular(GradContext& c, const Value& a, const Value& b,
                      bool upper, bool left = true, bool unit = false) {
  if (!a || !b) return nullptr;
  return c.Call(OpId::linalg_solve_triangular, {a, b},
                {{"upper", upper}, {"left", left}, {"unitriangular", unit}});
}

// The `count` first rows (columns), or those after them.
Value FirstRows(GradContext& c, const Value& a, int64_t count) {
  if (!a || Rows(a) == count) return a;
  return Slice(c, a, a->spec().rank() - 2, 0, count);
}
Value FirstColumns(GradContext& c, const Value& a, int64_t count) {
  if (!a || Columns(a) == count) return a;
  return Slice(c, a, a->spec().rank() - 1, 0, count);
}
Value OtherRows(GradContext& c, const Value& a, int64_t count) {
  if (!a) return nullptr;
  return Slice(c, a, a->spec().rank() - 2, count, Rows(a));
}
Value OtherColumns(GradContext& c, const Value& a, int64_t count) {
  if (!a) return nullptr;
  return Slice(c, a, a->spec().rank() - 1, count, Columns(a));
}

Value Join(GradContext& c, const Value& a, const Value& b, int64_t dim) {
  if (!a || !b) return nullptr;
  return c.Call(OpId::cat, {a, b}, {{"dim", dim}});
}

// Appends zeros: columns on the right up to `columns`.
Value PadColumns(GradContext& c, const Value& a, int64_t columns) {
  if (!a) return nullptr;
  Dims shape = a->spec().shape;
  shape.back() = columns;
  return PadTo(c, a, shape);
}

// X with its diagonal halved.
Value HalveDiagonal(GradContext& c, const Value& x) {
  if (!x) return nullptr;
  return Sub(c, x, Mul(c, x, Mul(c, Identity(c, Rows(x), x), 0.5)));
}

}  // namespace

// A = L L^T: g_A = (S + S^T) / 2, S = L^-T tril(L^T g_L, halved diagonal) L^-1
HOLDFAST_GRAD(linalg_cholesky, 0, Bit(0)) {
  const bool upper = c.attrs().Bool("upper");
  Value l = c.output(), g = c.grad();
  if (upper) {
    l = T(c, l);
    g = T(c, g);
  }
  if (!l) return;
  const Value inner =
      Lower(c, HalveDiagonal(c, MatMul(c, T(c, l), Lower(c, g))));
  const Value left = SolveTriangular(c, T(c, l), inner, /*upper=*/true);
  const Value s = SolveTriangular(c, l, left, /*upper=*/false, /*left=*/false);
  c.Set(0, Mul(c, Add(c, s, T(c, s)), 0.5));
}

// P A = L U, with g_L and g_U in the triangles of g and, for a square A,
// g_A = P^T L^-T (tril(L^T g_L, -1) + triu(g_U U^T)) U^-T
// The rows below a tall U's size (columns right of a wide L's) follow from the
// rest by a triangular system.
HOLDFAST_GRAD(linalg_lu_factor, 0, Bit(0) | Bit(1)) {
  const Value& g = c.grad();
  const Value lu = c.output(0);
  if (!g || !lu) return;
  const int64_t m = Rows(lu), n = Columns(lu), k = std::min(m, n);
  const Value order =
      c.Call(OpId::linalg_lu_permutation, {c.output(1)}, {{"rows", m}});
  if (!order) return;
  const Value square = FirstRows(c, FirstColumns(c, lu, k), k);
  const Value g_square = FirstRows(c, FirstColumns(c, g, k), k);
  const Value l = Plus(c, Lower(c, square, -1), Identity(c, k, lu));
  const Value u = Upper(c, square);
  Value of_l = MatMul(c, T(c, l), Lower(c, g_square, -1));
  Value of_u = MatMul(c, Upper(c, g_square), T(c, u));
  Value result;
  if (m >= n) {
    if (m > n) {
      of_u = Sub(c, of_u,
                 MatMul(c, T(c, OtherRows(c, lu, k)), OtherRows(c, g, k)));
    }
    const Value inner = Add(c, Lower(c, of_l, -1), Upper(c, of_u));
    Value top = SolveTriangular(c, T(c, l), inner, true, true, /*unit=*/true);
    if (m > n) top = Join(c, top, OtherRows(c, g, k), -2);
    result = SolveTriangular(c, T(c, u), top, /*upper=*/false, /*left=*/false);
  } else {
    of_l = Sub(c, of_l,
               MatMul(c, OtherColumns(c, g, k), T(c, OtherColumns(c, lu, k))));
    const Value inner = Add(c, Lower(c, of_l, -1), Upper(c, of_u));
    const Value left =
        SolveTriangular(c, T(c, u), inner, /*upper=*/false, /*left=*/false);
    result =
        SolveTriangular(c, T(c, l), Join(c, left, OtherColumns(c, g, k), -1),
                        true, true, /*unit=*/true);
  }
  if (!result) return;
  // Row i of P A is row order[i] of A.
  const TensorSpec& spec = result->spec();
  const Value index = Expand(c, WithDim(c, order, -1), spec.shape);
  const Value rows = c.Call(OpId::scatter, {Zeros(c, spec), index, result},
                            {{"dim", int64_t{spec.rank() - 2}}});
  c.Set(0, rows);
}

// A X = B: g_B = A^-T g, g_A = -g_B X^T
HOLDFAST_GRAD(linalg_solve, Bit(0), Bit(0)) {
  const Value a = c.input(0);
  if (!a) return;
  const Value g_b = c.Call(OpId::linalg_solve, {T(c, a), c.grad()});
  if (c.needs(0)) {
    SetBroadcast(c, 0, Neg(c, MatMul(c, g_b, T(c, c.output()))));
  }
  if (c.needs(1)) SetBroadcast(c, 1, g_b);
}

// As solve, with g_A where A is read. X A = B: g_B = g A^-T, g_A = -X^T g_B
HOLDFAST_GRAD(linalg_solve_triangular, Bit(0), Bit(0)) {
  const Attrs& attrs = c.attrs();
  const bool upper = attrs.Bool("upper"), left = attrs.Bool("left");
  const bool unit = attrs.Bool("unitriangular");
  const Value g_b =
      SolveTriangular(c, T(c, c.input(0)), c.grad(), !upper, left, unit);
  if (c.needs(0)) {
    const Value x = c.output();
    const Value g_a =
        Neg(c, left ? MatMul(c, g_b, T(c, x)) : MatMul(c, T(c, x), g_b));
    SetBroadcast(c, 0, upper ? Upper(c, g_a, unit) : Lower(c, g_a, -int{unit}));
  }
  if (c.needs(1)) SetBroadcast(c, 1, g_b);
}

// A = Q R. Tall, with M = g_R R^T - Q^T g_Q:
//   g_A = (Q (triu(M) + triu(M)^T, halved diagonal) + g_Q) R^-T
// Wide, R = [R1 R2], with M = Q^T g_Q - g_R R^T and tril of the skew M - M^T:
//   g_A = Q ([tril(M - M^T) R1^-T, 0] + g_R)
HOLDFAST_GRAD(linalg_qr, 0, Bit(0) | Bit(1)) {
  const Value q = c.output(0), r = c.output(1);
  const Value& g_q = c.grad(0);
  const Value& g_r = c.grad(1);
  if (!q || !r || (!g_q && !g_r)) return;
  const int64_t m = Rows(q), n = Columns(r);
  if (Columns(q) > n) {
    c.Fail(absl::UnimplementedError(
        "[linalg_qr] The QR decomposition is not differentiable when "
        "mode='complete' and nrows > ncols"));
    return;
  }
  const Value of_r = g_r ? MatMul(c, g_r, T(c, r)) : nullptr;
  const Value of_q = g_q ? MatMul(c, T(c, q), g_q) : nullptr;
  if (m >= n) {
    const Value upper = Upper(c, Plus(c, of_r, of_q ? Neg(c, of_q) : nullptr));
    const Value both = HalveDiagonal(c, Add(c, upper, T(c, upper)));
    const Value total = Plus(c, MatMul(c, q, both), g_q);
    c.Set(0, SolveTriangular(c, T(c, r), total, /*upper=*/false,
                             /*left=*/false));
    return;
  }
  const Value inner = Plus(c, of_q, of_r ? Neg(c, of_r) : nullptr);
  const Value skew = Lower(c, Sub(c, inner, T(c, inner)));
  const Value first = SolveTriangular(c, T(c, FirstColumns(c, r, m)), skew,
                                      /*upper=*/false, /*left=*/false);
  c.Set(0, MatMul(c, q, Plus(c, PadColumns(c, first, n), g_r)));
}

// A = V diag(w) V^T, with E_ij = w_j - w_i and skew(X) = (X - X^T) / 2:
// g_A = V (diag(g_w) + skew(V^T g_V) / E off the diagonal) V^T, which is
// symmetric
HOLDFAST_GRAD(linalg_eigh, 0, Bit(0) | Bit(1)) {
  const Value w = c.output(0), v = c.output(1);
  const Value& g_v = c.grad(1);
  if (!w || !v || (!c.grad(0) && !g_v)) return;
  if (!g_v) {
    c.Set(0, MatMul(c, Mul(c, v, WithDim(c, c.grad(0), -2)), T(c, v)));
    return;
  }
  const Value one = Identity(c, Rows(v), v);
  const Value gaps = Add(c, Sub(c, WithDim(c, w, -2), WithDim(c, w, -1)), one);
  const Value turn = MatMul(c, T(c, v), g_v);
  const Value skew = Mul(c, Sub(c, turn, T(c, turn)), 0.5);
  const Value off = Mul(c, Div(c, skew, gaps), Sub(c, int64_t{1}, one));
  const Value inner = Plus(c, off, Diagonal(c, c.grad(0)));
  c.Set(0, MatMul(c, MatMul(c, v, inner), T(c, v)));
}

// A = U diag(s) V^T, E_ij = s_j^2 - s_i^2, skew(X) = X - X^T:
// g_A = U (skew(U^T g_U) / E diag(s) + diag(s) skew(V^T g_V) / E + diag(g_s))
//       V^T + (I - U U^T) g_U diag(1/s) V^T + U diag(1/s) g_V^T (I - V V^T)
// What a full U or V has beyond the singular values is arbitrary: no gradient.
HOLDFAST_GRAD(linalg_svd, 0, Bit(0) | Bit(1) | Bit(2)) {
  const Value s = c.output(1);
  if (!s || (!c.grad(0) && !c.grad(1) && !c.grad(2))) return;
  const int64_t k = Columns(s);
  const Value u = FirstColumns(c, c.output(0), k);
  const Value vh = FirstRows(c, c.output(2), k);
  const Value g_u = FirstColumns(c, c.grad(0), k);
  const Value g_vh = FirstRows(c, c.grad(2), k);
  if (!u || !vh) return;
  if (!g_u && !g_vh) {
    c.Set(0, MatMul(c, Mul(c, u, WithDim(c, c.grad(1), -2)), vh));
    return;
  }
  const Value row = WithDim(c, s, -2), column = WithDim(c, s, -1);
  const Value gaps = Add(c, Sub(c, Mul(c, row, row), Mul(c, column, column)),
                         Identity(c, k, s));
  Value inner = Diagonal(c, c.grad(1));
  if (g_u) {
    const Value x = MatMul(c, T(c, u), g_u);
    inner = Plus(c, inner, Mul(c, Div(c, Sub(c, x, T(c, x)), gaps), row));
  }
  if (g_vh) {
    const Value x = MatMul(c, vh, T(c, g_vh));
    inner = Plus(c, inner, Mul(c, Div(c, Sub(c, x, T(c, x)), gaps), column));
  }
  Value total = MatMul(c, MatMul(c, u, inner), vh);
  if (g_u && Rows(u) > k) {
    const Value scaled = Div(c, g_u, row);
    const Value rest = Sub(c, scaled, MatMul(c, u, MatMul(c, T(c, u), scaled)));
    total = Plus(c, total, MatMul(c, rest, vh));
  }
  if (g_vh && Columns(vh) > k) {
    const Value scaled = Div(c, g_vh, column);
    const Value rest =
        Sub(c, scaled, MatMul(c, MatMul(c, scaled, T(c, vh)), vh));
    total = Plus(c, total, MatMul(c, u, rest));
  }
  c.Set(0, total);
}

// Golub and Pereyra 1973, at constant rank, with X the pseudoinverse:
// g_A = -X^T g X^T + (I - A X) g^T X X^T + X^T X g^T (I - X A)
HOLDFAST_GRAD(linalg_pinv, Bit(0), Bit(0)) {
  const Value a = c.input(0), x = c.output();
  if (!a || !x) return;
  const Value xt = T(c, x), gt = T(c, c.grad());
  const Value first = MatMul(c, MatMul(c, xt, c.grad()), xt);
  const Value second = MatMul(c, MatMul(c, gt, x), xt);
  const Value third = MatMul(c, xt, MatMul(c, x, gt));
  Value total = Sub(c, second, first);
  total = Sub(c, total, MatMul(c, a, MatMul(c, x, second)));
  total = Add(c, total, third);
  c.Set(0, Sub(c, total, MatMul(c, MatMul(c, third, x), a)));
}

// The upper right block of exp([[A^T, g], [0, A^T]]) (Mathias 1996).
HOLDFAST_GRAD(linalg_matrix_exp, Bit(0)) {
  const Value at = T(c, c.input(0));
  if (!at || !c.grad()) return;
  const int64_t n = Rows(at);
  const Value top = Join(c, at, c.grad(), -1);
  const Value below = Join(c, Mul(c, at, int64_t{0}), at, -1);
  const Value all = c.Call(OpId::linalg_matrix_exp, {Join(c, top, below, -2)});
  c.Set(0, FirstRows(c, OtherColumns(c, all, n), n));
}

// c = a x b: g_a = b x g, g_b = g x a
HOLDFAST_GRAD(linalg_cross, Bit(0) | Bit(1), 0, Bit(0) | Bit(1)) {
  const Value& g = c.grad();
  if (!g) return;
  const int64_t dim = DimAttr(c, g->spec().rank());
  const auto cross = [&](const Value& a, const Value& b) -> Value {
    if (!a || !b) return nullptr;
    return c.Call(OpId::linalg_cross, {a, b}, {{"dim", dim}});
  };
  if (c.needs(0)) SetBroadcast(c, 0, cross(c.input(1), g));
  if (c.needs(1)) SetBroadcast(c, 1, cross(g, c.input(0)));
}

// With d the differences [.., n, m, k] and y their norms: the terms
// g sign(d) |d|^(p-1) y^(1-p), summed over the other one's rows. Zero where y
// is, and where d is for p < 1.
HOLDFAST_GRAD(linalg_cdist, Bit(0) | Bit(1), Bit(0)) {
  const double p = c.attrs().Float("p");
  const Value x1 = c.input(0), x2 = c.input(1), out = c.output();
  if (!x1 || !x2 || !out || !c.grad()) return;
  const Value d = Sub(c, WithDim(c, x1, -2), WithDim(c, x2, -3));
  const Value g = WithDim(c, c.grad(), -1);
  Value terms;
  if (p == 0) {
    terms = Mul(c, Mul(c, d, int64_t{0}), g);
  } else if (p == 1) {
    terms = Mul(c, Unary(c, OpId::sign, d), g);
  } else {
    const Value zero = Equal(c, out, int64_t{0});
    const Value y = WithDim(c, Where(c, zero, int64_t{1}, out), -1);
    if (std::isinf(p)) {
      const Value most = Equal(c, Unary(c, OpId::abs, d), y);
      terms = Mul(c, Where(c, most, Unary(c, OpId::sign, d), int64_t{0}), g);
    } else if (p == 2) {
      terms = Mul(c, Div(c, d, y), g);
    } else {
      const Value still = Equal(c, d, int64_t{0});
      const Value size = Where(c, still, int64_t{1}, Unary(c, OpId::abs, d));
      const Value slope = Pow(c, Div(c, size, y), p - 1);
      terms = Mul(c, Mul(c, Unary(c, OpId::sign, d), slope), g);
    }
  }
  if (!terms) return;
  const int64_t rank = terms->spec().rank();
  if (c.needs(0)) {
    SetBroadcast(c, 0, Sum(c, terms, {rank - 2}, /*keepdim=*/false));
  }
  if (c.needs(1)) {
    SetBroadcast(c, 1, Neg(c, Sum(c, terms, {rank - 3}, /*keepdim=*/false)));
  }
}

}  // namespace holdfast
