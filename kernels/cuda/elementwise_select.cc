// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// where, clamp, conj: elementwise ops whose operands are not all of one kind.
#include <limits>

#include "kernels/cuda/copy.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/elements.h"
#include "kernels/cuda/elementwise.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/offsets.h"
#include "kernels/scalar_value.h"

namespace holdfast::cuda {
namespace {

struct Selected {
  template <typename T>
  HOLDFAST_HD T operator()(T condition, T yes, T no) const {
    return condition != T(0) ? yes : no;
  }
};
template <typename T>
struct Clamped {
  T low, high;
  HOLDFAST_HD T operator()(T x) const {
    return elementwise::Clamp(x, low, high);
  }
};

// T: the type that the output is computed in.
template <typename T>
absl::Status Where(KernelContext& context, absl::Span<const TensorView> in,
                   const TensorView& output) {
  const TensorSpec* const specs[4] = {output.spec, in[0].spec, in[1].spec,
                                      in[2].spec};
  const Offsets<4> offsets = BroadcastOffsets<4>(specs);
  const Operand out(output), condition(in[0]), yes(in[1]), no(in[2]);
  return ForEach(context, offsets.numel, [=] HOLDFAST_LAMBDA(int64_t i) {
    int64_t at[4];
    offsets.At(i, at);
    out.Store(at[0], condition.Load<bool>(at[1]) ? yes.Load<T>(at[2])
                                                 : no.Load<T>(at[3]));
  });
}

template <typename T>
absl::Status Clamp(KernelContext& context, const TensorView& input,
                   const TensorView& output, T low, T high) {
  if constexpr (kHasStridedForm<T>) {
    if (HasTypedMap<T, T>(output, input)) {
      return RunTypedMap<T, T, T>(context, Clamped<T>{low, high}, output,
                                  input);
    }
  }
  const TensorSpec* const specs[2] = {output.spec, input.spec};
  const Offsets<2> offsets = BroadcastOffsets<2>(specs);
  const Operand in(input), out(output);
  return ForEach(context, offsets.numel, [=] HOLDFAST_LAMBDA(int64_t i) {
    int64_t at[2];
    offsets.At(i, at);
    out.Store(at[0], elementwise::Clamp(in.Load<T>(at[1]), low, high));
  });
}

template <typename T>
absl::Status Conjugates(KernelContext& context, const TensorView& input,
                        const TensorView& output) {
  const TensorSpec* const specs[2] = {output.spec, input.spec};
  const Offsets<2> offsets = BroadcastOffsets<2>(specs);
  const Complex<T>* const in = input.as<Complex<T>>();
  Complex<T>* const out = output.as<Complex<T>>();
  return ForEach(context, offsets.numel, [=] HOLDFAST_LAMBDA(int64_t i) {
    int64_t at[2];
    offsets.At(i, at);
    out[at[0]] = Conjugate(in[at[1]]);
  });
}

}  // namespace

HOLDFAST_CUDA_KERNEL(where) {
  if (IsFloat(outputs[0].spec->dtype) && outputs[0].spec->numel() > 0) {
    absl::Status status;
    const bool typed =
        DispatchStoredFloat(outputs[0].spec->dtype, [&](auto tag) -> bool {
          using S = typename decltype(tag)::type;
          const TensorView &condition = inputs[0], &yes = inputs[1];
          const TensorView &no = inputs[2], &out = outputs[0];
          if (!HasTypedMap<S, bool, S, S>(out, condition, yes, no)) {
            return false;
          }
          status = RunTypedMap<ComputeOf<S>, S, bool, S, S>(
              context, Selected(), out, condition, yes, no);
          return true;
        });
    if (typed) return status;
  }
  return DispatchWithComplex(
      ComputeType(outputs[0].spec->dtype), [&](auto tag) -> absl::Status {
        return Where<typename decltype(tag)::type>(context, inputs, outputs[0]);
      });
}

HOLDFAST_CUDA_KERNEL(clamp) {
  const AttrValue& min = attrs.Get(0);
  const AttrValue& max = attrs.Get(1);
  return DispatchDType(outputs[0].spec->dtype, [&](auto tag) -> absl::Status {
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
      return Clamp<T>(context, inputs[0], outputs[0], low, high);
    }
  });
}

HOLDFAST_CUDA_KERNEL(conj) {
  if (inputs[0].spec->dtype == DType::kComplex64) {
    return Conjugates<float>(context, inputs[0], outputs[0]);
  }
  if (inputs[0].spec->dtype == DType::kComplex128) {
    return Conjugates<double>(context, inputs[0], outputs[0]);
  }
  return CudaCopy(context, inputs[0], outputs[0]);
}

}  // namespace holdfast::cuda
