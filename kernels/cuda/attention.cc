// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// attention and its gradients: by cuDNN where it is there and knows how, else
// as products, and kernels over the rows of scores, some heads at a time so
// that the scores' memory stays bounded.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/attention_shape.h"
#include "kernels/cuda/combine.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/elements.h"
#include "kernels/cuda/group.h"
#include "kernels/cuda/run_products.h"

#if defined(__CUDACC__)
#include "kernels/cuda/attention_by_dnn.h"
#endif

namespace holdfast::cuda {
namespace {

constexpr int64_t kScoreBytes = int64_t{256} << 20;  // of one matrix per head

// A matrix per head: elements from one head, row and column to the next.
struct Stack {
  char* data = nullptr;
  DType dtype = DType::kFloat32;
  int64_t head = 0, row = 0, column = 1;

  Stack Transposed() const {
    Stack t = *this;
    std::swap(t.row, t.column);
    return t;
  }
  Stack At(int64_t heads, int64_t rows) const {
    Stack t = *this;
    t.data +=
        (heads * head + rows * row) * static_cast<int64_t>(ItemSize(dtype));
    return t;
  }
};

Stack Contiguous(void* data, DType dtype, int64_t rows, int64_t columns) {
  return {static_cast<char*>(data), dtype, rows * columns, columns, 1};
}

// Whether the leading dimensions are steps of one size.
bool FindHeadStep(const TensorSpec& spec, int64_t* step) {
  *step = 0;
  int64_t next = 0;  // what the next dimension's stride has to be
  for (int d = spec.rank() - 3; d >= 0; --d) {
    if (spec.shape[d] == 1) continue;
    if (next == 0) {
      *step = spec.strides[d];
    } else if (spec.strides[d] != next) {
      return false;
    }
    next = spec.strides[d] * spec.shape[d];
    if (next <= 0) return false;
  }
  return true;
}

// `view` as it lies if products can take it so, else a copy, described by
// *spec.
absl::Status MakeStack(KernelContext& context, const TensorView& view,
                       TensorSpec* spec, Stack* stack) {
  const TensorSpec& from = *view.spec;
  const int rank = from.rank();
  const int64_t rows = from.shape[rank - 2], columns = from.shape[rank - 1];
  stack->dtype = from.dtype;
  if (FindHeadStep(from, &stack->head) && from.strides[rank - 1] == 1 &&
      from.strides[rank - 2] >= columns) {
    stack->data = view.as<char>();
    stack->row = from.strides[rank - 2];
    return absl::OkStatus();
  }
  TensorView copy;
  absl::Status s = MakeContiguous(context, view, from.dtype, spec, &copy);
  *stack = Contiguous(copy.data, from.dtype, rows, columns);
  return s;
}

// out [m, n] = a [m, k] b [k, n] for each of `heads`, or out + that.
absl::Status Multiply(KernelContext& context, int64_t heads, int64_t m,
                      int64_t n, int64_t k, const Stack& a, const Stack& b,
                      bool add, void* out) {
  Products p;
  p.m = m;
  p.n = n;
  p.k = k;
  p.a_row = a.row;
  p.a_col = a.column;
  p.b_row = b.row;
  p.b_col = b.column;
  if (heads > 1) {
    p.batch = {heads};
    p.a_batch = {a.head};
    p.b_batch = {b.head};
  }
  // Products go by sizes and strides of their own.
  const TensorSpec spec = ContiguousSpec(a.dtype, {heads, m, n});
  return RunProducts(context, p, {a.data, &spec}, {b.data, &spec}, add,
                     {out, &spec});
}

// What is computed at a time: all rows of some heads, or some rows of one.
struct Piece {
  int64_t head = 0, heads = 0, row = 0, rows = 0;
};

template <typename F>
absl::Status ForEachPiece(const AttentionShape& a, int64_t bytes, F f) {
  Piece most;
  most.rows = std::clamp<int64_t>(kScoreBytes / bytes, 1, a.l);
  most.heads = std::clamp<int64_t>(kScoreBytes / (a.l * bytes), 1, a.heads);
  for (int64_t head = 0; head < a.heads; head += most.heads) {
    for (int64_t row = 0; row < a.l; row += most.rows) {
      const Piece piece = {head, std::min(most.heads, a.heads - head), row,
                           std::min(most.rows, a.l - row)};
      absl::Status s = f(piece);
      if (!s.ok()) return s;
    }
  }
  return absl::OkStatus();
}

// Elements of a piece's scores.
int64_t ScoresOf(const AttentionShape& a, int64_t bytes) {
  const int64_t all = std::max<int64_t>(kScoreBytes / bytes, 1);
  return std::min(all, a.heads * a.l) * a.s;
}

// What the row kernels know of their rows, without the host's memory.
struct Rows {
  int64_t count, per_head, first, keys;
  bool causal;

  Rows(const AttentionShape& a, const Piece& piece)
      : count(piece.heads * piece.rows),
        per_head(piece.rows),
        first(piece.row),
        keys(a.s),
        causal(a.causal) {}
  HOLDFAST_HD int64_t Seen(int64_t row) const {
    const int64_t seen = first + row % per_head + 1;
    return causal && seen < keys ? seen : keys;
  }
};

// Scores -> weights, and the logarithms of the sums of exp(score).
template <typename S>
absl::Status WeighRows(KernelContext& context, const Rows& rows, S* scores,
                       ComputeOf<S>* logsumexp) {
  using T = ComputeOf<S>;
  return ForEachRow(
      context, rows.count, GroupSize(rows.keys),
      [=] HOLDFAST_LAMBDA(const Group& group, int64_t row) {
        S* const x = scores + row * rows.keys;
        const int64_t seen = rows.Seen(row);
        T max = -std::numeric_limits<T>::infinity();
        for (int64_t j = group.rank; j < seen; j += group.size) {
          max = LargerOf()(max, Convert<T>(x[j]));
        }
        max = group.Reduce(max, LargerOf());
        T sum = 0;
        for (int64_t j = group.rank; j < seen; j += group.size) {
          sum += std::exp(Convert<T>(x[j]) - max);
        }
        sum = group.Reduce(sum, SumTwo());
        const T inverse = T(1) / sum;
        for (int64_t j = group.rank; j < rows.keys; j += group.size) {
          x[j] = Convert<S>(
              j < seen ? std::exp(Convert<T>(x[j]) - max) * inverse : T(0));
        }
        if (group.first()) logsumexp[row] = max + std::log(sum);
      });
}

// Scores -> weights; `grads`, of the weights -> of the scores. d: gradient of
// the output y, `width` wide, its first row the piece's.
template <typename S>
absl::Status GradRows(KernelContext& context, const Rows& rows,
                      const ComputeOf<S>* logsumexp, const Stack& d, const S* y,
                      int64_t width, S* weights, S* grads) {
  using T = ComputeOf<S>;
  const S* const d_data = reinterpret_cast<const S*>(d.data);
  const int64_t d_head = d.head, d_row = d.row;
  return ForEachRow(
      context, rows.count, GroupSize(rows.keys),
      [=] HOLDFAST_LAMBDA(const Group& group, int64_t row) {
        const S* const of_d =
            d_data + row / rows.per_head * d_head + row % rows.per_head * d_row;
        const S* const of_y = y + row * width;
        T mean = 0;
        for (int64_t j = group.rank; j < width; j += group.size) {
          mean += Convert<T>(of_d[j]) * Convert<T>(of_y[j]);
        }
        mean = group.Reduce(mean, SumTwo());
        S* const w = weights + row * rows.keys;
        S* const g = grads + row * rows.keys;
        const int64_t seen = rows.Seen(row);
        const T l = logsumexp[row];
        for (int64_t j = group.rank; j < rows.keys; j += group.size) {
          const T p = j < seen ? std::exp(Convert<T>(w[j]) - l) : T(0);
          w[j] = Convert<S>(p);
          g[j] = Convert<S>(j < seen ? p * (Convert<T>(g[j]) - mean) : T(0));
        }
      });
}

// to [heads, rows, columns], contiguous, = from * scale. `to` may be `from`.
template <typename S>
absl::Status Scale(KernelContext& context, const Stack& from, int64_t heads,
                   int64_t rows, int64_t columns, double scale, S* to) {
  using T = ComputeOf<S>;
  const S* const data = reinterpret_cast<const S*>(from.data);
  const int64_t head = from.head, step = from.row;
  const T factor = static_cast<T>(scale);
  return ForEach(
      context, heads * rows * columns, [=] HOLDFAST_LAMBDA(int64_t i) {
        const int64_t row = i / columns;
        const int64_t at = row / rows * head + row % rows * step + i % columns;
        to[i] = Convert<S>(Convert<T>(data[at]) * factor);
      });
}

// The operands of both passes; the query is scaled, so that 16-bit scores do
// not overflow where their softmax would not.
struct Operands {
  TensorSpec specs[3];
  Stack q, k, v;

  template <typename S>
  absl::Status Make(KernelContext& context, const AttentionShape& a,
                    absl::Span<const TensorView> inputs) {
    const DType dtype = inputs[0].spec->dtype;
    S* const scaled = ScratchOf<S>(context, a.heads * a.l * a.e);
    if (scaled == nullptr) return NoScratch();
    absl::Status s = MakeStack(context, inputs[0], &specs[0], &q);
    if (s.ok()) s = Scale<S>(context, q, a.heads, a.l, a.e, a.scale, scaled);
    q = Contiguous(scaled, dtype, a.l, a.e);
    if (s.ok()) s = MakeStack(context, inputs[1], &specs[1], &k);
    if (s.ok()) s = MakeStack(context, inputs[2], &specs[2], &v);
    return s;
  }
  absl::Status Scores(KernelContext& context, const AttentionShape& a,
                      const Piece& piece, void* scores) const {
    return Multiply(context, piece.heads, piece.rows, a.s, a.e,
                    q.At(piece.head, piece.row),
                    k.At(piece.head, 0).Transposed(), false, scores);
  }
};

template <typename S>
absl::Status Forward(KernelContext& context, const AttentionShape& a,
                     absl::Span<const TensorView> inputs, S* output,
                     ComputeOf<S>* logsumexp) {
  if (a.heads * a.l == 0) return absl::OkStatus();
  Operands of;
  absl::Status s = of.Make<S>(context, a, inputs);
  if (!s.ok()) return s;
  const int64_t bytes = std::max<int64_t>(1, a.s) * sizeof(S);
  S* const scores = ScratchOf<S>(context, ScoresOf(a, bytes));
  if (scores == nullptr) return NoScratch();
  return ForEachPiece(a, bytes, [&](const Piece& piece) -> absl::Status {
    const int64_t row = piece.head * a.l + piece.row;
    absl::Status s = of.Scores(context, a, piece, scores);
    if (s.ok()) {
      s = WeighRows<S>(context, Rows(a, piece), scores, logsumexp + row);
    }
    if (!s.ok()) return s;
    return Multiply(context, piece.heads, piece.rows, a.v, a.s,
                    Contiguous(scores, of.v.dtype, piece.rows, a.s),
                    of.v.At(piece.head, 0), false, output + row * a.v);
  });
}

template <typename S>
absl::Status Backward(KernelContext& context, const AttentionShape& a,
                      absl::Span<const TensorView> inputs,
                      absl::Span<const TensorView> outputs) {
  using T = ComputeOf<S>;
  S* const q_grad = outputs[0].as<S>();
  S* const k_grad = outputs[1].as<S>();
  S* const v_grad = outputs[2].as<S>();
  absl::Status s;
  if (a.heads == 0) return s;
  if (a.l == 0) {
    s = Cuda(context).FillBytes(k_grad, 0, outputs[1].spec->nbytes());
    s.Update(Cuda(context).FillBytes(v_grad, 0, outputs[2].spec->nbytes()));
    return s;
  }
  Operands of;
  s = of.Make<S>(context, a, inputs.subspan(1));
  TensorSpec specs[3];
  Stack d;
  TensorView y, l;
  if (s.ok()) s = MakeStack(context, inputs[0], &specs[0], &d);
  if (s.ok()) {
    s = MakeContiguous(context, inputs[4], inputs[4].spec->dtype, &specs[1],
                       &y);
  }
  if (s.ok()) {
    s = MakeContiguous(context, inputs[5], inputs[5].spec->dtype, &specs[2],
                       &l);
  }
  if (!s.ok()) return s;
  const DType dtype = d.dtype;
  const int64_t bytes = std::max<int64_t>(1, a.s) * sizeof(S);
  S* const weights = ScratchOf<S>(context, ScoresOf(a, bytes));
  S* const grads = ScratchOf<S>(context, ScoresOf(a, bytes));
  if (weights == nullptr || grads == nullptr) return NoScratch();
  s = ForEachPiece(a, bytes, [&](const Piece& piece) -> absl::Status {
    const int64_t row = piece.head * a.l + piece.row, key = piece.head * a.s;
    const bool add = piece.row > 0;
    const Stack of_d = d.At(piece.head, piece.row);
    const Stack w = Contiguous(weights, dtype, piece.rows, a.s);
    const Stack g = Contiguous(grads, dtype, piece.rows, a.s);
    absl::Status s = of.Scores(context, a, piece, weights);
    if (s.ok()) {
      s = Multiply(context, piece.heads, piece.rows, a.s, a.v, of_d,
                   of.v.At(piece.head, 0).Transposed(), false, grads);
    }
    if (s.ok()) {
      s = GradRows<S>(context, Rows(a, piece), l.as<T>() + row, of_d,
                      y.as<S>() + row * a.v, a.v, weights, grads);
    }
    if (s.ok()) {
      s = Multiply(context, piece.heads, a.s, a.v, piece.rows, w.Transposed(),
                   of_d, add, v_grad + key * a.v);
    }
    if (s.ok()) {
      s = Multiply(context, piece.heads, a.s, a.e, piece.rows, g.Transposed(),
                   of.q.At(piece.head, piece.row), add, k_grad + key * a.e);
    }
    if (!s.ok()) return s;
    return Multiply(context, piece.heads, piece.rows, a.e, a.s, g,
                    of.k.At(piece.head, 0), false, q_grad + row * a.e);
  });
  if (!s.ok()) return s;
  return Scale<S>(context, Contiguous(q_grad, dtype, a.l, a.e), a.heads, a.l,
                  a.e, a.scale, q_grad);
}

}  // namespace

HOLDFAST_CUDA_KERNEL(attention) {
  const AttentionShape a(attrs, *inputs[0].spec, *inputs[2].spec);
#if defined(__CUDACC__)
  if (AttentionByDnn(context, a, inputs, outputs)) return absl::OkStatus();
#endif
  return DispatchStoredFloat(
      outputs[0].spec->dtype, [&](auto tag) -> absl::Status {
        using S = typename decltype(tag)::type;
        return Forward<S>(context, a, inputs, outputs[0].as<S>(),
                          outputs[1].as<ComputeOf<S>>());
      });
}

HOLDFAST_CUDA_KERNEL(attention_backward) {
  const AttentionShape a(attrs, *inputs[1].spec, *inputs[3].spec);
#if defined(__CUDACC__)
  if (AttentionBackwardByDnn(context, a, inputs, outputs)) {
    return absl::OkStatus();
  }
#endif
  return DispatchStoredFloat(outputs[0].spec->dtype,
                             [&](auto tag) -> absl::Status {
                               using S = typename decltype(tag)::type;
                               return Backward<S>(context, a, inputs, outputs);
                             });
}

}  // namespace holdfast::cuda
