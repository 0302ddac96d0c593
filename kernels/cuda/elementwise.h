// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Elementwise kernels out of the functors of kernels/elementwise*.h, in two
// forms. Typed (typed_map.h): operands of one stored type, or numbers. General:
// any types, an element at a time. Both compute in ComputeType, as the CPU
// does.
#ifndef HOLDFAST_KERNELS_CUDA_ELEMENTWISE_H_
#define HOLDFAST_KERNELS_CUDA_ELEMENTWISE_H_

#include <cstdint>
#include <type_traits>

#include "absl/container/inlined_vector.h"
#include "kernels/cuda/elements.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/offsets.h"
#include "kernels/cuda/typed_map.h"
#include "kernels/elementwise.h"
#include "ops/infer.h"
#include "ops/op_schema.h"

namespace holdfast::cuda {

// A row's functor as RunTypedMap calls it.
template <typename Op>
struct Applied {
  template <typename T>
  HOLDFAST_HD typename Op::template Result<T> operator()(T a) const {
    return Op::template Apply<T>(a);
  }
  template <typename T>
  HOLDFAST_HD typename Op::template Result<T> operator()(T a, T b) const {
    return Op::template Apply<T>(a, b);
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

template <typename S, typename>
using Same = S;

// Types with which models compute much: their strided form is worth its code.
template <typename S>
inline constexpr bool kHasStridedForm =
    std::is_same_v<ComputeOf<S>, float> || std::is_same_v<S, double>;

template <typename S, typename T, typename R, typename F, typename... Views>
bool TryTypedOver(KernelContext& context, const F& f, absl::Status* status,
                  const TensorView& out, const Views&... in) {
  if ((IsNumber(in) && ...)) return false;
  if constexpr (kHasStridedForm<S>) {
    if (!HasTypedMap<R, Same<S, Views>...>(out, in...)) return false;
    *status = RunTypedMap<T, R, Same<S, Views>...>(context, f, out, in...);
  } else {
    if (!HasDenseMap<R, Same<S, Views>...>(out, in...)) return false;
    *status = RunDenseMap<T, R, Same<S, Views>...>(context, f, out, in...);
  }
  return true;
}

// The typed form if the operands are stored as S, T's stored type, and there
// is a form for their strides.
template <typename Op, typename S, typename T, int kOperands>
bool TryTyped(KernelContext& context, const TensorView* in,
              const TensorView& out, absl::Status* status) {
  using Computed = typename Op::template Result<T>;
  using R = std::conditional_t<std::is_same_v<Computed, bool>, bool, S>;
  const Applied<Op> f;
  if constexpr (kOperands == 1) {
    return TryTypedOver<S, T, R>(context, f, status, out, in[0]);
  } else {
    return TryTypedOver<S, T, R>(context, f, status, out, in[0], in[1]);
  }
}

template <typename Op, typename T, int kOperands>
absl::Status RunMapAs(KernelContext& context, const TensorView* in,
                      const TensorView& out) {
  if (out.spec->numel() == 0) return absl::OkStatus();
  absl::Status status;
  if constexpr (!kIsComplex<T>) {
    if (TryTyped<Op, T, T, kOperands>(context, in, out, &status)) return status;
  }
  if constexpr (std::is_same_v<T, float>) {
    if (TryTyped<Op, Float16, T, kOperands>(context, in, out, &status) ||
        TryTyped<Op, BFloat16, T, kOperands>(context, in, out, &status)) {
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

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_ELEMENTWISE_H_
