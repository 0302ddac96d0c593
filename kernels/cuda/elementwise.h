// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Elementwise kernels out of the functors of kernels/elementwise*.h, in two
// forms. Dense: contiguous operands of one stored type, or numbers, 16 bytes a
// load. General: any strides, types and broadcasting, an element at a time.
// Both compute in ComputeType, as the CPU does.
#ifndef HOLDFAST_KERNELS_CUDA_ELEMENTWISE_H_
#define HOLDFAST_KERNELS_CUDA_ELEMENTWISE_H_

#include <cstdint>
#include <type_traits>

#include "absl/container/inlined_vector.h"
#include "kernels/cuda/elements.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/offsets.h"
#include "kernels/elementwise.h"
#include "ops/infer.h"
#include "ops/op_schema.h"

namespace holdfast {

// Elements that one thread moves at once: 16 bytes of the larger type.
template <typename S>
inline constexpr int kPack = 16 / sizeof(S);

template <typename S, int kSize>
struct alignas(sizeof(S) * kSize) Pack {
  S element[kSize];
};

inline bool Aligned(const void* p) {
  return reinterpret_cast<uintptr_t>(p) % 16 == 0;
}

// out[i] = f(a[i], b[i]) over n contiguous elements stored as S, computed in
// T, with result R. An operand that is a number comes by value.
template <typename Op, typename S, typename T, typename R, int kOperands>
struct DenseMap {
  const S* a;
  const S* b;
  T a_number, b_number;  // where the pointer is null
  R* out;
  int64_t n;
  static constexpr int kSize = kPack<S>;

  HOLDFAST_HD R Result(T x, [[maybe_unused]] T y) const {
    using ComputedR = typename Op::template Result<T>;
    if constexpr (kOperands == 1) {
      return Convert<R>(static_cast<ComputedR>(Op::template Apply<T>(x)));
    } else {
      return Convert<R>(static_cast<ComputedR>(Op::template Apply<T>(x, y)));
    }
  }
  HOLDFAST_HD T Load(const S* p, T number, int64_t i) const {
    return p == nullptr ? number : Convert<T>(LoadStored<S>(p, i));
  }
  // The i-th pack; the last one may be short.
  HOLDFAST_HD void operator()(int64_t i) const {
    const int64_t first = i * kSize;
    if (first + kSize > n) {
      for (int64_t j = first; j < n; ++j) {
        out[j] = Result(Load(a, a_number, j), Load(b, b_number, j));
      }
      return;
    }
    using In = Pack<S, kSize>;
    In x, y;
    if (a != nullptr) x = *reinterpret_cast<const In*>(a + first);
    if (b != nullptr) y = *reinterpret_cast<const In*>(b + first);
    Pack<R, kSize> result;
    for (int j = 0; j < kSize; ++j) {
      const T u =
          a == nullptr ? a_number : Convert<T>(LoadStored<S>(x.element, j));
      const T v =
          b == nullptr ? b_number : Convert<T>(LoadStored<S>(y.element, j));
      result.element[j] = Result(u, v);
    }
    *reinterpret_cast<Pack<R, kSize>*>(out + first) = result;
  }
};

template <typename Op, typename T, int kOperands>
struct GeneralMap {
  Offsets<1 + kOperands> offsets;
  Operand out;
  Operand in[kOperands];

  HOLDFAST_HD void operator()(int64_t i) const {
    int64_t at[1 + kOperands];
    offsets.At(i, at);
    if constexpr (kOperands == 1) {
      out.Store(at[0], Op::template Apply<T>(in[0].template Load<T>(at[1])));
    } else {
      out.Store(at[0], Op::template Apply<T>(in[0].template Load<T>(at[1]),
                                             in[1].template Load<T>(at[2])));
    }
  }
};

// A number, or a tensor of the output's elements in a row.
inline bool IsDense(const TensorView& view, DType stored, int64_t n) {
  return IsNumber(view) || (view.spec->dtype == stored && Aligned(view.data) &&
                            view.spec->numel() == n && view.spec->contiguous());
}

template <typename Op, typename S, typename T, int kOperands>
absl::Status RunDense(KernelContext& context, const TensorView* in,
                      const TensorView& out) {
  using Computed = typename Op::template Result<T>;
  using R = std::conditional_t<std::is_same_v<Computed, bool>, bool, S>;
  DenseMap<Op, S, T, R, kOperands> map{};
  map.n = out.spec->numel();
  map.out = out.as<R>();
  const auto set = [](const TensorView& view, const S** p, T* number) {
    if (IsNumber(view)) {
      *number = LoadAs<T>(view.spec->dtype, view.data, 0);
    } else {
      *p = view.as<S>();
    }
  };
  set(in[0], &map.a, &map.a_number);
  if constexpr (kOperands == 2) set(in[1], &map.b, &map.b_number);
  return ForEach(context, (map.n + map.kSize - 1) / map.kSize, map);
}

// The dense form if the operands have it and S is T's stored type.
template <typename Op, typename S, typename T, int kOperands>
bool TryDense(KernelContext& context, const TensorView* in,
              const TensorView& out, absl::Status* status) {
  using Computed = typename Op::template Result<T>;
  constexpr DType kResult =
      std::is_same_v<Computed, bool> ? DType::kBool : kStoredDType<S>;
  const int64_t n = out.spec->numel();
  bool dense =
      out.spec->dtype == kResult && Aligned(out.data) && out.spec->contiguous();
  bool tensor = false;
  for (int k = 0; k < kOperands && dense; ++k) {
    dense = IsDense(in[k], kStoredDType<S>, n);
    tensor = tensor || !IsNumber(in[k]);
  }
  if (!dense || !tensor) return false;
  *status = RunDense<Op, S, T, kOperands>(context, in, out);
  return true;
}

template <typename Op, typename T, int kOperands>
absl::Status RunMapAs(KernelContext& context, const TensorView* in,
                      const TensorView& out) {
  if (out.spec->numel() == 0) return absl::OkStatus();
  absl::Status status;
  if constexpr (!kIsComplex<T>) {
    if (TryDense<Op, T, T, kOperands>(context, in, out, &status)) return status;
  }
  if constexpr (std::is_same_v<T, float>) {
    if (TryDense<Op, Float16, T, kOperands>(context, in, out, &status) ||
        TryDense<Op, BFloat16, T, kOperands>(context, in, out, &status)) {
      return status;
    }
  }
  GeneralMap<Op, T, kOperands> map;
  const TensorSpec* specs[1 + kOperands] = {out.spec};
  map.out = Operand(out);
  for (int k = 0; k < kOperands; ++k) {
    specs[1 + k] = in[k].spec;
    map.in[k] = Operand(in[k]);
  }
  map.offsets = BroadcastOffsets<1 + kOperands>(specs);
  return ForEach(context, map.offsets.numel, map);
}

// Dispatches on the type that is computed in. `type`: of the operands.
template <typename Op, int kOperands>
absl::Status RunMap(KernelContext& context, DType type, const TensorView* in,
                    const TensorView& out) {
  if (!Op::Types::template kHas<int32_t> && IsIntegral(type)) {
    type = kDefaultFloat;
  }
  return DispatchWithComplex(type, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    if constexpr (Op::Types::template kHas<T>) {
      return RunMapAs<Op, T, kOperands>(context, in, out);
    } else {
      return UnsupportedDType<absl::Status>();
    }
  });
}

template <typename Op>
absl::Status RunUnary(KernelContext& context, const TensorView& in,
                      const TensorView& out) {
  return RunMap<Op, 1>(context, ComputeType(in.spec->dtype), &in, out);
}

// The type that the operands of a call are computed in: as the CPU's
// ComputationType.
inline DType OperandType(const Attrs& attrs, absl::Span<const TensorView> in) {
  absl::InlinedVector<const TensorSpec*, 4> specs;
  for (const TensorView& view : in) {
    if (IsNumber(view)) return ComputeType(view.spec->dtype);
    specs.push_back(view.spec);
  }
  return ComputeType(ResultType(attrs, specs));
}

template <typename Op>
absl::Status RunBinary(KernelContext& context, const Attrs& attrs,
                       absl::Span<const TensorView> in, const TensorView& out) {
  const DType type = in[0].spec->dtype == in[1].spec->dtype
                         ? ComputeType(in[0].spec->dtype)
                         : OperandType(attrs, in);
  return RunMap<Op, 2>(context, type, in.data(), out);
}

}  // namespace holdfast

#endif  // HOLDFAST_KERNELS_CUDA_ELEMENTWISE_H_
