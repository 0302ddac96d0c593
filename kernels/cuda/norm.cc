// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// group_norm, of which layer normalisation is a case, and its gradient.
#include <cmath>

#include "kernels/cuda/copy.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/elements.h"
#include "kernels/cuda/norm_sums.h"
#include "kernels/cuda/reduce.h"
#include "kernels/cuda/reducers.h"

namespace holdfast {
namespace {

// rows of `channels` channels of `inner` adjacent elements; layer normalisation
// is the case of inner == 1 and one group.
struct GroupLayout {
  int64_t rows = 1, groups = 1, channels = 1, inner = 1;
  int64_t row() const { return channels * inner; }
  int64_t all() const { return groups * channels; }
};

GroupLayout GroupLayoutOf(const Attrs& attrs, const TensorSpec& input) {
  GroupLayout l;
  const int rank = input.rank();
  const int dims = static_cast<int>(attrs.Int("normalized_dims"));
  if (dims > 0) {
    for (int d = 0; d < rank; ++d) {
      (d < rank - dims ? l.rows : l.channels) *= input.shape[d];
    }
    return l;
  }
  l.groups = attrs.Int("groups");
  l.rows = input.shape[0] * l.groups;
  l.channels = input.shape[1] / l.groups;
  for (int d = 2; d < rank; ++d) l.inner *= input.shape[d];
  return l;
}

template <typename T>
absl::Status GroupNorm(KernelContext& context, const GroupLayout& l, const T* x,
                       const T* weight, const T* bias, double eps, bool center,
                       T* out, T* means, T* rstds) {
  const int64_t n = l.row();
  return ForEachRow(
      context, l.rows, GroupSize(n),
      [=] HOLDFAST_LAMBDA(const Group& group, int64_t r) {
        const T* const row = x + r * n;
        T mean = 0;
        if (center) {
          double sum = 0;
          for (int64_t i = group.rank; i < n; i += group.size) sum += row[i];
          mean =
              static_cast<T>(group.Reduce(sum, CombineOf<SumOf<double>>()) / n);
        }
        double squares = 0;
        for (int64_t i = group.rank; i < n; i += group.size) {
          const double d = row[i] - mean;
          squares += d * d;
        }
        squares = group.Reduce(squares, CombineOf<SumOf<double>>());
        const T rstd = static_cast<T>(1 / std::sqrt(squares / n + eps));
        if (group.rank == 0) {
          means[r] = mean;
          rstds[r] = rstd;
        }
        const int64_t channel = r % l.groups * l.channels;
        for (int64_t i = group.rank; i < n; i += group.size) {
          const int64_t c = channel + i / l.inner;
          const T shift = bias == nullptr ? T(0) : bias[c];
          out[r * n + i] = (row[i] - mean) * rstd * Factor(weight, c) + shift;
        }
      });
}

template <typename T>
absl::Status GroupNormBackward(KernelContext& context, const GroupLayout& l,
                               const T* g, const T* x, const T* weight,
                               const T* means, const T* rstds, bool center,
                               T* out, T* weight_grad, T* bias_grad) {
  const int64_t n = l.row();
  absl::Status s = ForEachRow(
      context, l.rows, GroupSize(n),
      [=] HOLDFAST_LAMBDA(const Group& group, int64_t r) {
        const T mean = center ? means[r] : T(0);
        const int64_t channel = r % l.groups * l.channels;
        TwoSums sums = {0, 0};
        for (int64_t i = group.rank; i < n; i += group.size) {
          const double gw =
              static_cast<double>(g[r * n + i]) *
              static_cast<double>(Factor(weight, channel + i / l.inner));
          sums.first += gw;
          sums.second += gw * (x[r * n + i] - mean);
        }
        sums = group.Reduce(sums, CombineOf<AddSums>());
        const double rstd = rstds[r];
        const T b = static_cast<T>(-sums.second / n * rstd * rstd * rstd);
        const T k = center ? static_cast<T>(-sums.first / n * rstd) : T(0);
        for (int64_t i = group.rank; i < n; i += group.size) {
          const int64_t at = r * n + i;
          const T a = Factor(weight, channel + i / l.inner) * rstds[r];
          out[at] = g[at] * a + (x[at] - mean) * b + k;
        }
      });
  if (!s.ok()) return s;
  // Per channel: over the samples and the channel's elements.
  const int64_t all = l.all(), inner = l.inner, channels = l.channels;
  const int64_t samples = l.rows / l.groups;
  return ReduceRows<AddSums>(
      context, all, samples * inner, inner == 1,
      [=] HOLDFAST_LAMBDA(int64_t c, int64_t j) {
        const int64_t line = j / inner * all + c;
        const int64_t at = line * inner + j % inner, r = line / channels;
        const double d = x[at] - (center ? means[r] : T(0));
        return TwoSums{static_cast<double>(g[at]), g[at] * d * rstds[r]};
      },
      [=] HOLDFAST_LAMBDA(int64_t c, TwoSums sums) {
        bias_grad[c] = static_cast<T>(sums.first);
        weight_grad[c] = static_cast<T>(sums.second);
      });
}

}  // namespace

HOLDFAST_CUDA_KERNEL(group_norm) {
  const TensorSpec& spec = *inputs[0].spec;
  const GroupLayout l = GroupLayoutOf(attrs, spec);
  ContiguousOperands<6> in;
  absl::Status s = in.Make(context, inputs, spec.dtype);
  if (!s.ok()) return s;
  return DispatchFloat(spec.dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    return GroupNorm<T>(context, l, in.as<T>(0), in.as<T>(1), in.as<T>(2),
                        attrs.Float("eps"), attrs.Bool("center"),
                        outputs[0].as<T>(), outputs[1].as<T>(),
                        outputs[2].as<T>());
  });
}

HOLDFAST_CUDA_KERNEL(group_norm_backward) {
  const TensorSpec& spec = *inputs[1].spec;
  const GroupLayout l = GroupLayoutOf(attrs, spec);
  ContiguousOperands<6> in;
  absl::Status s = in.Make(context, inputs, spec.dtype);
  if (!s.ok()) return s;
  return DispatchFloat(spec.dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    return GroupNormBackward<T>(context, l, in.as<T>(0), in.as<T>(1),
                                in.as<T>(2), in.as<T>(3), in.as<T>(4),
                                attrs.Bool("center"), outputs[0].as<T>(),
                                outputs[1].as<T>(), outputs[2].as<T>());
  });
}

}  // namespace holdfast
