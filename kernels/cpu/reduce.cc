// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// sum, nansum, mean, count_nonzero, amax, amin, all, any.
#include <limits>

#include "absl/strings/str_cat.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/elementwise_complex.h"
#include "kernels/cpu/reduce_plan.h"
#include "kernels/cpu/reducers.h"
#include "ops/op_schema.h"

namespace holdfast::cpu {
namespace {

absl::Span<const int64_t> DimsAttr(const Attrs& attrs) {
  const AttrValue& dims = attrs.Get(0);
  if (const Dims* list = std::get_if<Dims>(&dims)) return *list;
  return {};
}

// Results to the output's type. Scale is 1 / count for mean, in double.
template <typename Out, typename Acc>
void WriteScaled(Out* out, int64_t stride, const Acc* acc, int64_t n,
                 double scale) {
  for (int64_t i = 0; i < n; ++i) {
    if constexpr (std::is_same_v<Out, bool>) {
      out[i * stride] = acc[i] != Acc{};
    } else if constexpr (std::is_same_v<Acc, double>) {
      out[i * stride] = static_cast<Out>(acc[i] * scale);
    } else {
      out[i * stride] = static_cast<Out>(acc[i]);
    }
  }
}

// Reduces with R into elements of type Out.
template <typename R, typename Out>
absl::Status ReduceTo(KernelContext& context, const ReducePlan& plan,
                      const TensorView& input, const TensorView& output,
                      double scale) {
  Out* out = output.as<Out>();
  if (plan.count == 0) {
    const typename R::Acc empty = R::Init();
    for (int64_t i = 0; i < plan.outputs; ++i) {
      WriteScaled<Out>(out + i, 1, &empty, 1, scale);
    }
    return absl::OkStatus();
  }
  return Reduce<R>(context, plan, input.as<typename R::In>(),
                   [&](int64_t offset, int64_t stride,
                       const typename R::Acc* acc, int64_t n) {
                     WriteScaled<Out>(out + offset, stride, acc, n, scale);
                   });
}

template <typename R>
struct SumTinyBody {
  static HOLDFAST_INLINE typename R::Acc Run(const typename R::In* p,
                                             int64_t n) {
    return R::Row(p, n);
  }
};

// Integer sums for integer results, double for floats; float when both sides
// are float32.
absl::Status Sum(KernelContext& context, absl::Span<const int64_t> dims,
                 const TensorView& input, const TensorView& output, bool mean) {
  const TensorSpec& spec = *input.spec;
  const DType to = output.spec->dtype;
  // A few numbers into one: shorter than building a plan.
  if (dims.empty() && spec.dtype == DType::kFloat32 && to == DType::kFloat32 &&
      spec.contiguous()) {
    const int64_t n = spec.numel();
    if (n > 0 && n <= 32768) {
      const double total =
          n < 64 ? SumFloat::Row(input.as<float>(), n)
                 : Vectorised<SumTinyBody<SumFloat>>(
                       static_cast<const float*>(input.as<float>()), n);
      *output.as<float>() =
          static_cast<float>(mean ? total / static_cast<double>(n) : total);
      return absl::OkStatus();
    }
  }
  ReducePlan plan;
  if (absl::Status s = MakeReducePlan(spec, dims, &plan); !s.ok()) return s;
  if (plan.outputs == 0) return absl::OkStatus();
  // 0 * infinity: the mean of nothing is NaN.
  const double scale = mean ? 1.0 / static_cast<double>(plan.count) : 1.0;
  if (spec.dtype == DType::kFloat32 && to == DType::kFloat32) {
    return ReduceTo<SumFloat, float>(context, plan, input, output, scale);
  }
  return DispatchDType(spec.dtype, [&](auto in_tag) -> absl::Status {
    using In = typename decltype(in_tag)::type;
    switch (to) {
      case DType::kFloat32:
        return ReduceTo<SumDouble<In>, float>(context, plan, input, output,
                                              scale);
      case DType::kFloat64:
        return ReduceTo<SumDouble<In>, double>(context, plan, input, output,
                                               scale);
      case DType::kInt64:
        return ReduceTo<SumInt<In>, int64_t>(context, plan, input, output,
                                             scale);
      case DType::kInt32:
        return ReduceTo<SumInt<In>, int32_t>(context, plan, input, output,
                                             scale);
      case DType::kUInt8:
        return ReduceTo<SumInt<In>, uint8_t>(context, plan, input, output,
                                             scale);
      case DType::kBool:  // elements become bool before they are added
        return ReduceTo<Truth<In, false>, bool>(context, plan, input, output,
                                                scale);
      default:
        return UnsupportedDType<absl::Status>();
    }
  });
}

// A complex sum is that of the parts.
absl::Status SumAny(KernelContext& context, const Attrs& attrs,
                    const TensorView& input, const TensorView& output,
                    bool mean) {
  const DType from = input.spec->dtype, to = output.spec->dtype;
  if (!IsComplex(from) && !IsComplex(to)) {
    return Sum(context, DimsAttr(attrs), input, output, mean);
  }
  TensorSpec spec, parts_spec, output_spec;
  TensorView same = input;
  if (from != to) {
    absl::Status s = MakeContiguous(context, input, to, &spec, &same);
    if (!s.ok()) return s;
  }
  if (!IsComplex(to)) {
    return Sum(context, DimsAttr(attrs), same, output, mean);
  }
  const int rank = input.spec->rank();
  if (rank == 0) {
    CopyStrided(context, same, output);
    return absl::OkStatus();
  }
  Dims dims;
  for (int64_t dim : DimsAttr(attrs))
    dims.push_back(dim < 0 ? dim + rank : dim);
  for (int d = 0; d < rank && DimsAttr(attrs).empty(); ++d) dims.push_back(d);
  return Sum(context, dims, PartsOf(same, &parts_spec),
             PartsOf(output, &output_spec), mean);
}

template <bool kMax>
absl::Status Extremes(KernelContext& context, const Attrs& attrs,
                      const TensorView& input, const TensorView& output) {
  ReducePlan plan;
  absl::Status s = MakeReducePlan(*input.spec, DimsAttr(attrs), &plan);
  if (!s.ok()) return s;
  if (plan.outputs == 0) return absl::OkStatus();
  if (plan.count == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "[", attrs.schema().name,
        "] a dimension of size 0 has no largest or smallest element. Got "
        "input=",
        input.spec->ToString(), "."));
  }
  return DispatchDType(input.spec->dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    return ReduceTo<Extreme<T, kMax>, T>(context, plan, input, output, 1.0);
  });
}

template <bool kAll>
absl::Status Truths(KernelContext& context, const Attrs& attrs,
                    const TensorView& input, const TensorView& output) {
  ReducePlan plan;
  absl::Status s = MakeReducePlan(*input.spec, DimsAttr(attrs), &plan);
  if (!s.ok()) return s;
  if (plan.outputs == 0) return absl::OkStatus();
  return DispatchDType(input.spec->dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    return ReduceTo<Truth<T, kAll>, bool>(context, plan, input, output, 1.0);
  });
}

}  // namespace

HOLDFAST_CPU_KERNEL(sum) {
  return SumAny(context, attrs, inputs[0], outputs[0], /*mean=*/false);
}
HOLDFAST_CPU_KERNEL(mean) {
  return SumAny(context, attrs, inputs[0], outputs[0], /*mean=*/true);
}
HOLDFAST_CPU_KERNEL(nansum) {
  ReducePlan plan;
  absl::Status s = MakeReducePlan(*inputs[0].spec, DimsAttr(attrs), &plan);
  if (!s.ok()) return s;
  if (plan.outputs == 0) return absl::OkStatus();
  return DispatchFloat(inputs[0].spec->dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    return ReduceTo<SumOf<T, NotNan>, T>(context, plan, inputs[0], outputs[0],
                                         1.0);
  });
}
HOLDFAST_CPU_KERNEL(count_nonzero) {
  ReducePlan plan;
  absl::Status s = MakeReducePlan(*inputs[0].spec, DimsAttr(attrs), &plan);
  if (!s.ok()) return s;
  if (plan.outputs == 0) return absl::OkStatus();
  const DType type = inputs[0].spec->dtype;
  return DispatchWithComplex(type, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    return ReduceTo<CountNonzero<T>, int64_t>(context, plan, inputs[0],
                                              outputs[0], 1.0);
  });
}
HOLDFAST_CPU_KERNEL(amax) {
  return Extremes<true>(context, attrs, inputs[0], outputs[0]);
}
HOLDFAST_CPU_KERNEL(amin) {
  return Extremes<false>(context, attrs, inputs[0], outputs[0]);
}
HOLDFAST_CPU_KERNEL(all) {
  return Truths<true>(context, attrs, inputs[0], outputs[0]);
}
HOLDFAST_CPU_KERNEL(any) {
  return Truths<false>(context, attrs, inputs[0], outputs[0]);
}

}  // namespace holdfast::cpu
