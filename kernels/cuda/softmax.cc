// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// softmax, log_softmax and their gradients: a group of threads for each row
// along dim, which it reads up to three times.
#include <cmath>
#include <limits>

#include "kernels/cuda/combine.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/elements.h"
#include "kernels/cuda/group.h"

namespace holdfast {
namespace {

// A contiguous tensor seen as [outer, n, inner].
struct Extents {
  int64_t outer = 1, n = 1, inner = 1;

  // Where a row begins; its elements are `inner` apart.
  HOLDFAST_HD int64_t Start(int64_t row) const {
    return row / inner * n * inner + row % inner;
  }
  int64_t rows() const { return outer * inner; }
  // Neighbouring rows are neighbours in memory unless inner is 1.
  int group() const { return inner >= kWarp ? 1 : GroupSize(n); }
};

absl::Status SplitAt(const TensorSpec& spec, int64_t dim, Extents* e) {
  absl::StatusOr<int> d = NormalizeDim(dim, spec.rank());
  if (!d.ok()) return d.status();
  for (int i = 0; i < spec.rank(); ++i) {
    (i < *d ? e->outer : i == *d ? e->n : e->inner) *= spec.shape[i];
  }
  return absl::OkStatus();
}

template <typename S, bool kLog>
absl::Status SoftmaxRows(KernelContext& context, const Extents& e, const S* in,
                         S* out) {
  using T = ComputeOf<S>;
  return ForEachRow(context, e.rows(), e.group(),
                    [=] HOLDFAST_LAMBDA(const Group& group, int64_t row) {
                      const int64_t start = e.Start(row);
                      const S* const x = in + start;
                      S* const y = out + start;
                      T max = -std::numeric_limits<T>::infinity();
                      for (int64_t j = group.rank; j < e.n; j += group.size) {
                        max = LargerOf()(max, Convert<T>(x[j * e.inner]));
                      }
                      max = group.Reduce(max, LargerOf());
                      T sum = 0;
                      for (int64_t j = group.rank; j < e.n; j += group.size) {
                        sum += std::exp(Convert<T>(x[j * e.inner]) - max);
                      }
                      sum = group.Reduce(sum, SumTwo());
                      const T scale = kLog ? max + std::log(sum) : T(1) / sum;
                      for (int64_t j = group.rank; j < e.n; j += group.size) {
                        const T v = Convert<T>(x[j * e.inner]);
                        y[j * e.inner] = Convert<S>(
                            kLog ? v - scale : std::exp(v - max) * scale);
                      }
                    });
}

// y (g - sum(g y)), or g - exp(y) sum(g).
template <typename S, bool kLog>
absl::Status BackwardRows(KernelContext& context, const Extents& e,
                          const S* grad, const S* result, S* out) {
  using T = ComputeOf<S>;
  return ForEachRow(
      context, e.rows(), e.group(),
      [=] HOLDFAST_LAMBDA(const Group& group, int64_t row) {
        const int64_t start = e.Start(row);
        T sum = 0;
        for (int64_t j = group.rank; j < e.n; j += group.size) {
          const int64_t at = start + j * e.inner;
          const T g = Convert<T>(grad[at]);
          sum += kLog ? g : g * Convert<T>(result[at]);
        }
        sum = group.Reduce(sum, SumTwo());
        for (int64_t j = group.rank; j < e.n; j += group.size) {
          const int64_t at = start + j * e.inner;
          const T g = Convert<T>(grad[at]), y = Convert<T>(result[at]);
          out[at] = Convert<S>(kLog ? g - std::exp(y) * sum : y * (g - sum));
        }
      });
}

template <bool kLog>
absl::Status Softmax(KernelContext& context, const Attrs& attrs,
                     const TensorView& input, const TensorView& output) {
  if (output.spec->numel() == 0) return absl::OkStatus();
  Extents e;
  absl::Status s = SplitAt(*output.spec, attrs.Int("dim"), &e);
  TensorSpec spec;
  TensorView in;
  if (s.ok()) {
    s = MakeContiguous(context, input, output.spec->dtype, &spec, &in);
  }
  if (!s.ok()) return s;
  return DispatchStoredFloat(output.spec->dtype, [&](auto tag) -> absl::Status {
    using S = typename decltype(tag)::type;
    return SoftmaxRows<S, kLog>(context, e, in.as<S>(), output.as<S>());
  });
}

template <bool kLog>
absl::Status SoftmaxBackward(KernelContext& context, const Attrs& attrs,
                             absl::Span<const TensorView> inputs,
                             const TensorView& output) {
  if (output.spec->numel() == 0) return absl::OkStatus();
  Extents e;
  absl::Status s = SplitAt(*output.spec, attrs.Int("dim"), &e);
  TensorSpec specs[2];
  TensorView views[2];
  for (int i = 0; i < 2 && s.ok(); ++i) {
    s = MakeContiguous(context, inputs[i], output.spec->dtype, &specs[i],
                       &views[i]);
  }
  if (!s.ok()) return s;
  return DispatchStoredFloat(output.spec->dtype, [&](auto tag) -> absl::Status {
    using S = typename decltype(tag)::type;
    return BackwardRows<S, kLog>(context, e, views[0].as<S>(), views[1].as<S>(),
                                 output.as<S>());
  });
}

}  // namespace

HOLDFAST_CUDA_KERNEL(softmax) {
  return Softmax<false>(context, attrs, inputs[0], outputs[0]);
}
HOLDFAST_CUDA_KERNEL(log_softmax) {
  return Softmax<true>(context, attrs, inputs[0], outputs[0]);
}
HOLDFAST_CUDA_KERNEL(softmax_backward) {
  return SoftmaxBackward<false>(context, attrs, inputs, outputs[0]);
}
HOLDFAST_CUDA_KERNEL(log_softmax_backward) {
  return SoftmaxBackward<true>(context, attrs, inputs, outputs[0]);
}

}  // namespace holdfast
