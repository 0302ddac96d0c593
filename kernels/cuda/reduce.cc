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

namespace holdfast::cuda {
namespace {

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
  absl::Status s = SplitOptional(attrs, *input.spec, &split);
  if (!s.ok()) return s;
  return DispatchStored(input.spec->dtype, [&](auto tag) -> absl::Status {
    return SumAs<typename decltype(tag)::type>(context, split, input, output,
                                               mean);
  });
}

// Reducer<T> over elements stored as T, of any type but complex ones unless
// kComplex.
template <template <typename> class Reducer, bool kComplexToo>
absl::Status Reduce(KernelContext& context, const Attrs& attrs,
                    const TensorView& input, const TensorView& output) {
  DimSplit split;
  absl::Status s = SplitOptional(attrs, *input.spec, &split);
  if (!s.ok()) return s;
  return DispatchStored(input.spec->dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    if constexpr (kIsComplex<T> && !kComplexToo) {
      return UnsupportedDType<absl::Status>();
    } else {
      return ReduceTo<Reducer<T>, T>(context, split, input, output);
    }
  });
}

template <typename T>
using AllOf = TruthOf<T, true>;
template <typename T>
using AnyOf = TruthOf<T, false>;
template <typename T>
using LargestOf = ExtremeOf<T, true>;
template <typename T>
using SmallestOf = ExtremeOf<T, false>;

// Of nothing there is no largest element.
absl::Status CheckNotEmpty(const Attrs& attrs, const TensorView& input,
                           const TensorView& output) {
  if (output.spec->numel() == 0 || input.spec->numel() > 0) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "[", attrs.schema().name,
      "] a dimension of size 0 has no largest or smallest element. Got "
      "input=",
      input.spec->ToString(), "."));
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
  absl::Status s = SplitOptional(attrs, *inputs[0].spec, &split);
  if (!s.ok()) return s;
  return DispatchStoredFloat(
      inputs[0].spec->dtype, [&](auto tag) -> absl::Status {
        using T = typename decltype(tag)::type;
        return ReduceTo<NanSumOf<T>, T>(context, split, inputs[0], outputs[0]);
      });
}
HOLDFAST_CUDA_KERNEL(count_nonzero) {
  return Reduce<NonzeroCountOf, true>(context, attrs, inputs[0], outputs[0]);
}
HOLDFAST_CUDA_KERNEL(amax) {
  absl::Status s = CheckNotEmpty(attrs, inputs[0], outputs[0]);
  if (!s.ok()) return s;
  return Reduce<LargestOf, false>(context, attrs, inputs[0], outputs[0]);
}
HOLDFAST_CUDA_KERNEL(amin) {
  absl::Status s = CheckNotEmpty(attrs, inputs[0], outputs[0]);
  if (!s.ok()) return s;
  return Reduce<SmallestOf, false>(context, attrs, inputs[0], outputs[0]);
}
HOLDFAST_CUDA_KERNEL(all) {
  return Reduce<AllOf, true>(context, attrs, inputs[0], outputs[0]);
}
HOLDFAST_CUDA_KERNEL(any) {
  return Reduce<AnyOf, true>(context, attrs, inputs[0], outputs[0]);
}

}  // namespace holdfast::cuda
