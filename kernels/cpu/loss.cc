// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// nll_loss and its gradient. Targets come from clients: every one is checked
// before it becomes an index.
#include <cstring>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/load_once.h"
#include "kernels/cpu/parallel.h"
#include "kernels/dtype_dispatch.h"
#include "ops/op_schema.h"

namespace holdfast::cpu {
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

// Every sample's class, or -1 where it is ignored; nullptr with a status when
// one is out of range. A copy: a client may change its tensors at any time, so
// what was checked must be what is used.
absl::Status ReadTargets(KernelContext& context, const Attrs& attrs,
                         const TensorView& target, int64_t samples,
                         int64_t classes, const int64_t** out) {
  int64_t* copy =
      static_cast<int64_t*>(context.Scratch(sizeof(int64_t) * samples));
  if (copy == nullptr) {
    return absl::ResourceExhaustedError(absl::StrCat("[", attrs.schema().name,
                                                     "] no memory to check ",
                                                     samples, " targets."));
  }
  const int64_t* data = target.as<int64_t>();
  const int64_t stride = target.spec->rank() == 0 ? 0 : target.spec->strides[0];
  const int64_t ignore_index = attrs.Int("ignore_index");
  for (int64_t i = 0; i < samples; ++i) {
    const int64_t t = LoadOnce(data + i * stride);
    if (t == ignore_index) {
      copy[i] = -1;
    } else if (static_cast<uint64_t>(t) < static_cast<uint64_t>(classes)) {
      copy[i] = t;
    } else {
      return absl::OutOfRangeError(absl::StrCat(
          "[", attrs.schema().name, "] Target ", t,
          " is out of bounds. Got classes=", classes, " at sample ", i, "."));
    }
  }
  *out = copy;
  return absl::OkStatus();
}

// Samples and classes of log-probabilities [N,C] or [C].
void Sizes(absl::Span<const int64_t> shape, int64_t* samples,
           int64_t* classes) {
  *samples = shape.size() == 1 ? 1 : shape[0];
  *classes = shape.back();
}

}  // namespace

HOLDFAST_CPU_KERNEL(nll_loss) {
  const TensorSpec& in_spec = *inputs[0].spec;
  int64_t samples = 0, classes = 0;
  Sizes(in_spec.shape, &samples, &classes);
  Reduction reduction;
  absl::Status s = ParseReduction(attrs, &reduction);
  if (!s.ok()) return s;
  TensorSpec weight_spec;
  const int64_t* targets = nullptr;
  s = ReadTargets(context, attrs, inputs[1], samples, classes, &targets);
  if (!s.ok()) return s;
  TensorView weight;
  if (inputs[2].present()) {
    s = MakeContiguous(context, inputs[2], in_spec.dtype, &weight_spec,
                       &weight);
    if (!s.ok()) return s;
  }
  return DispatchFloat(in_spec.dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    const T* in = inputs[0].as<T>();
    const T* w = weight.as<T>();
    T* out = outputs[0].as<T>();
    const int64_t class_stride = in_spec.strides.back();
    const int64_t sample_stride = in_spec.rank() == 1 ? 0 : in_spec.strides[0];
    double loss = 0, total_weight = 0;
    for (int64_t i = 0; i < samples; ++i) {
      const int64_t t = targets[i];
      if (t < 0) {
        if (reduction == Reduction::kNone) out[i] = 0;
        continue;
      }
      const T wt = w == nullptr ? T{1} : w[t];
      const T value = -in[i * sample_stride + t * class_stride] * wt;
      if (reduction == Reduction::kNone) {
        out[i] = value;
      } else {
        loss += value;
        total_weight += wt;
      }
    }
    if (reduction == Reduction::kMean) loss /= total_weight;
    if (reduction != Reduction::kNone) *out = static_cast<T>(loss);
    *outputs[1].as<T>() = static_cast<T>(total_weight);
    return absl::OkStatus();
  });
}

HOLDFAST_CPU_KERNEL(nll_loss_backward) {
  const TensorSpec& out_spec = *outputs[0].spec;
  int64_t samples = 0, classes = 0;
  Sizes(out_spec.shape, &samples, &classes);
  Reduction reduction;
  absl::Status s = ParseReduction(attrs, &reduction);
  if (!s.ok()) return s;
  TensorSpec weight_spec;
  const int64_t* targets = nullptr;
  s = ReadTargets(context, attrs, inputs[1], samples, classes, &targets);
  if (!s.ok()) return s;
  TensorView weight;
  if (inputs[2].present()) {
    s = MakeContiguous(context, inputs[2], out_spec.dtype, &weight_spec,
                       &weight);
    if (!s.ok()) return s;
  }
  return DispatchFloat(out_spec.dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    const T* grad = inputs[0].as<T>();
    const int64_t grad_stride =
        reduction == Reduction::kNone && inputs[0].spec->rank() == 1
            ? inputs[0].spec->strides[0]
            : 0;
    const T* w = weight.as<T>();
    const T scale =
        reduction == Reduction::kMean ? T{1} / *inputs[3].as<T>() : T{1};
    T* out = outputs[0].as<T>();
    const int64_t grain = std::max<int64_t>(1, 32768 / (classes + 1));
    ParallelFor(context, samples, grain, [&](int64_t b, int64_t e) {
      std::memset(out + b * classes, 0, (e - b) * classes * sizeof(T));
      for (int64_t i = b; i < e; ++i) {
        const int64_t t = targets[i];
        if (t < 0) continue;
        const T wt = w == nullptr ? T{1} : w[t];
        out[i * classes + t] = -wt * scale * grad[i * grad_stride];
      }
    });
    return absl::OkStatus();
  });
}

}  // namespace holdfast::cpu
