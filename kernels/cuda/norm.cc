// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// group_norm and batch_norm with their gradients. Both see a tensor as
// [lines, inner], lines being samples times channels: statistics are over the
// lines of a group (adjacent ones) or of a channel (one per sample).
#include <cmath>

#include "kernels/cuda/copy.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/elements.h"
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

// Two sums at once.
struct TwoSums {
  double first, second;
};
struct AddSums {
  using Acc = TwoSums;
  static HOLDFAST_HD Acc Init() { return {0, 0}; }
  static HOLDFAST_HD Acc Combine(Acc a, Acc b) {
    return {a.first + b.first, a.second + b.second};
  }
};

template <typename T>
HOLDFAST_HD T Factor(const T* weight, int64_t c) {
  return weight == nullptr ? T(1) : weight[c];
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

// [batch, channels, inner].
struct BatchLayout {
  int64_t batch = 1, channels = 1, inner = 1;
  HOLDFAST_HD int64_t At(int64_t c, int64_t j) const {
    return (j / inner * channels + c) * inner + j % inner;
  }
  int64_t count() const { return batch * inner; }
};

BatchLayout BatchLayoutOf(const TensorSpec& spec) {
  BatchLayout l;
  l.batch = spec.shape[0];
  l.channels = spec.shape[1];
  for (int d = 2; d < spec.rank(); ++d) l.inner *= spec.shape[d];
  return l;
}

template <typename T>
absl::Status BatchNorm(KernelContext& context, const BatchLayout& l, const T* x,
                       const T* weight, const T* bias, const T* running_mean,
                       const T* running_var, double eps, T* out, T* means,
                       T* vars) {
  const double count = static_cast<double>(l.count());
  absl::Status s;
  if (running_mean != nullptr) {
    s = ForEach(context, l.channels, [=] HOLDFAST_LAMBDA(int64_t c) {
      means[c] = running_mean[c];
      vars[c] = running_var[c];
    });
  } else {
    s = ReduceRows<MomentsOf<T>>(
        context, l.channels, l.count(), l.inner == 1,
        [=] HOLDFAST_LAMBDA(int64_t c, int64_t j) {
          return MomentsOf<T>::One(x[l.At(c, j)]);
        },
        [=] HOLDFAST_LAMBDA(int64_t c, Moments m) {
          means[c] = static_cast<T>(m.mean);
          vars[c] = static_cast<T>(m.squares / count);
        });
  }
  if (!s.ok()) return s;
  return ForEach(
      context, l.count() * l.channels, [=] HOLDFAST_LAMBDA(int64_t i) {
        const int64_t c = i / l.inner % l.channels;
        const T rstd = static_cast<T>(1 / std::sqrt(vars[c] + eps));
        const T shift = bias == nullptr ? T(0) : bias[c];
        out[i] = (x[i] - means[c]) * (rstd * Factor(weight, c)) + shift;
      });
}

template <typename T>
absl::Status BatchNormBackward(KernelContext& context, const BatchLayout& l,
                               const T* g, const T* x, const T* weight,
                               const T* means, const T* vars, double eps,
                               bool training, T* out, T* weight_grad,
                               T* bias_grad) {
  absl::Status s = ReduceRows<AddSums>(
      context, l.channels, l.count(), l.inner == 1,
      [=] HOLDFAST_LAMBDA(int64_t c, int64_t j) {
        const int64_t at = l.At(c, j);
        const double d = x[at] - means[c];
        return TwoSums{static_cast<double>(g[at]), g[at] * d};
      },
      [=] HOLDFAST_LAMBDA(int64_t c, TwoSums sums) {
        bias_grad[c] = static_cast<T>(sums.first);
        weight_grad[c] = static_cast<T>(sums.second / std::sqrt(vars[c] + eps));
      });
  if (!s.ok()) return s;
  const double count = static_cast<double>(l.count());
  return ForEach(context, l.count() * l.channels,
                 [=] HOLDFAST_LAMBDA(int64_t i) {
                   const int64_t c = i / l.inner % l.channels;
                   const double rstd = 1 / std::sqrt(vars[c] + eps);
                   const double scale = rstd * Factor(weight, c);
                   double grad = g[i];
                   if (training) {
                     const double d = (x[i] - means[c]) * rstd;
                     grad -= (bias_grad[c] + d * weight_grad[c]) / count;
                   }
                   out[i] = static_cast<T>(grad * scale);
                 });
}

// The operands that are there, contiguous and of one type.
struct Operands {
  TensorSpec specs[6];
  TensorView views[6];
};

absl::Status MakeOperands(KernelContext& context,
                          absl::Span<const TensorView> inputs, DType dtype,
                          Operands* in) {
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs[i].present()) continue;
    absl::Status s =
        MakeContiguous(context, inputs[i], dtype, &in->specs[i], &in->views[i]);
    if (!s.ok()) return s;
  }
  return absl::OkStatus();
}

}  // namespace

HOLDFAST_CUDA_KERNEL(group_norm) {
  const TensorSpec& spec = *inputs[0].spec;
  const GroupLayout l = GroupLayoutOf(attrs, spec);
  Operands in;
  absl::Status s = MakeOperands(context, inputs, spec.dtype, &in);
  if (!s.ok()) return s;
  return DispatchFloat(spec.dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    return GroupNorm<T>(context, l, in.views[0].as<T>(), in.views[1].as<T>(),
                        in.views[2].as<T>(), attrs.Float("eps"),
                        attrs.Bool("center"), outputs[0].as<T>(),
                        outputs[1].as<T>(), outputs[2].as<T>());
  });
}

HOLDFAST_CUDA_KERNEL(group_norm_backward) {
  const TensorSpec& spec = *inputs[1].spec;
  const GroupLayout l = GroupLayoutOf(attrs, spec);
  Operands in;
  absl::Status s = MakeOperands(context, inputs, spec.dtype, &in);
  if (!s.ok()) return s;
  return DispatchFloat(spec.dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    return GroupNormBackward<T>(context, l, in.views[0].as<T>(),
                                in.views[1].as<T>(), in.views[2].as<T>(),
                                in.views[3].as<T>(), in.views[4].as<T>(),
                                attrs.Bool("center"), outputs[0].as<T>(),
                                outputs[1].as<T>(), outputs[2].as<T>());
  });
}

HOLDFAST_CUDA_KERNEL(batch_norm) {
  const TensorSpec& spec = *inputs[0].spec;
  const BatchLayout l = BatchLayoutOf(spec);
  Operands in;
  absl::Status s = MakeOperands(context, inputs, spec.dtype, &in);
  if (!s.ok()) return s;
  return DispatchFloat(spec.dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    return BatchNorm<T>(context, l, in.views[0].as<T>(), in.views[1].as<T>(),
                        in.views[2].as<T>(), in.views[3].as<T>(),
                        in.views[4].as<T>(), attrs.Float("eps"),
                        outputs[0].as<T>(), outputs[1].as<T>(),
                        outputs[2].as<T>());
  });
}

HOLDFAST_CUDA_KERNEL(batch_norm_backward) {
  const TensorSpec& spec = *inputs[1].spec;
  const BatchLayout l = BatchLayoutOf(spec);
  Operands in;
  absl::Status s = MakeOperands(context, inputs, spec.dtype, &in);
  if (!s.ok()) return s;
  return DispatchFloat(spec.dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    return BatchNormBackward<T>(
        context, l, in.views[0].as<T>(), in.views[1].as<T>(),
        in.views[2].as<T>(), in.views[3].as<T>(), in.views[4].as<T>(),
        attrs.Float("eps"), attrs.Bool("training"), outputs[0].as<T>(),
        outputs[1].as<T>(), outputs[2].as<T>());
  });
}

}  // namespace holdfast
