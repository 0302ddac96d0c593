// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// nll_loss and its gradient. Every target is checked before it is an index.
#include <string>

#include "kernels/cuda/check.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/elements.h"
#include "kernels/cuda/reduce.h"

namespace holdfast::cuda {
namespace {

enum class Reduction { kNone, kMean, kSum };

absl::Status ParseReduction(const Attrs& attrs, Reduction* reduction) {
  const std::string& name = attrs.Str("reduction");
  if (name == "mean") {
    *reduction = Reduction::kMean;
  } else if (name == "sum") {
    *reduction = Reduction::kSum;
  } else if (name == "none") {
    *reduction = Reduction::kNone;
  } else {
    return absl::InvalidArgumentError(
        absl::StrCat("[", attrs.schema().name, "] ", name,
                     " is not a valid value for reduction."));
  }
  return absl::OkStatus();
}

// Targets of samples of `classes` classes.
struct Targets {
  const int64_t* data;
  int64_t stride, ignore_index;

  // -1 where the sample is ignored.
  HOLDFAST_HD int64_t operator[](int64_t i) const {
    const int64_t t = data[i * stride];
    return t == ignore_index ? -1 : t;
  }
};

// Waits.
absl::StatusOr<Targets> CheckTargets(KernelContext& context, const Attrs& attrs,
                                     const TensorView& target, int64_t samples,
                                     int64_t classes) {
  const Targets targets = {
      target.as<int64_t>(),
      target.spec->rank() == 0 ? 0 : target.spec->strides[0],
      attrs.Int("ignore_index")};
  absl::StatusOr<int64_t> fault =
      FirstFault(context, samples, [=] HOLDFAST_LAMBDA(int64_t i) {
        const int64_t t = targets.data[i * targets.stride];
        return t != targets.ignore_index && !InRange(t, classes);
      });
  if (!fault.ok()) return fault.status();
  if (*fault < 0) return targets;
  absl::StatusOr<int64_t> bad =
      ReadElement(context, targets.data + *fault * targets.stride);
  if (!bad.ok()) return bad.status();
  return absl::OutOfRangeError(absl::StrCat(
      "[", attrs.schema().name, "] Target ", *bad,
      " is out of bounds. Got classes=", classes, " at sample ", *fault, "."));
}

struct LossSums {
  double loss, weight;
};
struct AddLosses {
  using Acc = LossSums;
  static HOLDFAST_HD Acc Init() { return {0, 0}; }
  static HOLDFAST_HD Acc Combine(Acc a, Acc b) {
    return {a.loss + b.loss, a.weight + b.weight};
  }
};

struct Sizes {
  int64_t samples, classes;
};
// Of log-probabilities [N,C] or [C].
Sizes SizesOf(absl::Span<const int64_t> shape) {
  return {shape.size() == 1 ? 1 : shape[0], shape.back()};
}

template <typename S>
absl::Status Loss(KernelContext& context, const TensorView& input,
                  const TensorView& weight, const Targets& targets,
                  int64_t samples, Reduction reduction,
                  absl::Span<const TensorView> outputs) {
  using T = ComputeOf<S>;
  const TensorSpec& spec = *input.spec;
  const int64_t class_stride = spec.strides.back();
  const int64_t sample_stride = spec.rank() == 1 ? 0 : spec.strides[0];
  const S* const in = input.as<S>();
  const S* const w = weight.as<S>();
  S* const out = outputs[0].as<S>();
  S* const total_weight = outputs[1].as<S>();
  const auto sample = [=] HOLDFAST_LAMBDA(int64_t i) {
    const int64_t t = targets[i];
    if (t < 0) return LossSums{0, 0};
    const T wt = w == nullptr ? T(1) : Convert<T>(w[t]);
    const T value = -Convert<T>(in[i * sample_stride + t * class_stride]) * wt;
    return LossSums{static_cast<double>(value), static_cast<double>(wt)};
  };
  if (reduction == Reduction::kNone) {
    absl::Status s = ForEach(context, samples, [=] HOLDFAST_LAMBDA(int64_t i) {
      out[i] = Convert<S>(static_cast<T>(sample(i).loss));
    });
    if (!s.ok()) return s;
    return Cuda(context).FillBytes(total_weight, 0, sizeof(S));
  }
  const bool mean = reduction == Reduction::kMean;
  return ReduceRows<AddLosses>(
      context, 1, samples, false,
      [=] HOLDFAST_LAMBDA(int64_t, int64_t i) { return sample(i); },
      [=] HOLDFAST_LAMBDA(int64_t, LossSums sums) {
        const double loss = mean ? sums.loss / sums.weight : sums.loss;
        *out = Convert<S>(static_cast<T>(loss));
        *total_weight = Convert<S>(static_cast<T>(sums.weight));
      });
}

// Zeros but at the samples' targets, of which a thread has one.
template <typename S>
absl::Status LossBackward(KernelContext& context, const TensorView& grad_view,
                          const TensorView& weight, const Targets& targets,
                          const TensorView& total_weight, const Sizes& sizes,
                          Reduction reduction, const TensorView& output) {
  using T = ComputeOf<S>;
  const S* const grad = grad_view.as<S>();
  const int64_t grad_stride =
      reduction == Reduction::kNone && grad_view.spec->rank() == 1
          ? grad_view.spec->strides[0]
          : 0;
  const S* const w = weight.as<S>();
  const S* const total =
      reduction == Reduction::kMean ? total_weight.as<S>() : nullptr;
  S* const out = output.as<S>();
  const int64_t classes = sizes.classes;
  if (output.spec->numel() == 0) return absl::OkStatus();
  absl::Status s = Cuda(context).FillBytes(out, 0, output.spec->nbytes());
  if (!s.ok()) return s;
  return ForEach(context, sizes.samples, [=] HOLDFAST_LAMBDA(int64_t row) {
    const int64_t t = targets[row];
    if (t < 0) return;
    const T wt = w == nullptr ? T(1) : Convert<T>(w[t]);
    const T scale = total == nullptr ? T(1) : T(1) / Convert<T>(*total);
    out[row * classes + t] =
        Convert<S>(-wt * scale * Convert<T>(grad[row * grad_stride]));
  });
}

// The weights, contiguous and of type `dtype`, if there are any.
absl::Status Weights(KernelContext& context, const TensorView& input,
                     DType dtype, TensorSpec* spec, TensorView* weight) {
  if (!input.present()) return absl::OkStatus();
  return MakeContiguous(context, input, dtype, spec, weight);
}

}  // namespace

HOLDFAST_CUDA_KERNEL(nll_loss) {
  const TensorSpec& spec = *inputs[0].spec;
  const Sizes sizes = SizesOf(spec.shape);
  Reduction reduction;
  absl::Status s = ParseReduction(attrs, &reduction);
  TensorSpec weight_spec;
  TensorView weight;
  if (s.ok()) {
    s = Weights(context, inputs[2], spec.dtype, &weight_spec, &weight);
  }
  if (!s.ok()) return s;
  absl::StatusOr<Targets> targets =
      CheckTargets(context, attrs, inputs[1], sizes.samples, sizes.classes);
  if (!targets.ok()) return targets.status();
  return DispatchStoredFloat(spec.dtype, [&](auto tag) -> absl::Status {
    return Loss<typename decltype(tag)::type>(context, inputs[0], weight,
                                              *targets, sizes.samples,
                                              reduction, outputs);
  });
}

HOLDFAST_CUDA_KERNEL(nll_loss_backward) {
  const TensorSpec& spec = *outputs[0].spec;
  const Sizes sizes = SizesOf(spec.shape);
  Reduction reduction;
  absl::Status s = ParseReduction(attrs, &reduction);
  TensorSpec weight_spec;
  TensorView weight;
  if (s.ok()) {
    s = Weights(context, inputs[2], spec.dtype, &weight_spec, &weight);
  }
  if (!s.ok()) return s;
  absl::StatusOr<Targets> targets =
      CheckTargets(context, attrs, inputs[1], sizes.samples, sizes.classes);
  if (!targets.ok()) return targets.status();
  return DispatchStoredFloat(spec.dtype, [&](auto tag) -> absl::Status {
    return LossBackward<typename decltype(tag)::type>(
        context, inputs[0], weight, *targets, inputs[3], sizes, reduction,
        outputs[0]);
  });
}

}  // namespace holdfast::cuda
