// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// sum, nansum, mean, count_nonzero, amax, amin, all, any.
#include "kernels/cuda/reduce.h"

#include "absl/strings/str_cat.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/reducers.h"
#include "ops/op_schema.h"

namespace holdfast {
namespace {

absl::Span<const int64_t> DimsAttr(const Attrs& attrs) {
  const AttrValue& dims = attrs.Get(0);
  if (const Dims* list = std::get_if<Dims>(&dims)) return *list;
  return {};
}

// Results in the order of the output, which is contiguous, whatever its type.
template <typename R, typename T>
absl::Status ReduceTo(KernelContext& context, const DimSplit& split,
                      const TensorView& input, const TensorView& output) {
  const Operand out(output);
  return ReduceTensor<R, T>(
      context, split, input.as<T>(),
      [=] HOLDFAST_LAMBDA(int64_t row, typename R::Acc acc) {
        out.Store(row, acc);
      });
}

template <typename R, typename T>
absl::Status ReduceScaled(KernelContext& context, const DimSplit& split,
                          const TensorView& input, const TensorView& output,
                          double scale) {
  const Operand out(output);
  return ReduceTensor<R, T>(
      context, split, input.as<T>(),
      [=] HOLDFAST_LAMBDA(int64_t row, typename R::Acc acc) {
        out.Store(row, acc * scale);
      });
}

// Elements become bool before they are added where the result is one.
template <typename T>
absl::Status SumAs(KernelContext& context, const DimSplit& split,
                   const TensorView& input, const TensorView& output,
                   bool mean) {
  if (output.spec->dtype == DType::kBool) {
    return ReduceTo<TruthOf<T, false>, T>(context, split, input, output);
  }
  if constexpr (std::is_integral_v<T>) {
    if (!mean && !IsFloat(output.spec->dtype)) {
      return ReduceTo<SumOf<T>, T>(context, split, input, output);
    }
  }
  if (!mean) return ReduceTo<SumOf<T>, T>(context, split, input, output);
  // 0 * infinity: the mean of nothing is NaN.
  const double scale = 1.0 / static_cast<double>(split.reduced.numel);
  return ReduceScaled<SumOf<T>, T>(context, split, input, output, scale);
}

absl::Status Sum(KernelContext& context, const Attrs& attrs,
                 const TensorView& tensor, const TensorView& output,
                 bool mean) {
  // A sum in another category is one of converted elements.
  TensorView input = tensor;
  TensorSpec spec;
  if (Category(tensor.spec->dtype) != Category(output.spec->dtype) &&
      output.spec->dtype != DType::kBool) {
    absl::Status s =
        MakeContiguous(context, tensor, output.spec->dtype, &spec, &input);
    if (!s.ok()) return s;
  }
  DimSplit split;
  absl::Status s = SplitDims(*input.spec, DimsAttr(attrs), &split);
  if (!s.ok()) return s;
  return DispatchStored(input.spec->dtype, [&](auto tag) -> absl::Status {
    return SumAs<typename decltype(tag)::type>(context, split, input, output,
                                               mean);
  });
}

template <bool kMax>
absl::Status Extremes(KernelContext& context, const Attrs& attrs,
                      const TensorView& input, const TensorView& output) {
  DimSplit split;
  absl::Status s = SplitDims(*input.spec, DimsAttr(attrs), &split);
  if (!s.ok()) return s;
  if (split.kept.numel == 0) return absl::OkStatus();
  if (split.reduced.numel == 0) {
    return absl::InvalidArgumentError(absl::StrCat(
        "[", attrs.schema().name,
        "] a dimension of size 0 has no largest or smallest element. Got "
        "input=",
        input.spec->ToString(), "."));
  }
  return DispatchStored(input.spec->dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    if constexpr (kIsComplex<T>) {
      return UnsupportedDType<absl::Status>();
    } else {
      return ReduceTo<ExtremeOf<T, kMax>, T>(context, split, input, output);
    }
  });
}

template <bool kAll>
absl::Status Truths(KernelContext& context, const Attrs& attrs,
                    const TensorView& input, const TensorView& output) {
  DimSplit split;
  absl::Status s = SplitDims(*input.spec, DimsAttr(attrs), &split);
  if (!s.ok()) return s;
  return DispatchStored(input.spec->dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    return ReduceTo<TruthOf<T, kAll>, T>(context, split, input, output);
  });
}

}  // namespace

HOLDFAST_CUDA_KERNEL(sum) {
  return Sum(context, attrs, inputs[0], outputs[0], /*mean=*/false);
}
HOLDFAST_CUDA_KERNEL(mean) {
  return Sum(context, attrs, inputs[0], outputs[0], /*mean=*/true);
}
HOLDFAST_CUDA_KERNEL(nansum) {
  DimSplit split;
  absl::Status s = SplitDims(*inputs[0].spec, DimsAttr(attrs), &split);
  if (!s.ok()) return s;
  return DispatchStoredFloat(
      inputs[0].spec->dtype, [&](auto tag) -> absl::Status {
        using T = typename decltype(tag)::type;
        return ReduceTo<NanSumOf<T>, T>(context, split, inputs[0], outputs[0]);
      });
}
HOLDFAST_CUDA_KERNEL(count_nonzero) {
  DimSplit split;
  absl::Status s = SplitDims(*inputs[0].spec, DimsAttr(attrs), &split);
  if (!s.ok()) return s;
  return DispatchStored(inputs[0].spec->dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    return ReduceTo<NonzeroCountOf<T>, T>(context, split, inputs[0],
                                          outputs[0]);
  });
}
HOLDFAST_CUDA_KERNEL(amax) {
  return Extremes<true>(context, attrs, inputs[0], outputs[0]);
}
HOLDFAST_CUDA_KERNEL(amin) {
  return Extremes<false>(context, attrs, inputs[0], outputs[0]);
}
HOLDFAST_CUDA_KERNEL(all) {
  return Truths<true>(context, attrs, inputs[0], outputs[0]);
}
HOLDFAST_CUDA_KERNEL(any) {
  return Truths<false>(context, attrs, inputs[0], outputs[0]);
}

}  // namespace holdfast
