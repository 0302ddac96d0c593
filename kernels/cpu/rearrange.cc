// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// flip, tril, triu: copies that move or drop elements, whatever their type.
#include <algorithm>
#include <cstring>

#include "absl/status/status.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/item_dispatch.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/strided_cursor.h"
#include "kernels/cpu/vectorised.h"

namespace holdfast::cpu {
namespace {

template <typename U>
struct ReverseBody {
  static HOLDFAST_INLINE void Run(const U* in, U* out, int64_t n) {
    for (int64_t j = 0; j < n; ++j) out[j] = in[-j];
  }
};

template <typename U>
void CopyRow(const U* in, int64_t stride, U* out, int64_t n) {
  if (stride == 1) {
    std::memcpy(out, in, n * sizeof(U));
  } else if (stride == -1) {
    Vectorised<ReverseBody<U>>(in, out, n);
  } else {
    for (int64_t j = 0; j < n; ++j) out[j] = in[j * stride];
  }
}

// kLower: row i keeps columns up to i + diagonal, else from there on.
template <bool kLower>
absl::Status Triangle(KernelContext& context, const Attrs& attrs,
                      const TensorView& input, const TensorView& output) {
  const TensorSpec& in = *input.spec;
  if (in.numel() == 0) return absl::OkStatus();
  const int r = in.rank();
  const int64_t rows = in.shape[r - 2], cols = in.shape[r - 1];
  // Any int64 may come; beyond these nothing changes.
  const int64_t diagonal = std::clamp(attrs.Int("diagonal"), -rows, cols);
  const int64_t stride = in.strides[r - 1];
  const absl::Span<const int64_t> outer =
      absl::MakeSpan(in.shape).subspan(0, r - 1);
  return DispatchItem(in.dtype, [&](auto tag) -> absl::Status {
    using U = typename decltype(tag)::type;
    ParallelFor(context, NumElements(outer), std::max<int64_t>(1, 32768 / cols),
                [&](int64_t b, int64_t e) {
                  StridedCursor<1> at(outer, {in.strides.data()}, b);
                  for (int64_t row = b; row < e; ++row, at.Next()) {
                    const U* from = input.as<U>() + at[0];
                    U* to = output.as<U>() + row * cols;
                    // First column on the right of the cut.
                    const int64_t cut = std::clamp<int64_t>(
                        at.index(r - 2) + diagonal + (kLower ? 1 : 0), 0, cols);
                    if (kLower) {
                      CopyRow(from, stride, to, cut);
                      std::fill(to + cut, to + cols, U{});
                    } else {
                      std::fill(to, to + cut, U{});
                      CopyRow(from + cut * stride, stride, to + cut,
                              cols - cut);
                    }
                  }
                });
    return absl::OkStatus();
  });
}

}  // namespace

HOLDFAST_CPU_KERNEL(flip) {
  const TensorSpec& in = *inputs[0].spec;
  if (in.numel() == 0) return absl::OkStatus();
  Dims strides = in.strides;
  int64_t origin = 0;
  for (int64_t dim : attrs.Ints("dims")) {
    absl::StatusOr<int> d = NormalizeDim(dim, in.rank());
    if (!d.ok()) return d.status();
    if (in.rank() == 0) break;
    origin += (in.shape[*d] - 1) * in.strides[*d];
    strides[*d] = -in.strides[*d];
  }
  const bool scalar = in.rank() == 0;
  const int64_t cols = scalar ? 1 : in.shape.back();
  const int64_t step = scalar ? 1 : strides.back();
  const absl::Span<const int64_t> outer =
      absl::MakeSpan(in.shape).subspan(0, scalar ? 0 : in.rank() - 1);
  return DispatchItem(in.dtype, [&](auto tag) -> absl::Status {
    using U = typename decltype(tag)::type;
    const U* from = inputs[0].as<U>() + origin;
    U* to = outputs[0].as<U>();
    // Ranges of elements: a row may be all there is.
    ParallelFor(context, in.numel(), 32768, [&](int64_t b, int64_t e) {
      StridedCursor<1> at(outer, {strides.data()}, b / cols);
      for (int64_t i = b, col = b % cols; i < e; col = 0, at.Next()) {
        const int64_t n = std::min(cols - col, e - i);
        CopyRow(from + at[0] + col * step, step, to + i, n);
        i += n;
      }
    });
    return absl::OkStatus();
  });
}

HOLDFAST_CPU_KERNEL(tril) {
  return Triangle<true>(context, attrs, inputs[0], outputs[0]);
}
HOLDFAST_CPU_KERNEL(triu) {
  return Triangle<false>(context, attrs, inputs[0], outputs[0]);
}

}  // namespace holdfast::cpu
