// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/copy.h"

#include <algorithm>
#include <cassert>
#include <cstring>

#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/element_transfer.h"
#include "kernels/cpu/elementwise_kernel.h"
#include "kernels/cpu/item_dispatch.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/strided_loop.h"
#include "kernels/cpu/vectorised.h"
#include "kernels/dtype_dispatch.h"

namespace holdfast::cpu {
namespace {

void CopyBytes(const KernelContext& context, const void* from, void* to,
               int64_t bytes) {
  if (from == to) return;
  constexpr int64_t kGrainBytes = kElementwiseGrain * 8;
  if (bytes <= kGrainBytes) {
    std::memcpy(to, from, bytes);
    return;
  }
  ParallelFor(
      context, bytes, kGrainBytes,
      [&](int64_t begin, int64_t end) {
        std::memcpy(static_cast<char*>(to) + begin,
                    static_cast<const char*>(from) + begin, end - begin);
      },
      4096);
}

// A matrix, or a stack of them, that `dst` has row by row and `src` column by
// column: goes by tiles whose lines stay in the cache on both sides.
template <typename T>
void TransposeTiles(const KernelContext& context, const T* src, T* dst,
                    int64_t stack, int64_t src_step, int64_t rows, int64_t cols,
                    int64_t src_col_stride) {
  constexpr int64_t kTile = 64 / sizeof(T) < 16 ? 16 : 64 / sizeof(T);
  const int64_t strips = (rows + kTile - 1) / kTile;
  const int64_t grain = std::max<int64_t>(
      1, kElementwiseGrain / (kTile * std::max<int64_t>(cols, 1)));
  ParallelFor(context, stack * strips, grain, [&](int64_t begin, int64_t end) {
    for (int64_t s = begin; s < end; ++s) {
      const T* from = src + s / strips * src_step;
      T* to = dst + s / strips * rows * cols;
      const int64_t first_row = s % strips * kTile;
      const int64_t last_row = std::min(rows, first_row + kTile);
      for (int64_t c0 = 0; c0 < cols; c0 += kTile) {
        const int64_t c1 = std::min(cols, c0 + kTile);
        for (int64_t r = first_row; r < last_row; ++r) {
          for (int64_t c = c0; c < c1; ++c) {
            to[r * cols + c] = from[c * src_col_stride + r];
          }
        }
      }
    }
  });
}

template <typename T>
struct FillBody {
  static HOLDFAST_INLINE void Run(T value, T* to, int64_t n) {
    for (int64_t i = 0; i < n; ++i) to[i] = value;
  }
};

// Handles the copies that TransposeTiles can do; false for all others.
bool TryTranspose(const KernelContext& context, const TensorView& src,
                  const TensorView& dst) {
  const TensorSpec& from = *src.spec;
  const int rank = from.rank();
  if (rank < 2 || from.dtype != dst.spec->dtype ||
      !SameShape(from, *dst.spec) || DenseSize(*dst.spec) < 0) {
    return false;
  }
  // Columns may take several dimensions, as in [N, H, W, C] seen as
  // [N, C, H, W].
  int inner = rank - 1;
  int64_t cols = from.shape[inner];
  while (inner > 1 &&
         from.strides[inner - 1] == from.strides[rank - 1] * cols) {
    cols *= from.shape[--inner];
  }
  const int64_t rows = from.shape[inner - 1];
  if (from.strides[inner - 1] != 1 || rows < 8 || cols < 8) return false;
  int64_t stack = 1;
  int64_t step = 0;
  for (int d = inner - 2; d >= 0; --d) {
    if (from.shape[d] == 1) continue;
    if (stack > 1 && from.strides[d] != step * stack) return false;
    if (stack == 1) step = from.strides[d];
    stack *= from.shape[d];
  }
  const int64_t col_stride = from.strides[rank - 1];
  switch (ItemSize(from.dtype)) {
    case 1:
      TransposeTiles(context, src.as<uint8_t>(), dst.as<uint8_t>(), stack, step,
                     rows, cols, col_stride);
      return true;
    case 2:
      TransposeTiles(context, src.as<uint16_t>(), dst.as<uint16_t>(), stack,
                     step, rows, cols, col_stride);
      return true;
    case 4:
      TransposeTiles(context, src.as<uint32_t>(), dst.as<uint32_t>(), stack,
                     step, rows, cols, col_stride);
      return true;
    case 8:
      TransposeTiles(context, src.as<uint64_t>(), dst.as<uint64_t>(), stack,
                     step, rows, cols, col_stride);
      return true;
    default:
      return false;
  }
}

}  // namespace

void CopyStrided(const KernelContext& context, const TensorView& src,
                 const TensorView& dst) {
  const bool same_type = src.spec->dtype == dst.spec->dtype;
  const int64_t n = DenseSize(*dst.spec);
  if (same_type && n >= 0 && DenseSize(*src.spec) == n &&
      SameShape(*src.spec, *dst.spec)) {
    CopyBytes(context, src.data, dst.data, n * ItemSize(src.spec->dtype));
    return;
  }
  if (TryTranspose(context, src, dst)) return;
  const StridedLoop walk({dst, src});
  const DType type = dst.spec->dtype;
  if (walk.linear(0)) {
    const size_t item = ItemSize(type);
    if (same_type && walk.linear(1)) {
      CopyBytes(context, src.data, dst.data, walk.numel() * item);
      return;
    }
    ParallelFor(
        context, walk.numel(), kElementwiseGrain,
        [&](int64_t begin, int64_t end) {
          walk.LoadInto(1, type, begin, end - begin,
                        dst.as<char>() + begin * item);
        },
        kBlock);
    return;
  }
  ParallelFor(
      context, walk.numel(), kElementwiseGrain,
      [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i += kBlock) {
          BlockBuffer buffer;
          const int64_t count = std::min(kBlock, end - i);
          walk.Store(0, type, i, count, walk.Load(1, type, i, count, &buffer));
        }
      },
      kBlock);
}

namespace {

// The number as an element of any type.
struct Element {
  alignas(16) char bytes[16] = {};

  Element(const AttrValue& value, DType dtype) {
    const int64_t one = 1;
    auto convert = [&](DType from, const void* number) {
      GatherElements(from, number, {1, &one, &one}, 0, 1, dtype, bytes);
    };
    if (const bool* b = std::get_if<bool>(&value)) {
      convert(DType::kBool, b);
    } else if (const int64_t* i = std::get_if<int64_t>(&value)) {
      convert(DType::kInt64, i);
    } else {
      convert(DType::kFloat64, &std::get<double>(value));
    }
  }
};

}  // namespace

void FillStrided(const KernelContext& context, const AttrValue& value,
                 const TensorView& dst) {
  const DType dtype = dst.spec->dtype;
  const Element number(value, dtype);
  absl::Status always = DispatchItem(dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    T element;
    std::memcpy(&element, number.bytes, sizeof element);
    const int64_t n = DenseSize(*dst.spec);
    if (n >= 0) {
      T* to = dst.as<T>();
      ParallelFor(context, n, kElementwiseGrain,
                  [&](int64_t begin, int64_t end) {
                    Vectorised<FillBody<T>>(element, to + begin, end - begin);
                  });
      return absl::OkStatus();
    }
    const StridedLoop walk({dst});
    BlockBuffer buffer;
    std::fill_n(reinterpret_cast<T*>(buffer.bytes),
                std::min(kBlock, walk.numel()), element);
    ParallelFor(
        context, walk.numel(), kElementwiseGrain,
        [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; i += kBlock) {
            walk.Store(0, dtype, i, std::min(kBlock, end - i), buffer.bytes);
          }
        },
        kBlock);
    return absl::OkStatus();
  });
  assert(always.ok());
  static_cast<void>(always);
}

absl::Status MakeContiguous(KernelContext& context, const TensorView& view,
                            DType dtype, TensorSpec* spec, TensorView* out) {
  if (view.spec->dtype == dtype && DenseSize(*view.spec) >= 0) {
    *out = view;
    return absl::OkStatus();
  }
  *spec = ContiguousSpec(dtype, view.spec->shape);
  out->spec = spec;
  out->data = context.Scratch(std::max<int64_t>(spec->nbytes(), 1));
  if (out->data == nullptr) {
    return absl::ResourceExhaustedError(
        "no scratch memory for a contiguous copy of " + view.spec->ToString());
  }
  CopyStrided(context, view, *out);
  return absl::OkStatus();
}

HOLDFAST_CPU_KERNEL(to) {
  CopyStrided(context, inputs[0], outputs[0]);
  return absl::OkStatus();
}

HOLDFAST_CPU_KERNEL(clone) {
  CopyStrided(context, inputs[0], outputs[0]);
  return absl::OkStatus();
}

// Between devices the runner copies.
HOLDFAST_CPU_KERNEL(to_device) {
  CopyStrided(context, inputs[0], outputs[0]);
  return absl::OkStatus();
}

HOLDFAST_CPU_KERNEL(copy) {
  CopyStrided(context, inputs[1], inputs[0]);
  return absl::OkStatus();
}

HOLDFAST_CPU_KERNEL(fill) {
  FillStrided(context, attrs.Get(0), inputs[0]);
  return absl::OkStatus();
}

}  // namespace holdfast::cpu
