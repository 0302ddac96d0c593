// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// What is done along the rows of IndexLoops: reading elements at indices
// (Gather), writing or adding them there (Scatter). Each index is checked at
// the load that uses it.
// Thread-safety: pure functions over the tensors given.
#ifndef HOLDFAST_KERNELS_CPU_INDEX_ROWS_H_
#define HOLDFAST_KERNELS_CPU_INDEX_ROWS_H_

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "absl/status/status.h"
#include "kernels/cpu/index_loops.h"
#include "kernels/cpu/load_once.h"
#include "kernels/cpu/vectorised.h"
#include "kernels/dtype_dispatch.h"

namespace holdfast::cpu {

HOLDFAST_INLINE bool InRange(int64_t index, int64_t size) {
  return static_cast<uint64_t>(index) < static_cast<uint64_t>(size);
}

// One index counts for the whole row.
inline bool IndexPerRow(const IndexLoops& loops) {
  return loops.inner() != loops.dim && loops.index[loops.inner()] == 0;
}

// The numbers of an inner loop, passed by value: seen through a reference, they
// would be loaded again after every store.
struct RowSteps {
  explicit RowSteps(const IndexLoops& loops)
      : data(loops.data[loops.inner()]),
        index(loops.index[loops.inner()]),
        other(loops.other[loops.inner()]),
        stride(loops.data_stride),
        size(loops.data_size) {}
  int64_t data, index, other;
  int64_t stride, size;
};

template <typename U, typename I>
void GatherElements(RowSteps steps, const U* from, const I* index, U* to,
                    int64_t n, FirstBadIndex* bad) {
  for (int64_t j = 0; j < n; ++j) {
    const int64_t at = LoadOnce(index + j * steps.index);
    if (!InRange(at, steps.size)) return bad->Record(at);
    to[j * steps.other] = from[j * steps.data + at * steps.stride];
  }
}

template <typename U>
void CopyElements(RowSteps steps, const U* from, U* to, int64_t n) {
  if (steps.data == 1 && steps.other == 1) {
    std::memcpy(to, from, n * sizeof(U));
    return;
  }
  for (int64_t j = 0; j < n; ++j) to[j * steps.other] = from[j * steps.data];
}

// Whole rows of a matrix. They lie anywhere: the next ones are asked for ahead.
template <typename U, typename I>
void GatherRows(const KernelContext& context, const IndexLoops& loops,
                const RowSteps& steps, const U* data, const I* index, U* out,
                FirstBadIndex* bad) {
  const int64_t n = loops.shape[1], step = loops.index[0];
  const int64_t bytes = n * static_cast<int64_t>(sizeof(U));
  ParallelFor(context, loops.shape[0], std::max<int64_t>(1, 16384 / n),
              [&](int64_t b, int64_t e) {
                constexpr int64_t kAhead = 4, kLine = 64;
                for (int64_t i = b; i < e; ++i) {
                  const int64_t next =
                      LoadOnce(index + std::min(i + kAhead, e - 1) * step);
                  if (InRange(next, steps.size)) {
                    const char* line = reinterpret_cast<const char*>(
                        data + next * steps.stride);
                    for (int64_t k = 0; k < std::min<int64_t>(bytes, 1024);
                         k += kLine) {
                      __builtin_prefetch(line + k);
                    }
                  }
                  const int64_t at = LoadOnce(index + i * step);
                  if (!InRange(at, steps.size)) return bad->Record(at);
                  std::memcpy(out + i * loops.other[0],
                              data + at * steps.stride, bytes);
                }
              });
}

template <typename U, typename I>
absl::Status Gather(KernelContext& context, const Attrs& attrs, int dim,
                    const IndexLoops& loops, const U* data, const I* index,
                    U* out) {
  const RowSteps steps(loops);
  const bool per_row = IndexPerRow(loops);
  FirstBadIndex bad;
  if (per_row && loops.inner() == 1 && loops.dim == 0 && steps.data == 1 &&
      steps.other == 1 && loops.shape[0] >= 2 * context.num_threads) {
    GatherRows(context, loops, steps, data, index, out, &bad);
    return bad.ToStatus(attrs, dim, loops.data_size);
  }
  ForEachIndexRow(
      context, loops, /*ordered=*/false,
      [&](int64_t d, int64_t i, int64_t o, int64_t n) {
        if (!per_row) {
          return GatherElements(steps, data + d, index + i, out + o, n, &bad);
        }
        const int64_t at = LoadOnce(index + i);
        if (!InRange(at, steps.size)) return bad.Record(at);
        CopyElements(steps, data + d + at * steps.stride, out + o, n);
      });
  return bad.ToStatus(attrs, dim, loops.data_size);
}

struct Assign {
  template <typename T>
  static void Apply(T* to, const T* from) {
    *to = *from;
  }
};

struct Add {
  template <typename T>
  static void Apply(T* to, const T* from) {
    if constexpr (std::is_same_v<T, bool>) {
      *to = LoadElement(to) | LoadElement(from);
    } else if constexpr (std::is_integral_v<T>) {
      using U = std::make_unsigned_t<T>;  // wraps instead of overflowing
      *to = static_cast<T>(static_cast<U>(*to) + static_cast<U>(*from));
    } else {
      *to += *from;
    }
  }
};

template <typename Op, typename T, typename I>
void ScatterElements(RowSteps steps, T* to, const I* index, const T* from,
                     int64_t n, FirstBadIndex* bad) {
  if (steps.data == 0 && steps.index == 1 && steps.other == 1 &&
      steps.stride == 1) {
    for (int64_t j = 0; j < n; ++j) {
      // Asked for ahead; out of range it is checked when its turn comes.
      const int64_t next = LoadOnce(index + std::min(j + 16, n - 1));
      __builtin_prefetch(InRange(next, steps.size) ? to + next : to, 1);
      const int64_t at = LoadOnce(index + j);
      if (!InRange(at, steps.size)) return bad->Record(at);
      Op::Apply(to + at, from + j);
    }
    return;
  }
  for (int64_t j = 0; j < n; ++j) {
    const int64_t at = LoadOnce(index + j * steps.index);
    if (!InRange(at, steps.size)) return bad->Record(at);
    Op::Apply(to + j * steps.data + at * steps.stride, from + j * steps.other);
  }
}

template <typename Op, typename T>
void ApplyElements(RowSteps steps, T* to, const T* from, int64_t n) {
  if (steps.data == 1 && steps.other == 1) {
    for (int64_t j = 0; j < n; ++j) Op::Apply(to + j, from + j);
    return;
  }
  for (int64_t j = 0; j < n; ++j) {
    Op::Apply(to + j * steps.data, from + j * steps.other);
  }
}

// `ordered`: an index may come more than once.
template <typename Op, typename T, typename I>
absl::Status Scatter(KernelContext& context, const Attrs& attrs, int dim,
                     const IndexLoops& loops, const T* src, const I* index,
                     T* out, bool ordered = true) {
  const RowSteps steps(loops);
  const bool per_row = IndexPerRow(loops);
  FirstBadIndex bad;
  ForEachIndexRow(
      context, loops, ordered, [&](int64_t d, int64_t i, int64_t s, int64_t n) {
        if (!per_row) {
          return ScatterElements<Op>(steps, out + d, index + i, src + s, n,
                                     &bad);
        }
        const int64_t at = LoadOnce(index + i);
        if (!InRange(at, steps.size)) return bad.Record(at);
        ApplyElements<Op>(steps, out + d + at * steps.stride, src + s, n);
      });
  return bad.ToStatus(attrs, dim, loops.data_size);
}

}  // namespace holdfast::cpu

#endif  // HOLDFAST_KERNELS_CPU_INDEX_ROWS_H_
