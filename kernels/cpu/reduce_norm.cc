// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// vector_norm for the orders that one pass without pow() computes.
#include <cmath>

#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/reduce_plan.h"
#include "kernels/cpu/reducers.h"

namespace holdfast::cpu {
namespace {

struct Square {
  template <typename T>
  static HOLDFAST_INLINE T Of(T x) {
    return x * x;
  }
  template <typename Lanes>
  static HOLDFAST_INLINE void OfLanes(typename Lanes::Vector& v) {
    v *= v;
  }
};
struct AbsoluteValue {
  template <typename T>
  static HOLDFAST_INLINE T Of(T x) {
    return std::abs(x);
  }
  template <typename Lanes>
  static HOLDFAST_INLINE void OfLanes(typename Lanes::Vector& v) {
    typename Lanes::Bits bits;
    std::memcpy(&bits, &v, sizeof(v));
    bits &= std::numeric_limits<typename Lanes::Bit>::max();
    std::memcpy(&v, &bits, sizeof(v));
  }
};
struct Nonzero {
  template <typename T>
  static HOLDFAST_INLINE T Of(T x) {
    return x != 0 ? T{1} : T{0};
  }
  template <typename Lanes>
  static HOLDFAST_INLINE void OfLanes(typename Lanes::Vector& v) {
    for (int j = 0; j < Lanes::kCount; ++j) v[j] = Of(v[j]);
  }
};

// Extremes of magnitudes.
template <typename T, bool kMax>
struct ExtremeMagnitude {
  using In = T;
  using Acc = T;
  static HOLDFAST_INLINE T Init() {
    return kMax ? T{0} : std::numeric_limits<T>::infinity();
  }
  static HOLDFAST_INLINE T One(const T& x) { return std::abs(x); }
  static HOLDFAST_INLINE T Combine(T a, T b) {
    return Extreme<T, kMax>::Combine(a, b);
  }
  static HOLDFAST_INLINE T Row(const T* p, int64_t n) {
    constexpr int kLanes = 256 / sizeof(T);
    return LanesRow<ExtremeMagnitude, kLanes>(p, n);
  }
  static HOLDFAST_INLINE void Columns(const T* p, int64_t rows, int64_t stride,
                                      int64_t cols, T* acc) {
    PlainColumns<ExtremeMagnitude>(p, rows, stride, cols, acc);
  }
};

template <typename R, typename T>
absl::Status Norm(KernelContext& context, const ReducePlan& plan,
                  const TensorView& input, const TensorView& output,
                  bool root) {
  T* out = output.as<T>();
  const auto result = [&](const typename R::Acc& acc) {
    return static_cast<T>(root ? std::sqrt(acc) : acc);
  };
  if (plan.count == 0) {
    for (int64_t i = 0; i < plan.outputs; ++i) out[i] = result(R::Init());
    return absl::OkStatus();
  }
  return Reduce<R>(context, plan, input.as<T>(),
                   [&](int64_t offset, int64_t stride,
                       const typename R::Acc* acc, int64_t n) {
                     for (int64_t i = 0; i < n; ++i) {
                       out[offset + i * stride] = result(acc[i]);
                     }
                   });
}

}  // namespace

HOLDFAST_CPU_KERNEL(vector_norm) {
  const AttrValue& dim = attrs.Get("dim");
  const Dims* list = std::get_if<Dims>(&dim);
  const TensorView& in = inputs[0];
  const TensorView& out = outputs[0];
  ReducePlan plan;
  absl::Status s =
      MakeReducePlan(*in.spec, list == nullptr ? Dims() : *list, &plan);
  if (!s.ok()) return s;
  if (plan.outputs == 0) return absl::OkStatus();
  const double ord = attrs.Float("ord");
  return DispatchFloat(in.spec->dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    if (ord == 2) {
      return Norm<SumOf<T, Square>, T>(context, plan, in, out, true);
    }
    if (ord == 1) {
      return Norm<SumOf<T, AbsoluteValue>, T>(context, plan, in, out, false);
    }
    if (ord == 0) {
      return Norm<SumOf<T, Nonzero>, T>(context, plan, in, out, false);
    }
    if (ord > 0) {
      return Norm<ExtremeMagnitude<T, true>, T>(context, plan, in, out, false);
    }
    return Norm<ExtremeMagnitude<T, false>, T>(context, plan, in, out, false);
  });
}

}  // namespace holdfast::cpu
