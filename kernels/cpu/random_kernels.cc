// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <utility>

#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/random.h"
#include "kernels/cpu/strided_loop.h"
#include "kernels/cpu/vectorised.h"
#include "kernels/dtype_dispatch.h"
#include "kernels/philox.h"
#include "kernels/poisson.h"
#include "ops/infer.h"

namespace holdfast::cpu {
namespace {

constexpr int64_t kRandomGrain = 16384;  // costlier than a plain element

// Writes block(begin, n, T* buffer) to a floating point view of any strides.
template <typename Block>
absl::Status FillFloat(const KernelContext& context, const TensorView& out,
                       Block block) {
  const StridedLoop walk({out}, StridedLoop::Order::kLogical);
  return DispatchFloat(out.spec->dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    ParallelFor(
        context, walk.numel(), kRandomGrain,
        [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; i += kBlock) {
            BlockBuffer buffer;
            const int64_t n = std::min(kBlock, end - i);
            // A whole block may be written in place; the last goes through the
            // buffer, because generators write past n.
            void* to = n == kBlock ? walk.Target(0, kDTypeOf<T>, i, &buffer)
                                   : buffer.bytes;
            block(i, n, static_cast<T*>(to));
            walk.Store(0, kDTypeOf<T>, i, n, to);
          }
        },
        kBlock);
    return absl::OkStatus();
  });
}

template <typename T>
struct DropoutBody {
  static HOLDFAST_INLINE void Run(const uint32_t* words, uint64_t bound,
                                  T scale, const T* in, T* out, uint8_t* mask,
                                  int64_t n) {
    if (bound > 0xffffffffu) {  // p == 0; the loop compares 32 bits
      for (int64_t i = 0; i < n; ++i) mask[i] = 1;
#pragma GCC ivdep
      for (int64_t i = 0; i < n; ++i) out[i] = in[i];
      return;
    }
    const uint32_t below = static_cast<uint32_t>(bound);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      const T kept = in[i] * scale;
      out[i] = words[i] < below ? kept : T(0);
    }
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) mask[i] = words[i] < below;
  }
};

// Sorts by the digits above bit `low_bit`, least significant first; the
// result is in *a, `b` is as large. False if the kernel is to stop.
bool RadixSort(const KernelContext& context, uint64_t** a, uint64_t** b,
               int64_t n, int low_bit) {
  constexpr int64_t kLook = int64_t{1} << 18;
  for (int shift = low_bit; shift < 64; shift += 8) {
    int64_t start[256] = {};
    const uint64_t* from = *a;
    const auto count = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) ++start[from[i] >> shift & 255];
    };
    if (!SerialFor(context, n, kLook, count)) return false;
    int64_t sum = 0;
    for (int64_t& s : start) sum += std::exchange(s, sum);
    uint64_t* to = *b;
    const auto distribute = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        to[start[from[i] >> shift & 255]++] = from[i];
      }
    };
    if (!SerialFor(context, n, kLook, distribute)) return false;
    std::swap(*a, *b);
  }
  return true;
}

}  // namespace

HOLDFAST_CPU_KERNEL(rand) {
  const PhiloxState philox = context.philox;
  return FillFloat(context, outputs[0], [&](int64_t i, int64_t n, auto* to) {
    UniformBlock(philox, i, n, to);
  });
}

HOLDFAST_CPU_KERNEL(randn) {
  const PhiloxState philox = context.philox;
  return FillFloat(context, outputs[0], [&](int64_t i, int64_t n, auto* to) {
    NormalBlock(philox, i, n, to);
  });
}

HOLDFAST_CPU_KERNEL(uniform) {
  const PhiloxState philox = context.philox;
  const double low = attrs.Float("low"), high = attrs.Float("high");
  return FillFloat(context, inputs[0], [&](int64_t i, int64_t n, auto* to) {
    using T = std::decay_t<decltype(*to)>;
    const T first = static_cast<T>(low), last = static_cast<T>(high);
    UniformBlock(philox, i, n, to);
    for (int64_t j = 0; j < n; ++j) {
      const T x = first + to[j] * (last - first);
      to[j] = x < last ? x : first;  // rounding can reach the open end
    }
  });
}

HOLDFAST_CPU_KERNEL(normal) {
  const PhiloxState philox = context.philox;
  const double mean = attrs.Float("mean"), std = attrs.Float("std");
  return FillFloat(context, inputs[0], [&](int64_t i, int64_t n, auto* to) {
    using T = std::decay_t<decltype(*to)>;
    NormalBlock(philox, i, n, to);
    for (int64_t j = 0; j < n; ++j) {
      to[j] = static_cast<T>(mean) + to[j] * static_cast<T>(std);
    }
  });
}

HOLDFAST_CPU_KERNEL(randint) {
  const PhiloxState philox = context.philox;
  const int64_t low = attrs.Int("low");
  const uint64_t range =
      static_cast<uint64_t>(attrs.Int("high")) - static_cast<uint64_t>(low);
  const StridedLoop walk({outputs[0]}, StridedLoop::Order::kLogical);
  ParallelFor(
      context, walk.numel(), kRandomGrain,
      [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i += kBlock) {
          BlockBuffer buffer;
          const int64_t n = std::min(kBlock, end - i);
          uint64_t* to = reinterpret_cast<uint64_t*>(buffer.bytes);
          IntegerBlock(philox, i, n, range, to);
          for (int64_t j = 0; j < n; ++j) to[j] += static_cast<uint64_t>(low);
          walk.Store(0, DType::kInt64, i, n, to);
        }
      },
      kBlock);
  return absl::OkStatus();
}

// Orders 0 .. n-1 by a random key each: as a sort it runs on any device with
// the same result. Key and number share 64 bits: the number takes what it
// needs, which leaves ties too rare to matter.
HOLDFAST_CPU_KERNEL(randperm) {
  const int64_t n = outputs[0].spec->numel();
  if (n == 0) return absl::OkStatus();
  int index_bits = 0;
  while ((int64_t{1} << index_bits) < n) ++index_bits;
  uint64_t* keys = static_cast<uint64_t*>(context.Scratch(n * 16));
  if (keys == nullptr) {
    return absl::ResourceExhaustedError(
        "[randperm] no scratch memory for the keys.");
  }
  const PhiloxState philox = context.philox;
  const uint64_t index_mask = (uint64_t{1} << index_bits) - 1;
  ParallelFor(
      context, n, kRandomGrain,
      [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i += kBlock) {
          const int64_t count = std::min(kBlock, end - i);
          IntegerBlock(philox, i, count, 0, keys + i);
          for (int64_t j = i; j < i + count; ++j) {
            keys[j] = (keys[j] & ~index_mask) | static_cast<uint64_t>(j);
          }
        }
      },
      kBlock);
  uint64_t* spare = keys + n;
  if (!RadixSort(context, &keys, &spare, n, index_bits)) {
    return absl::AbortedError("stopped");
  }
  for (int64_t i = 0; i < n; ++i) keys[i] &= index_mask;
  const StridedLoop walk({outputs[0]}, StridedLoop::Order::kLogical);
  walk.Store(0, DType::kInt64, 0, n, keys);
  return absl::OkStatus();
}

HOLDFAST_CPU_KERNEL(bernoulli) {
  const PhiloxState philox = context.philox;
  std::atomic<bool> valid{true};
  const StridedLoop walk({outputs[0], inputs[0]}, StridedLoop::Order::kLogical);
  absl::Status status =
      DispatchFloat(outputs[0].spec->dtype, [&](auto tag) -> absl::Status {
        using T = typename decltype(tag)::type;
        constexpr DType kType = kDTypeOf<T>;
        ParallelFor(
            context, walk.numel(), kRandomGrain,
            [&](int64_t begin, int64_t end) {
              for (int64_t i = begin; i < end; i += kBlock) {
                BlockBuffer from, random, buffer;
                const int64_t n = std::min(kBlock, end - i);
                const T* p =
                    static_cast<const T*>(walk.Load(1, kType, i, n, &from));
                T* u = reinterpret_cast<T*>(random.bytes);
                UniformBlock(philox, i, n, u);
                T* to = static_cast<T*>(walk.Target(0, kType, i, &buffer));
                bool all_valid = true;
                for (int64_t j = 0; j < n; ++j) {
                  const T chance = p[j];
                  all_valid &= chance >= T(0) && chance <= T(1);
                  to[j] = u[j] < chance ? T(1) : T(0);
                }
                if (!all_valid) valid = false;
                walk.Store(0, kType, i, n, to);
              }
            },
            kBlock);
        return absl::OkStatus();
      });
  if (status.ok() && !valid) {
    const TensorSpec* spec = inputs[0].spec;
    return OpError(attrs, {&spec, 1}, "probabilities must be between 0 and 1");
  }
  return status;
}

HOLDFAST_CPU_KERNEL(poisson) {
  const PhiloxState philox = context.philox;
  constexpr int64_t kGrain = 512;  // an element takes about 100 ns
  std::atomic<bool> valid{true};
  const StridedLoop walk({outputs[0], inputs[0]}, StridedLoop::Order::kLogical);
  absl::Status status =
      DispatchFloat(outputs[0].spec->dtype, [&](auto tag) -> absl::Status {
        using T = typename decltype(tag)::type;
        constexpr DType kType = kDTypeOf<T>;
        ParallelFor(
            context, walk.numel(), kGrain, [&](int64_t begin, int64_t end) {
              for (int64_t i = begin; i < end; i += kBlock) {
                BlockBuffer from, buffer;
                const int64_t n = std::min(kBlock, end - i);
                const T* rates =
                    static_cast<const T*>(walk.Load(1, kType, i, n, &from));
                T* to = static_cast<T*>(walk.Target(0, kType, i, &buffer));
                for (int64_t j = 0; j < n; ++j) {
                  const double rate = rates[j];
                  if (rate >= 0 && std::isfinite(rate)) {
                    to[j] = static_cast<T>(PoissonNumber(
                        philox.seed, philox.offset + i + j, rate));
                  } else {
                    valid = false;
                    to[j] = T(0);
                  }
                }
                walk.Store(0, kType, i, n, to);
              }
            });
        return absl::OkStatus();
      });
  if (status.ok() && !valid) {
    const TensorSpec* spec = inputs[0].spec;
    return OpError(attrs, {&spec, 1},
                   "invalid Poisson rate, expected rates to be non-negative "
                   "and finite");
  }
  return status;
}

HOLDFAST_CPU_KERNEL(random_state) {
  const uint64_t state[] = {context.philox.seed, context.philox.offset};
  std::memcpy(outputs[0].data, state, sizeof(state));
  return absl::OkStatus();
}

HOLDFAST_CPU_KERNEL(dropout) {
  const PhiloxState philox = context.philox;
  const double p = attrs.Float("p");
  const uint64_t bound = DropoutKeepBound(p);
  const StridedLoop walk({outputs[0], outputs[1], inputs[0]},
                         StridedLoop::Order::kLogical);
  return DispatchFloat(outputs[0].spec->dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    constexpr DType kType = kDTypeOf<T>;
    const T scale = p < 1 ? static_cast<T>(1 / (1 - p)) : T(0);
    ParallelFor(
        context, walk.numel(), kRandomGrain,
        [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; i += kBlock) {
            BlockBuffer from, to_buffer, mask_buffer;
            RandomWords words;
            const int64_t n = std::min(kBlock, end - i);
            GenerateWords(philox.seed, philox.offset + i / 4, n, &words);
            const T* in =
                static_cast<const T*>(walk.Load(2, kType, i, n, &from));
            T* to = static_cast<T*>(walk.Target(0, kType, i, &to_buffer));
            uint8_t* mask = static_cast<uint8_t*>(
                walk.Target(1, DType::kBool, i, &mask_buffer));
            Vectorised<DropoutBody<T>>(static_cast<const uint32_t*>(words.w),
                                       bound, scale, in, to, mask, n);
            walk.Store(0, kType, i, n, to);
            walk.Store(1, DType::kBool, i, n, mask);
          }
        },
        kBlock);
    return absl::OkStatus();
  });
}

}  // namespace holdfast::cpu
