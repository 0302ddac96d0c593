// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/element_transfer.h"

#include <algorithm>
#include <array>
#include <type_traits>

#include "kernels/cpu/vectorised.h"
#include "kernels/element_convert.h"
#include "kernels/stored_dispatch.h"
#include "ops/tensor_spec.h"

namespace holdfast::cpu {
namespace {

// Calls row(view_offset, position, count) for the runs along the innermost
// dimension that make up elements [begin, begin + n). Runs may be short: those
// that are whole and follow each other in the next dimension have a loop of
// their own.
template <typename Row>
HOLDFAST_INLINE void ForEachRow(const StridedRuns& runs, int64_t begin,
                                int64_t n, Row row) {
  if (runs.rank == 0) {
    if (n > 0) row(int64_t{0}, int64_t{0}, int64_t{1});
    return;
  }
  const int last = runs.rank - 1;
  int64_t index[kMaxRank];
  int64_t offset = 0;
  for (int d = last; d >= 0; --d) {
    index[d] = begin % runs.sizes[d];
    begin /= runs.sizes[d];
    offset += index[d] * runs.strides[d];
  }
  int64_t position = 0;
  const int64_t size = runs.sizes[last];
  int64_t count = std::min(n, size - index[last]);
  while (true) {
    int64_t rows = 1, step = 0;
    if (count == size && last > 0) {
      rows = std::min((n - position) / size,
                      runs.sizes[last - 1] - index[last - 1]);
      step = runs.strides[last - 1];
      index[last - 1] += rows - 1;
    }
    for (int64_t r = 0; r < rows; ++r) {
      row(offset + r * step, position, count);
      position += count;
    }
    if (position >= n) return;
    offset += (rows - 1) * step;
    offset -= index[last] * runs.strides[last];
    index[last] = 0;
    for (int d = last - 1; d >= 0; --d) {
      offset += runs.strides[d];
      if (++index[d] < runs.sizes[d]) break;
      offset -= index[d] * runs.strides[d];
      index[d] = 0;
    }
    count = std::min(n - position, runs.sizes[last]);
  }
}

// `count` times `value`, of the `room` elements that are yet to be written:
// short runs go beyond their end, in whole vectors.
template <typename T>
HOLDFAST_INLINE void FillRow(T* to, T value, int64_t count, int64_t room) {
  constexpr int64_t kChunk = 64 / sizeof(T);
  if (count <= 8 * kChunk && count + kChunk <= room) {
    for (int64_t i = 0; i < count; i += kChunk) {
      for (int64_t j = 0; j < kChunk; ++j) to[i + j] = value;
    }
    return;
  }
  for (int64_t i = 0; i < count; ++i) to[i] = value;
}

template <typename From, typename To>
struct Gather {
  static HOLDFAST_INLINE void Run(const From* view, const StridedRuns* runs,
                                  int64_t begin, int64_t n, To* out) {
    const int64_t stride = runs->rank == 0 ? 1 : runs->strides[runs->rank - 1];
    if (stride == 0) {
      // A loop of its own: its runs are over before the choice between several
      // would be made.
      ForEachRow(*runs, begin, n,
                 [&](int64_t offset, int64_t position, int64_t count)
                     HOLDFAST_INLINE_LAMBDA {
                       FillRow(out + position,
                               Convert<To>(LoadElement(view + offset)), count,
                               n - position);
                     });
      return;
    }
    ForEachRow(*runs, begin, n,
               [&](int64_t offset, int64_t position, int64_t count)
                   HOLDFAST_INLINE_LAMBDA {
                     const From* in = view + offset;
                     To* to = out + position;
                     if (stride == 1) {
#pragma GCC ivdep
                       for (int64_t i = 0; i < count; ++i) {
                         to[i] = Convert<To>(LoadElement(in + i));
                       }
                     } else {
#pragma GCC ivdep
                       for (int64_t i = 0; i < count; ++i) {
                         to[i] = Convert<To>(LoadElement(in + i * stride));
                       }
                     }
                   });
  }
};

template <typename From, typename To>
struct Scatter {
  static HOLDFAST_INLINE void Run(const From* in, To* view,
                                  const StridedRuns* runs, int64_t begin,
                                  int64_t n) {
    const int64_t stride = runs->rank == 0 ? 1 : runs->strides[runs->rank - 1];
    ForEachRow(*runs, begin, n,
               [&](int64_t offset, int64_t position, int64_t count)
                   HOLDFAST_INLINE_LAMBDA {
                     const From* from = in + position;
                     To* to = view + offset;
                     if (stride == 1) {
#pragma GCC ivdep
                       for (int64_t i = 0; i < count; ++i) {
                         to[i] = Convert<To>(LoadElement(from + i));
                       }
                     } else {
                       for (int64_t i = 0; i < count; ++i) {
                         to[i * stride] = Convert<To>(LoadElement(from + i));
                       }
                     }
                   });
  }
};

// Whether a loop is compiled for a pair of types; all other pairs go by way of
// a third type. Real types among the six that are computed in convert directly;
// a narrow one to and from its compute type; complex to and from its parts'
// type, the other complex type, and bool.
template <typename From, typename To>
constexpr bool IsDirect() {
  constexpr bool kFromNarrow = kIsNarrow<From>, kToNarrow = kIsNarrow<To>;
  if constexpr (kFromNarrow || kToNarrow) {
    return std::is_same_v<From, To> ||
           (!kToNarrow && std::is_same_v<To, ComputeOf<From>>) ||
           (!kFromNarrow && std::is_same_v<From, ComputeOf<To>>);
  } else if constexpr (kIsComplex<From> && kIsComplex<To>) {
    return true;
  } else if constexpr (kIsComplex<From>) {
    return std::is_same_v<To, bool> || std::is_same_v<From, Complex<To>>;
  } else if constexpr (kIsComplex<To>) {
    return std::is_same_v<To, Complex<From>>;
  } else {
    return true;
  }
}

// Where to go first on the way from one type to another.
DType StepBetween(DType from, DType to) {
  if (ComputeType(from) != from) return ComputeType(from);
  if (IsComplex(from)) return RealType(from);
  if (ComputeType(to) != to) return ComputeType(to);
  return RealType(to);
}

// Calls fn(TypeTag<From>, TypeTag<To>) if the pair is direct; else false.
template <typename F>
bool DispatchDirect(DType from, DType to, F&& fn) {
  bool found = false;
  DispatchStored(from, [&](auto from_tag) {
    DispatchStored(to, [&](auto to_tag) {
      using From = typename decltype(from_tag)::type;
      using To = typename decltype(to_tag)::type;
      if constexpr (IsDirect<From, To>()) {
        found = true;
        fn(from_tag, to_tag);
      }
    });
  });
  return found;
}

constexpr int64_t kStage = 1024;  // elements converted at a time by two steps
struct alignas(64) StageBuffer {
  char bytes[kStage * 16];
};

}  // namespace

void GatherElements(DType view_type, const void* view, const StridedRuns& runs,
                    int64_t begin, int64_t n, DType contiguous_type,
                    void* contiguous) {
  const bool direct = DispatchDirect(
      view_type, contiguous_type, [&](auto from_tag, auto to_tag) {
        using From = typename decltype(from_tag)::type;
        using To = typename decltype(to_tag)::type;
        Vectorised<Gather<From, To>>(static_cast<const From*>(view), &runs,
                                     begin, n, static_cast<To*>(contiguous));
      });
  if (direct) return;
  const DType step = StepBetween(view_type, contiguous_type);
  StageBuffer stage;
  char* out = static_cast<char*>(contiguous);
  for (int64_t i = 0; i < n; i += kStage) {
    const int64_t count = std::min(kStage, n - i), one = 1;
    GatherElements(view_type, view, runs, begin + i, count, step, stage.bytes);
    GatherElements(step, stage.bytes, {1, &count, &one}, 0, count,
                   contiguous_type, out + i * ItemSize(contiguous_type));
  }
}

void ScatterElements(DType contiguous_type, const void* contiguous,
                     DType view_type, void* view, const StridedRuns& runs,
                     int64_t begin, int64_t n) {
  const bool direct = DispatchDirect(
      contiguous_type, view_type, [&](auto from_tag, auto to_tag) {
        using From = typename decltype(from_tag)::type;
        using To = typename decltype(to_tag)::type;
        Vectorised<Scatter<From, To>>(static_cast<const From*>(contiguous),
                                      static_cast<To*>(view), &runs, begin, n);
      });
  if (direct) return;
  const DType step = StepBetween(contiguous_type, view_type);
  StageBuffer stage;
  const char* in = static_cast<const char*>(contiguous);
  for (int64_t i = 0; i < n; i += kStage) {
    const int64_t count = std::min(kStage, n - i), one = 1;
    GatherElements(contiguous_type, in + i * ItemSize(contiguous_type),
                   {1, &count, &one}, 0, count, step, stage.bytes);
    ScatterElements(step, stage.bytes, view_type, view, runs, begin + i, count);
  }
}

}  // namespace holdfast::cpu
