// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// group_norm, of which layer normalisation is a case. A group of threads reads
// its row once; rows that are too long for that are read twice, their
// statistics being sums over planes.
#include <cmath>

#include "kernels/cuda/channel_terms.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/elements.h"
#include "kernels/cuda/norm_rows.h"
#include "kernels/cuda/norm_sums.h"
#include "kernels/cuda/plane_sums.h"

namespace holdfast::cuda {
namespace {

template <typename S>
struct NormCall {
  const S *x, *weight, *bias;
  double eps;
  bool center;
  S *out, *means, *rstds;
};

// (x - mean) rstd weight + bias for a pack of a row's elements.
template <int kWidth, typename S, typename Index, bool kAlong, typename T>
HOLDFAST_HD void StoreNormalised(const NormCall<S>& call,
                                 const RowFactors<S, Index, kAlong>& factors,
                                 int64_t channel, Index i, T mean, T rstd,
                                 const T (&x)[kWidth], S* to) {
  T w[kWidth], b[kWidth], y[kWidth];
  factors.Load(call.weight, T(1), channel, i, w);
  factors.Load(call.bias, T(0), channel, i, b);
  HOLDFAST_UNROLL
  for (int e = 0; e < kWidth; ++e) y[e] = (x[e] - mean) * rstd * w[e] + b[e];
  StorePack<kWidth>(to, y);
}

template <typename S, int kWidth, bool kAlong>
struct NormaliseHeldRow {
  using T = ComputeOf<S>;

  NormCall<S> call;
  RowFactors<S, uint32_t, kAlong> factors;
  int n;

  HOLDFAST_HD void operator()(const Group& group, int64_t r) const {
    const int64_t start = r * n;
    const HeldRow<S, kWidth> row(call.x + start, n, group.rank, group.size);
    T mean = 0;
    if (call.center) {
      // Differences from any element are exact where the mean is large.
      const T shift = n == 0 ? T(0) : Convert<T>(call.x[start]);
      const double sum =
          group.Reduce(row.Sum([=](T x) { return x - shift; }), AddNumbers());
      mean = static_cast<T>(shift + sum / n);
    }
    const double squares = group.Reduce(
        row.Sum([=](T x) { return (x - mean) * (x - mean); }), AddNumbers());
    const T rstd = static_cast<T>(1 / std::sqrt(squares / n + call.eps));
    if (group.first()) {
      call.means[r] = Convert<S>(mean);
      call.rstds[r] = Convert<S>(rstd);
    }
    const int64_t channel = factors.Channel(r);
    row.ForEachPack([&](int p, int i) {
      StoreNormalised(call, factors, channel, static_cast<uint32_t>(i), mean,
                      rstd, row.v[p], call.out + start + i);
    });
  }
};

template <typename S, int kWidth, bool kAlong>
absl::Status NormaliseHeldRows(KernelContext& context, const GroupLayout& l,
                               const NormCall<S>& call, int group) {
  return ForEachRow(
      context, l.rows, group,
      NormaliseHeldRow<S, kWidth, kAlong>{
          call, RowFactors<S, uint32_t, kAlong>(l), static_cast<int>(l.row())});
}

// Pack p of all of a tensor of long rows, whose mean and rstd are in `terms`.
template <typename S, int kWidth, bool kAlong, typename Index>
struct NormalisePack {
  using T = ComputeOf<S>;

  NormCall<S> call;
  RowFactors<S, Index, kAlong> factors;
  const T* terms;
  Division<Index> row;  // by its packs

  HOLDFAST_HD void operator()(int64_t p) const {
    const auto at = row.Split(static_cast<Index>(p));
    const int64_t r = at.quotient;
    T stats[2], x[kWidth];
    LoadPack<2>(terms + 2 * r, stats);
    LoadPack<kWidth>(call.x + p * kWidth, x);
    StoreNormalised(call, factors, factors.Channel(r),
                    static_cast<Index>(at.rest * kWidth), stats[0], stats[1], x,
                    call.out + p * kWidth);
  }
};

template <typename S, typename Index>
absl::Status LongRowStatistics(KernelContext& context, const GroupLayout& l,
                               const NormCall<S>& call, ComputeOf<S>* terms) {
  using T = ComputeOf<S>;
  const double n = static_cast<double>(l.row());
  return SumPlanes<Index>(
      context, {1, l.rows, l.row()}, MomentsOfChannel<S>{{call.x}},
      [=] HOLDFAST_LAMBDA(int64_t r, Moments m) {
        const double squares =
            call.center ? m.squares : m.squares + m.mean * m.mean * n;
        const T mean = call.center ? static_cast<T>(m.mean) : T(0);
        const T rstd = static_cast<T>(1 / std::sqrt(squares / n + call.eps));
        call.means[r] = Convert<S>(mean);
        call.rstds[r] = Convert<S>(rstd);
        const T stats[2] = {mean, rstd};
        StorePack<2>(terms + 2 * r, stats);
      });
}

template <typename S, int kWidth, bool kAlong, typename Index>
absl::Status NormalisePacks(KernelContext& context, const GroupLayout& l,
                            const NormCall<S>& call,
                            const ComputeOf<S>* terms) {
  return ForEach(context, l.numel() / kWidth,
                 NormalisePack<S, kWidth, kAlong, Index>{
                     call, RowFactors<S, Index, kAlong>(l), terms,
                     Division<Index>(l.row() / kWidth)});
}

template <typename S>
absl::Status GroupNorm(KernelContext& context, const GroupLayout& l,
                       const NormCall<S>& call) {
  using T = ComputeOf<S>;
  const bool fits =
      RowPacksFit<S>(l, {call.x, call.out}, {call.weight, call.bias});
  if (const int group = HeldGroup<T>(l.row()); group != 0) {
    return DispatchRows<S>(l, fits, [&](auto width, auto along) {
      return NormaliseHeldRows<S, width(), along()>(context, l, call, group);
    });
  }
  T* const terms = ScratchOf<T>(context, 2 * l.rows);
  if (terms == nullptr) return NoScratch();
  return DispatchIndex(l.numel(), [&](auto tag) -> absl::Status {
    using Index = typename decltype(tag)::type;
    absl::Status s = LongRowStatistics<S, Index>(context, l, call, terms);
    if (!s.ok()) return s;
    return DispatchRows<S>(l, fits, [&](auto width, auto along) {
      return NormalisePacks<S, width(), along(), Index>(context, l, call,
                                                        terms);
    });
  });
}

}  // namespace

HOLDFAST_CUDA_KERNEL(group_norm) {
  const TensorSpec& spec = *inputs[0].spec;
  const GroupLayout l = GroupLayoutOf(attrs, spec);
  ContiguousOperands<6> in;
  absl::Status s = in.Make(context, inputs, spec.dtype);
  if (!s.ok()) return s;
  return DispatchStoredFloat(spec.dtype, [&](auto tag) -> absl::Status {
    using S = typename decltype(tag)::type;
    return GroupNorm<S>(
        context, l,
        {in.as<S>(0), in.as<S>(1), in.as<S>(2), attrs.Float("eps"),
         attrs.Bool("center"), outputs[0].as<S>(), outputs[1].as<S>(),
         outputs[2].as<S>()});
  });
}

}  // namespace holdfast::cuda
