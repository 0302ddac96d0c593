// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/element_transfer.h"

#include <algorithm>
#include <array>
#include <type_traits>

#include "kernels/cpu/dtype_dispatch.h"
#include "kernels/cpu/vectorised.h"
#include "kernels/elementwise.h"
#include "ops/tensor_spec.h"

namespace holdfast {
namespace {

// Calls row(view_offset, position, count) for the runs along the innermost
// dimension that make up elements [begin, begin + n).
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
  int64_t count = std::min(n, runs.sizes[last] - index[last]);
  while (true) {
    row(offset, position, count);
    position += count;
    if (position >= n) return;
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

template <typename From, typename To>
struct Gather {
  static HOLDFAST_INLINE void Run(const From* view, const StridedRuns* runs,
                                  int64_t begin, int64_t n, To* out) {
    const int64_t stride = runs->rank == 0 ? 1 : runs->strides[runs->rank - 1];
    ForEachRow(
        *runs, begin, n,
        [&](int64_t offset, int64_t position, int64_t count)
            HOLDFAST_INLINE_LAMBDA {
              const From* in = view + offset;
              To* to = out + position;
              if (stride == 1) {
#pragma GCC ivdep
                for (int64_t i = 0; i < count; ++i) {
                  to[i] = elementwise::Cast<To>(LoadElement(in + i));
                }
              } else if (stride == 0) {
                const To value = elementwise::Cast<To>(LoadElement(in));
                for (int64_t i = 0; i < count; ++i) to[i] = value;
              } else {
#pragma GCC ivdep
                for (int64_t i = 0; i < count; ++i) {
                  to[i] = elementwise::Cast<To>(LoadElement(in + i * stride));
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
                         to[i] = elementwise::Cast<To>(LoadElement(from + i));
                       }
                     } else {
                       for (int64_t i = 0; i < count; ++i) {
                         to[i * stride] =
                             elementwise::Cast<To>(LoadElement(from + i));
                       }
                     }
                   });
  }
};

}  // namespace

void GatherElements(DType view_type, const void* view, const StridedRuns& runs,
                    int64_t begin, int64_t n, DType contiguous_type,
                    void* contiguous) {
  DispatchDType(view_type, [&](auto from_tag) {
    DispatchDType(contiguous_type, [&](auto to_tag) {
      using From = typename decltype(from_tag)::type;
      using To = typename decltype(to_tag)::type;
      Vectorised<Gather<From, To>>(static_cast<const From*>(view), &runs, begin,
                                   n, static_cast<To*>(contiguous));
    });
  });
}

void ScatterElements(DType contiguous_type, const void* contiguous,
                     DType view_type, void* view, const StridedRuns& runs,
                     int64_t begin, int64_t n) {
  DispatchDType(contiguous_type, [&](auto from_tag) {
    DispatchDType(view_type, [&](auto to_tag) {
      using From = typename decltype(from_tag)::type;
      using To = typename decltype(to_tag)::type;
      Vectorised<Scatter<From, To>>(static_cast<const From*>(contiguous),
                                    static_cast<To*>(view), &runs, begin, n);
    });
  });
}

}  // namespace holdfast
