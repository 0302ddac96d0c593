// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// var_mean, vector_norm and prod: reductions with a last step of their own.
#include <algorithm>
#include <cmath>
#include <limits>

#include "kernels/cuda/copy.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/reduce.h"
#include "kernels/cuda/reducers.h"

namespace holdfast {
namespace {

absl::Status SplitOptional(const Attrs& attrs, const TensorSpec& spec,
                           DimSplit* split) {
  const AttrValue& dim = attrs.Get("dim");
  const Dims* list = std::get_if<Dims>(&dim);
  return SplitDims(spec, list == nullptr ? Dims() : *list, split);
}

template <typename T>
absl::Status VarMean(KernelContext& context, const DimSplit& split,
                     double correction, const TensorView& input,
                     absl::Span<const TensorView> outputs) {
  const double count = static_cast<double>(split.reduced.numel);
  const double freedom = std::max(count - correction, 0.0);
  const Operand var(outputs[0]), mean(outputs[1]);
  return ReduceTensor<MomentsOf<T>, T>(
      context, split, input.as<T>(),
      [=] HOLDFAST_LAMBDA(int64_t row, Moments m) {
        const double nothing = std::numeric_limits<double>::quiet_NaN();
        var.Store(row, m.count == 0 ? nothing : m.squares / freedom);
        mean.Store(row, m.count == 0 ? nothing : m.mean);
      });
}

template <typename R, typename T>
absl::Status Norm(KernelContext& context, const DimSplit& split, bool root,
                  const TensorView& input, const TensorView& output) {
  const Operand out(output);
  return ReduceTensor<R, T>(
      context, split, input.as<T>(),
      [=] HOLDFAST_LAMBDA(int64_t row, typename R::Acc acc) {
        const double value = static_cast<double>(acc);
        out.Store(row, root ? std::sqrt(value) : value);
      });
}

template <typename T>
absl::Status NormAs(KernelContext& context, const DimSplit& split, double ord,
                    const TensorView& in, const TensorView& out) {
  if (ord == 2) return Norm<SquareSumOf<T>, T>(context, split, true, in, out);
  if (ord == 1) {
    return Norm<AbsoluteSumOf<T>, T>(context, split, false, in, out);
  }
  if (ord == 0) {
    return Norm<NonzeroCountOf<T>, T>(context, split, false, in, out);
  }
  if (ord > 0) {
    return Norm<ExtremeMagnitudeOf<T, true>, T>(context, split, false, in, out);
  }
  return Norm<ExtremeMagnitudeOf<T, false>, T>(context, split, false, in, out);
}

template <typename T>
absl::Status Product(KernelContext& context, const DimSplit& split,
                     const TensorView& input, const TensorView& output) {
  using R = ProductOf<T>;
  const Operand out(output);
  return ReduceTensor<R, T>(
      context, split, input.as<T>(),
      [=] HOLDFAST_LAMBDA(int64_t row, typename R::Acc acc) {
        out.Store(row, acc);
      });
}

}  // namespace

HOLDFAST_CUDA_KERNEL(var_mean) {
  DimSplit split;
  absl::Status s = SplitOptional(attrs, *inputs[0].spec, &split);
  if (!s.ok()) return s;
  return DispatchStoredFloat(
      inputs[0].spec->dtype, [&](auto tag) -> absl::Status {
        return VarMean<typename decltype(tag)::type>(
            context, split, attrs.Float("correction"), inputs[0], outputs);
      });
}

HOLDFAST_CUDA_KERNEL(vector_norm) {
  DimSplit split;
  absl::Status s = SplitOptional(attrs, *inputs[0].spec, &split);
  if (!s.ok()) return s;
  return DispatchStoredFloat(
      inputs[0].spec->dtype, [&](auto tag) -> absl::Status {
        return NormAs<typename decltype(tag)::type>(
            context, split, attrs.Float("ord"), inputs[0], outputs[0]);
      });
}

// Elements are first converted to the type that the product has.
HOLDFAST_CUDA_KERNEL(prod) {
  TensorSpec spec;
  TensorView input = inputs[0];
  absl::Status s;
  if (input.spec->dtype != outputs[0].spec->dtype) {
    s = MakeContiguous(context, inputs[0], outputs[0].spec->dtype, &spec,
                       &input);
    if (!s.ok()) return s;
  }
  Dims dims;
  if (!attrs.None("dim")) dims.push_back(attrs.Int("dim"));
  DimSplit split;
  if (s = SplitDims(*input.spec, dims, &split); !s.ok()) return s;
  return DispatchStored(input.spec->dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    if constexpr (kIsComplex<T>) {
      return UnsupportedDType<absl::Status>();
    } else {
      return Product<T>(context, split, input, outputs[0]);
    }
  });
}

}  // namespace holdfast
