// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
// where and clamp: elementwise ops whose operands are not all of one kind.
#include <algorithm>
#include <limits>

#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/elementwise_kernel.h"
#include "kernels/cpu/item_dispatch.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/strided_loop.h"
#include "kernels/cpu/vectorised.h"
#include "kernels/elementwise.h"
#include "kernels/scalar_value.h"

namespace holdfast::cpu {
namespace {

// Only moves bits, so that one loop serves all types of a size.
template <typename Bits>
struct Select {
  static HOLDFAST_INLINE void Run(const uint8_t* condition, const void* a,
                                  const void* b, void* out, int64_t n) {
    const Bits* yes = static_cast<const Bits*>(a);
    const Bits* no = static_cast<const Bits*>(b);
    Bits* to = static_cast<Bits*>(out);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      // Both loads unconditional: a blend instead of a branch.
      const Bits y = yes[i], o = no[i];
      to[i] = condition[i] != 0 ? y : o;
    }
  }
};

template <typename T>
struct ClampLoop {
  static HOLDFAST_INLINE void Run(const void* in, void* out, T low, T high,
                                  int64_t n) {
    const T* a = static_cast<const T*>(in);
    T* to = static_cast<T*>(out);
    if (low != low || high != high) {
      for (int64_t i = 0; i < n; ++i) {
        to[i] = elementwise::Clamp(a[i], low, high);
      }
      return;
    }
    // Without bounds that are NaN one comparison each does, which keeps NaN.
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      const T raised = a[i] < low ? low : a[i];
      to[i] = raised > high ? high : raised;
    }
  }
};

}  // namespace

HOLDFAST_CPU_KERNEL(where) {
  const DType type = outputs[0].spec->dtype;
  const size_t size = ItemSize(type);
  const StridedLoop walk({outputs[0], inputs[0], inputs[1], inputs[2]});
  ParallelFor(
      context, walk.numel(), kElementwiseGrain,
      [&](int64_t begin, int64_t end) {
        for (int64_t i = begin, n; i < end; i += n) {
          BlockBuffer buffers[4];
          n = walk.BlockSize(i, end);
          const uint8_t* condition = static_cast<const uint8_t*>(
              walk.Load(1, DType::kBool, i, n, &buffers[1]));
          const void* a = walk.Load(2, type, i, n, &buffers[2]);
          const void* b = walk.Load(3, type, i, n, &buffers[3]);
          void* to = walk.Target(0, type, i, &buffers[0]);
          if (size == 1) Vectorised<Select<uint8_t>>(condition, a, b, to, n);
          if (size == 2) Vectorised<Select<uint16_t>>(condition, a, b, to, n);
          if (size == 4) Vectorised<Select<uint32_t>>(condition, a, b, to, n);
          if (size == 8) Vectorised<Select<uint64_t>>(condition, a, b, to, n);
          if (size == 16) Vectorised<Select<Item16>>(condition, a, b, to, n);
          walk.Store(0, type, i, n, to);
        }
      },
      kBlock);
  return absl::OkStatus();
}

HOLDFAST_CPU_KERNEL(clamp) {
  const AttrValue& min = attrs.Get(0);
  const AttrValue& max = attrs.Get(1);
  const DType type = outputs[0].spec->dtype;
  return DispatchDType(type, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, bool>) {
      return UnsupportedDType<absl::Status>();
    } else {
      using Limits = std::numeric_limits<T>;
      const T low = !IsNone(min)                  ? SaturatedScalar<T>(min)
                    : std::is_floating_point_v<T> ? -Limits::infinity()
                                                  : Limits::min();
      const T high = !IsNone(max)                  ? SaturatedScalar<T>(max)
                     : std::is_floating_point_v<T> ? Limits::infinity()
                                                   : Limits::max();
      const StridedLoop walk({outputs[0], inputs[0]});
      ParallelFor(
          context, walk.numel(), kElementwiseGrain,
          [&](int64_t begin, int64_t end) {
            for (int64_t i = begin, n; i < end; i += n) {
              BlockBuffer from, buffer;
              n = walk.BlockSize(i, end);
              void* to = walk.Target(0, type, i, &buffer);
              Vectorised<ClampLoop<T>>(walk.Load(1, type, i, n, &from), to, low,
                                       high, n);
              walk.Store(0, type, i, n, to);
            }
          },
          kBlock);
      return absl::OkStatus();
    }
  });
}

}  // namespace holdfast::cpu
