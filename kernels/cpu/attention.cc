// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// attention and its gradients, some rows of a head at a time: the scores of a
// block of rows stay in the cache, those of a whole head are never in memory
// (Rabe & Staats 2021, arXiv:2112.05682). A head is one [L, E] of the batch.
#include <omp.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/status/status.h"
#include "kernels/attention_shape.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/plain_product.h"
#include "kernels/cpu/softmax_row.h"
#include "kernels/cpu/strided_cursor.h"
#include "kernels/cpu/vectorised.h"
#include "kernels/dtype_dispatch.h"
#include "kernels/fast_exp.h"
#include "kernels/products.h"

namespace holdfast::cpu {
namespace {

// Scores of a block of rows that one thread works on, and that all share.
constexpr int64_t kBlockScores = int64_t{1} << 16;
constexpr int64_t kSharedScores = int64_t{1} << 22;
// Multiplications below which a second thread does not pay.
constexpr int64_t kWork = int64_t{1} << 18;
// The gradients of so few heads are computed one after the other, each by all
// threads. Not by the number of threads: results are equal for any.
constexpr int64_t kFewHeads = 4;

int64_t BlockRows(const AttentionShape& a, int64_t scores) {
  return std::clamp<int64_t>(scores / std::max<int64_t>(a.s, 1), 16, 1024);
}

// The heads of a tensor: rows of adjacent elements.
template <typename T>
struct Heads {
  TensorSpec spec;  // of a copy
  TensorView view;
  int64_t row = 0;  // elements from one row to the next
  Dims lead;        // strides

  // Of a tensor that products can take as it lies, else of a copy.
  absl::Status Make(KernelContext& context, const TensorView& tensor) {
    const int rank = tensor.spec->rank();
    const auto layout = [&](const TensorSpec& a, BlasLayout* found) {
      return FindBlasLayout(a.shape[rank - 2], a.shape[rank - 1],
                            a.strides[rank - 2], a.strides[rank - 1], found) &&
             !found->transposed;
    };
    BlasLayout found;
    view = tensor;
    if (!layout(*tensor.spec, &found)) {
      absl::Status s =
          MakeContiguous(context, tensor, tensor.spec->dtype, &spec, &view);
      if (!s.ok()) return s;
      found.ld = std::max<int64_t>(1, tensor.spec->shape[rank - 1]);
    }
    row = found.ld;
    lead.assign(view.spec->strides.begin(), view.spec->strides.end() - 2);
    return absl::OkStatus();
  }
  T* at(int64_t offset) const { return view.as<T>() + offset; }
};

template <typename T>
struct RowBlock {
  int64_t first, rows;  // of the head
  int64_t keys;         // that the last one sees; the scores' row length
  bool causal;
  T scale;
  int64_t seen(int64_t i) const {
    return causal ? std::min(keys, first + i + 1) : keys;
  }
};

// Products with keys -> exp(scaled - largest), zeros where a key is not seen,
// and per row the logarithm of the sum of exp(scaled), and 1 / sum.
template <typename T>
struct ScoreRows {
  static HOLDFAST_INLINE int Run(const RowBlock<T>* block, int64_t begin,
                                 int64_t end, T* scores, T* logsumexp,
                                 T* inverse) {
    const T scale = block->scale;
    const int64_t keys = block->keys;
    for (int64_t i = begin; i < end; ++i) {
      T* x = scores + i * keys;
      const int64_t seen = block->seen(i);
      for (int64_t j = 0; j < seen; ++j) x[j] *= scale;
      const T max = RowMax(x, seen);
      const T sum = ExpRow(x, seen, max, x);
      for (int64_t j = seen; j < keys; ++j) x[j] = 0;
      logsumexp[i] = max + std::log(sum);
      inverse[i] = 1 / sum;
    }
    return 0;
  }
};

template <typename T>
struct ScaleRows {
  static HOLDFAST_INLINE int Run(int64_t rows, int64_t n, const T* factors,
                                 T* x) {
    for (int64_t i = 0; i < rows; ++i, x += n) {
      const T factor = factors[i];
      for (int64_t j = 0; j < n; ++j) x[j] *= factor;
    }
    return 0;
  }
};

// Products with keys -> the weights; `grad`, the weights' gradients, -> those
// of the products. d: the gradient of output y, `v` wide.
template <typename T>
struct GradRows {
  static HOLDFAST_INLINE int Run(const RowBlock<T>* block, int64_t begin,
                                 int64_t end, const T* logsumexp, const T* d,
                                 int64_t d_row, const T* y, int64_t v,
                                 T* weights, T* grad) {
    const T scale = block->scale;
    const int64_t keys = block->keys;
    for (int64_t i = begin; i < end; ++i) {
      T* w = weights + i * keys;
      T* g = grad + i * keys;
      const int64_t seen = block->seen(i);
      const T l = logsumexp[i];
      T lanes[kSoftmaxLanes<T>] = {};
      int64_t j = 0;
      for (; j + kSoftmaxLanes<T> <= v; j += kSoftmaxLanes<T>) {
        for (int k = 0; k < kSoftmaxLanes<T>; ++k) {
          lanes[k] += d[i * d_row + j + k] * y[i * v + j + k];
        }
      }
      for (int k = 0; j < v; ++j, ++k) {
        lanes[k] += d[i * d_row + j] * y[i * v + j];
      }
      const T mean =
          Fold(lanes, [](T a, T b) HOLDFAST_INLINE_LAMBDA { return a + b; });
      for (j = 0; j < seen; ++j) {
        const T p = FastExp(w[j] * scale - l);
        w[j] = p;
        g[j] = p * (g[j] - mean) * scale;
      }
      for (; j < keys; ++j) w[j] = g[j] = 0;
    }
    return 0;
  }
};

// Rows from 0 to `rows` by the context's threads.
template <typename F>
void ForRows(const KernelContext& context, const AttentionShape& shape,
             int64_t rows, F f) {
  const int64_t grain = 8192 / std::max<int64_t>(1, shape.s) + 1;
  ParallelFor(context, rows, grain, f);
}

// Memory of a thread's own, or of all threads if they share the work.
template <typename T>
struct Room {
  int64_t scores = 0, rows = 0;  // elements
  size_t product = 0;            // bytes
  char* memory = nullptr;

  static size_t Bytes(size_t bytes) { return (bytes + 63) / 64 * 64; }
  size_t each() const {
    return Bytes(scores * sizeof(T)) + Bytes(rows * sizeof(T)) +
           Bytes(product) + 64;
  }
  bool Take(KernelContext& context, int64_t count) {
    memory = static_cast<char*>(context.Scratch(each() * count));
    return memory != nullptr;
  }
  T* Scores(int64_t thread) const {
    return reinterpret_cast<T*>(memory + thread * each());
  }
  T* Rows(int64_t thread) const {
    return reinterpret_cast<T*>(memory + thread * each() +
                                Bytes(scores * sizeof(T)));
  }
  void* Product(int64_t thread) const {
    return memory + thread * each() + Bytes(scores * sizeof(T)) +
           Bytes(rows * sizeof(T));
  }
};

template <typename T>
Room<T> RoomFor(const AttentionShape& a, int64_t rows, int64_t matrices) {
  Room<T> room;
  room.scores = matrices * rows * a.s;
  room.rows = rows;
  const int64_t n = std::max({a.s, a.e, a.v});
  room.product = PlainProduct<T>::WorkspaceBytes(n, std::max(n, rows));
  return room;
}

absl::Status NoMemory() {
  return absl::ResourceExhaustedError("[attention] no scratch memory.");
}

template <typename T>
absl::Status Forward(KernelContext& context, const AttentionShape& a,
                     absl::Span<const TensorView> inputs, T* output,
                     T* logsumexp) {
  if (a.heads * a.l == 0) return absl::OkStatus();
  Heads<T> q, k, v;
  absl::Status s = q.Make(context, inputs[0]);
  if (s.ok()) s = k.Make(context, inputs[1]);
  if (s.ok()) s = v.Make(context, inputs[2]);
  if (!s.ok()) return s;
  const int64_t most = std::min(a.l, BlockRows(a, kBlockScores));
  const int64_t blocks = (a.l + most - 1) / most;
  Room<T> room = RoomFor<T>(a, most, 1);
  const int threads = context.num_threads;
  if (!room.Take(context, threads)) return NoMemory();
  UseDnnlThreads(context);
  const int64_t cost = most * std::max<int64_t>(1, a.s * (a.e + a.v));
  const auto run = [&](int64_t begin, int64_t end) {
    const int thread = omp_get_thread_num() % threads;
    const SingleThread alone;
    const PlainProduct<T> product{alone, room.Product(thread)};
    T* const scores = room.Scores(thread);
    T* const inverse = room.Rows(thread);
    for (int64_t i = begin; i < end; ++i) {
      if (context.Stopped()) return;
      const int64_t head = i / blocks, first = i % blocks * most;
      const int64_t rows = std::min(most, a.l - first);
      const StridedCursor<3> at(
          a.lead, {q.lead.data(), k.lead.data(), v.lead.data()}, head);
      const RowBlock<T> block = {first, rows, a.Seen(first + rows), a.causal,
                                 static_cast<T>(a.scale)};
      product.Run(rows, block.keys, a.e, {q.at(at[0]) + first * q.row, q.row},
                  {k.at(at[1]), k.row, true}, false, scores, block.keys);
      Vectorised<ScoreRows<T>>(&block, int64_t{0}, rows, scores,
                               logsumexp + head * a.l + first, inverse);
      T* const out = output + (head * a.l + first) * a.v;
      product.Run(rows, a.v, block.keys, {scores, block.keys},
                  {v.at(at[2]), v.row}, false, out, a.v);
      Vectorised<ScaleRows<T>>(a.s > 0 ? rows : 0, a.v,
                               const_cast<const T*>(inverse), out);
    }
  };
  ParallelFor(context, a.heads * blocks, std::max<int64_t>(1, kWork / cost),
              run);
  return absl::OkStatus();
}

// The tensors of a backward.
template <typename T>
struct Gradients {
  Heads<T> d, q, k, v;  // of the output, query, key, value
  TensorSpec specs[2];
  TensorView views[2];  // output, logsumexp
  T *q_grad, *k_grad, *v_grad;

  absl::Status Make(KernelContext& context, absl::Span<const TensorView> inputs,
                    absl::Span<const TensorView> outputs) {
    absl::Status s = d.Make(context, inputs[0]);
    if (s.ok()) s = q.Make(context, inputs[1]);
    if (s.ok()) s = k.Make(context, inputs[2]);
    if (s.ok()) s = v.Make(context, inputs[3]);
    for (int i = 0; i < 2 && s.ok(); ++i) {
      s = MakeContiguous(context, inputs[4 + i], inputs[4 + i].spec->dtype,
                         &specs[i], &views[i]);
    }
    q_grad = outputs[0].as<T>();
    k_grad = outputs[1].as<T>();
    v_grad = outputs[2].as<T>();
    return s;
  }

  // All rows of a head, `most` at a time, by the context's threads.
  void Head(const KernelContext& context, const AttentionShape& a, int64_t head,
            int64_t most, T* weights, void* workspace) const {
    const PlainProduct<T> product{context, workspace};
    const StridedCursor<4> at(
        a.lead, {d.lead.data(), q.lead.data(), k.lead.data(), v.lead.data()},
        head);
    T* const grad = weights + most * a.s;
    T* const to_k = k_grad + head * a.s * a.e;
    T* const to_v = v_grad + head * a.s * a.v;
    std::fill(to_k, to_k + a.s * a.e, T(0));
    std::fill(to_v, to_v + a.s * a.v, T(0));
    for (int64_t first = 0; first < a.l; first += most) {
      if (context.Stopped()) return;
      const int64_t rows = std::min(most, a.l - first);
      const int64_t row = head * a.l + first;
      const RowBlock<T> block = {first, rows, a.Seen(first + rows), a.causal,
                                 static_cast<T>(a.scale)};
      const int64_t n = block.keys;
      const Factor<T> queries = {q.at(at[1]) + first * q.row, q.row};
      const Factor<T> keys = {k.at(at[2]), k.row};
      const Factor<T> ds = {d.at(at[0]) + first * d.row, d.row};
      product.Run(rows, n, a.e, queries, {keys.data, keys.ld, true}, false,
                  weights, n);
      product.Run(rows, n, a.v, ds, {v.at(at[3]), v.row, true}, false, grad, n);
      ForRows(context, a, rows, [&](int64_t begin, int64_t end) {
        Vectorised<GradRows<T>>(
            &block, begin, end, const_cast<const T*>(views[1].as<T>()) + row,
            ds.data, ds.ld, const_cast<const T*>(views[0].as<T>()) + row * a.v,
            a.v, weights, grad);
      });
      product.Run(rows, a.e, n, {grad, n}, keys, false, q_grad + row * a.e,
                  a.e);
      product.Run(n, a.e, rows, {grad, n, true}, queries, true, to_k, a.e);
      product.Run(n, a.v, rows, {weights, n, true}, ds, true, to_v, a.v);
    }
  }
};

template <typename T>
absl::Status Backward(KernelContext& context, const AttentionShape& a,
                      absl::Span<const TensorView> inputs,
                      absl::Span<const TensorView> outputs) {
  if (a.heads == 0) return absl::OkStatus();
  Gradients<T> g;
  absl::Status s = g.Make(context, inputs, outputs);
  if (!s.ok()) return s;
  const bool few = a.heads < kFewHeads;
  const int64_t most =
      std::clamp<int64_t>(BlockRows(a, few ? kSharedScores : kBlockScores), 1,
                          std::max<int64_t>(1, a.l));
  Room<T> room = RoomFor<T>(a, most, 2);
  const int threads = few ? 1 : context.num_threads;
  if (!room.Take(context, threads)) return NoMemory();
  UseDnnlThreads(context);
  if (few) {
    for (int64_t head = 0; head < a.heads; ++head) {
      g.Head(context, a, head, most, room.Scores(0), room.Product(0));
    }
    return absl::OkStatus();
  }
  const int64_t cost = std::max<int64_t>(1, a.l * a.s * (a.e + a.v));
  ParallelFor(context, a.heads, std::max<int64_t>(1, kWork / cost),
              [&](int64_t begin, int64_t end) {
                const int thread = omp_get_thread_num() % threads;
                const SingleThread alone;
                for (int64_t head = begin; head < end; ++head) {
                  g.Head(alone, a, head, most, room.Scores(thread),
                         room.Product(thread));
                }
              });
  return absl::OkStatus();
}

}  // namespace

HOLDFAST_CPU_KERNEL(attention) {
  const AttentionShape a(attrs, *inputs[0].spec, *inputs[2].spec);
  return DispatchFloat(outputs[0].spec->dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    return Forward<T>(context, a, inputs, outputs[0].as<T>(),
                      outputs[1].as<T>());
  });
}

HOLDFAST_CPU_KERNEL(attention_backward) {
  const AttentionShape a(attrs, *inputs[1].spec, *inputs[3].spec);
  return DispatchFloat(outputs[0].spec->dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    return Backward<T>(context, a, inputs, outputs);
  });
}

}  // namespace holdfast::cpu
