// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// weighted_gather and its two gradients: input [N,C,L], weight [N,K,P], output
// (or grad) [N,C,P], index [N,K,P]. A thread per element of the result; the
// gradient of the input adds atomically, in any order.
#include "absl/strings/str_cat.h"
#include "kernels/cuda/check.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/elements.h"
#include "kernels/cuda/lanes.h"

namespace holdfast::cuda {
namespace {

struct Sizes {
  int64_t n, channels, length, taps, columns;

  // Where column p of tap k of image n is in index and weight.
  HOLDFAST_HD int64_t Tap(int64_t image, int64_t k, int64_t p) const {
    return (image * taps + k) * columns + p;
  }
};

Sizes ReadSizes(const TensorSpec& planes, int64_t length,
                const TensorSpec& index) {
  return {planes.shape[0], planes.shape[1], length, index.shape[1],
          index.shape[2]};
}

// Waits. A negative index adds nothing.
absl::Status CheckIndex(KernelContext& context, const Attrs& attrs,
                        const int64_t* index, int64_t count, int64_t length) {
  absl::StatusOr<int64_t> fault =
      FirstFault(context, count,
                 [=] HOLDFAST_LAMBDA(int64_t i) { return index[i] >= length; });
  if (!fault.ok()) return fault.status();
  if (*fault < 0) return absl::OkStatus();
  absl::StatusOr<int64_t> bad = ReadElement(context, index + *fault);
  if (!bad.ok()) return bad.status();
  return absl::OutOfRangeError(
      absl::StrCat("[", attrs.schema().name, "] index ", *bad,
                   " is out of bounds for ", length, " elements."));
}

template <typename T>
struct Gather {
  Sizes s;
  const T* input;
  const int64_t* index;
  const T* weight;
  T* out;

  HOLDFAST_HD void operator()(int64_t i) const {
    const int64_t p = i % s.columns, plane = i / s.columns;
    const int64_t image = plane / s.channels;
    T sum = 0;
    for (int64_t k = 0; k < s.taps; ++k) {
      const int64_t tap = s.Tap(image, k, p), at = index[tap];
      if (at >= 0) sum += weight[tap] * input[plane * s.length + at];
    }
    out[i] = sum;
  }
};

template <typename T>
struct Scatter {
  Sizes s;
  const T* grad;
  const int64_t* index;
  const T* weight;
  T* out;

  HOLDFAST_HD void operator()(int64_t i) const {
    const int64_t p = i % s.columns, plane = i / s.columns;
    const int64_t image = plane / s.channels;
    for (int64_t k = 0; k < s.taps; ++k) {
      const int64_t tap = s.Tap(image, k, p), at = index[tap];
      if (at < 0) continue;
      AtomicAdd(out + plane * s.length + at, weight[tap] * grad[i]);
    }
  }
};

template <typename T>
struct GatherDots {
  Sizes s;
  const T* grad;
  const int64_t* index;
  const T* input;
  T* out;

  HOLDFAST_HD void operator()(int64_t i) const {
    const int64_t p = i % s.columns, image = i / s.columns / s.taps;
    const int64_t at = index[i];
    T sum = 0;
    for (int64_t c = 0; c < s.channels && at >= 0; ++c) {
      const int64_t plane = image * s.channels + c;
      sum += grad[plane * s.columns + p] * input[plane * s.length + at];
    }
    out[i] = sum;
  }
};

// run(type, first, checked index, third): operands 0 and 2, contiguous.
template <typename Run>
absl::Status WithOperands(KernelContext& context, const Attrs& attrs,
                          absl::Span<const TensorView> inputs, int64_t length,
                          const TensorView& out, Run run) {
  ContiguousOperands<3> in;
  const DType dtype = inputs[0].spec->dtype;
  absl::Status s = in.MakeOne(context, 1, inputs[1], DType::kInt64);
  if (s.ok()) {
    s = CheckIndex(context, attrs, in.as<int64_t>(1), inputs[1].spec->numel(),
                   length);
  }
  if (s.ok()) s = in.MakeOne(context, 0, inputs[0], dtype);
  if (s.ok()) s = in.MakeOne(context, 2, inputs[2], dtype);
  if (!s.ok() || out.spec->numel() == 0) return s;
  return DispatchFloat(out.spec->dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    const T* const first = in.as<T>(0);
    const T* const third = in.as<T>(2);
    return run(first, in.as<int64_t>(1), third, out.as<T>());
  });
}

}  // namespace

HOLDFAST_CUDA_KERNEL(weighted_gather) {
  const TensorView& out = outputs[0];
  const Sizes s =
      ReadSizes(*out.spec, inputs[0].spec->shape[2], *inputs[1].spec);
  return WithOperands(context, attrs, inputs, s.length, out,
                      [&](auto* input, const int64_t* index, auto* weight,
                          auto* to) -> absl::Status {
                        using T = std::remove_reference_t<decltype(*to)>;
                        return ForEach(context, out.spec->numel(),
                                       Gather<T>{s, input, index, weight, to});
                      });
}

HOLDFAST_CUDA_KERNEL(weighted_gather_backward_input) {
  const TensorView& out = outputs[0];
  const Sizes s = ReadSizes(*out.spec, out.spec->shape[2], *inputs[1].spec);
  return WithOperands(context, attrs, inputs, s.length, out,
                      [&](auto* grad, const int64_t* index, auto* weight,
                          auto* to) -> absl::Status {
                        using T = std::remove_reference_t<decltype(*to)>;
                        absl::Status cleared =
                            Cuda(context).FillBytes(to, 0, out.spec->nbytes());
                        if (!cleared.ok()) return cleared;
                        return ForEachInLanes(
                            context, Lanes{s.n * s.channels, s.columns, 1},
                            Scatter<T>{s, grad, index, weight, to});
                      });
}

HOLDFAST_CUDA_KERNEL(weighted_gather_backward_weight) {
  const TensorView& out = outputs[0];
  const Sizes s =
      ReadSizes(*inputs[0].spec, inputs[2].spec->shape[2], *inputs[1].spec);
  return WithOperands(context, attrs, inputs, s.length, out,
                      [&](auto* grad, const int64_t* index, auto* input,
                          auto* to) -> absl::Status {
                        using T = std::remove_reference_t<decltype(*to)>;
                        return ForEach(
                            context, out.spec->numel(),
                            GatherDots<T>{s, grad, index, input, to});
                      });
}

}  // namespace holdfast::cuda
