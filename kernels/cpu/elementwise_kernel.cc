// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/elementwise_kernel.h"

#include <algorithm>

#include "absl/container/inlined_vector.h"
#include "kernels/cpu/elementwise_rows.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/strided_loop.h"
#include "ops/infer.h"
#include "ops/op_schema.h"

namespace holdfast::cpu {
namespace {

// Calls block(begin, n, loaded); `loaded` is the thread's own, one per input.
template <int kInputs, typename Block>
void ForEachBlock(const KernelContext& context, const StridedLoop& walk,
                  Block block) {
  ParallelFor(
      context, walk.numel(), kElementwiseGrain,
      [&](int64_t begin, int64_t end) {
        LoadedBlock loaded[kInputs];
        for (int64_t i = begin, n; i < end; i += n) {
          n = walk.BlockSize(i, end);
          block(i, n, loaded);
        }
      },
      kBlock);
}

template <typename T>
struct RepeatBody {
  static HOLDFAST_INLINE void Run(T value, T* to, int64_t n) {
    for (int64_t i = 0; i < n; ++i) to[i] = value;
  }
};

const char* At(const TensorView& view, int64_t i, size_t item) {
  return static_cast<const char*>(view.data) + i * item;
}

// Everything contiguous, of one type, and operand `scalar` (if >= 0) a single
// element, which is repeated in a block that stays in the cache.
void RunDenseBinary(BinaryLoop loop, const KernelContext& context,
                    const TensorView& a, const TensorView& b,
                    const TensorView& out, int scalar, int64_t n) {
  const size_t item = ItemSize(a.spec->dtype);
  const size_t out_item = ItemSize(out.spec->dtype);
  char* to = static_cast<char*>(out.data);
  if (scalar < 0) {
    if (n <= kElementwiseGrain) {
      loop(a.data, b.data, to, n);
      return;
    }
    ParallelFor(
        context, n, kElementwiseGrain,
        [&](int64_t begin, int64_t end) {
          loop(At(a, begin, item), At(b, begin, item), to + begin * out_item,
               end - begin);
        },
        kBlock);
    return;
  }
  BlockBuffer repeated;
  DispatchWithComplex(a.spec->dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    Vectorised<RepeatBody<T>>(LoadElement((scalar == 0 ? a : b).as<T>()),
                              reinterpret_cast<T*>(repeated.bytes),
                              std::min(n, kBlock));
  });
  ParallelFor(
      context, n, kElementwiseGrain,
      [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; i += kBlock) {
          const int64_t count = std::min(kBlock, end - i);
          if (scalar == 0) {
            loop(repeated.bytes, At(b, i, item), to + i * out_item, count);
          } else {
            loop(At(a, i, item), repeated.bytes, to + i * out_item, count);
          }
        }
      },
      kBlock);
}

}  // namespace

DType ComputationType(const Attrs& attrs, absl::Span<const TensorView> in) {
  const OpSchema& schema = attrs.schema();
  absl::InlinedVector<const TensorSpec*, 4> specs;
  for (size_t i = 0; i < in.size(); ++i) {
    const int slot = schema.params[schema.tensor_params[i]].attr_slot;
    const bool number = slot >= 0 && attrs.IsSet(slot);
    if (number && in[i].present()) return ComputeType(in[i].spec->dtype);
    specs.push_back(number ? nullptr : in[i].spec);
  }
  return ComputeType(ResultType(attrs, specs));
}

absl::Status RunUnary(const ElementwiseTable<UnaryLoop>& table,
                      KernelContext& context, absl::Span<const TensorView> in,
                      absl::Span<const TensorView> out) {
  const TensorSpec& a = *in[0].spec;
  const TensorSpec& o = *out[0].spec;
  DType type = ComputeType(a.dtype);
  if (table.float_only && IsIntegral(type)) type = kDefaultFloat;
  const UnaryLoop loop = table.Get(type);
  if (loop == nullptr) return UnsupportedDType<absl::Status>();
  const DType result = table.predicate ? DType::kBool : type;
  const int64_t n = DenseSize(a);
  if (n >= 0 && a.dtype == type && o.dtype == result && DenseSize(o) == n) {
    if (n <= kElementwiseGrain) {
      loop(in[0].data, out[0].data, n);
      return absl::OkStatus();
    }
    const size_t item = ItemSize(type);
    const size_t out_item = ItemSize(result);
    char* to = out[0].as<char>();
    ParallelFor(
        context, n, kElementwiseGrain,
        [&](int64_t begin, int64_t end) {
          loop(At(in[0], begin, item), to + begin * out_item, end - begin);
        },
        kBlock);
    return absl::OkStatus();
  }
  const StridedLoop walk({out[0], in[0]});
  ForEachBlock<1>(context, walk, [&](int64_t i, int64_t count, LoadedBlock* a) {
    BlockBuffer to;
    void* target = walk.Target(0, result, i, &to);
    loop(walk.Load(1, type, i, count, a), target, count);
    walk.Store(0, result, i, count, target);
  });
  return absl::OkStatus();
}

absl::Status RunBinary(const ElementwiseTable<BinaryLoop>& table,
                       KernelContext& context, const Attrs& attrs,
                       absl::Span<const TensorView> in,
                       absl::Span<const TensorView> out) {
  const TensorSpec& a = *in[0].spec;
  const TensorSpec& b = *in[1].spec;
  const TensorSpec& o = *out[0].spec;
  DType type =
      a.dtype == b.dtype ? ComputeType(a.dtype) : ComputationType(attrs, in);
  if (table.float_only && IsIntegral(type)) type = kDefaultFloat;
  const BinaryLoop loop = table.Get(type);
  if (loop == nullptr) return UnsupportedDType<absl::Status>();
  const DType result = table.predicate ? DType::kBool : type;
  if (a.dtype == type && b.dtype == type && o.dtype == result) {
    const int64_t n = DenseSize(o);
    if (n >= 0) {
      const int64_t a_size = DenseSize(a);
      const int64_t b_size = DenseSize(b);
      // Sizes as large as the output's mean equal shapes, but for dimensions
      // of size 1 (and empty outputs, where there is nothing to do).
      int scalar = -2;
      if (a_size == n && b_size == n) {
        scalar = -1;
      } else if (a_size == n && b_size == 1) {
        scalar = 1;
      } else if (b_size == n && a_size == 1) {
        scalar = 0;
      }
      if (scalar != -2) {
        RunDenseBinary(loop, context, in[0], in[1], out[0], scalar, n);
        return absl::OkStatus();
      }
    }
  }
  const StridedLoop walk({out[0], in[0], in[1]});
  if (a.dtype == type && b.dtype == type && o.dtype == type &&
      RunShortRows(attrs.schema().id, type, context, walk)) {
    return absl::OkStatus();
  }
  ForEachBlock<2>(
      context, walk, [&](int64_t i, int64_t count, LoadedBlock* loaded) {
        BlockBuffer to;
        void* target = walk.Target(0, result, i, &to);
        loop(walk.Load(1, type, i, count, &loaded[0]),
             walk.Load(2, type, i, count, &loaded[1]), target, count);
        walk.Store(0, result, i, count, target);
      });
  return absl::OkStatus();
}

}  // namespace holdfast::cpu
