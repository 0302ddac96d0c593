// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// group_norm_backward: the input's gradient row by row, those of weight and
// bias as sums over all rows.
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
struct GradCall {
  using T = ComputeOf<S>;

  const S *g, *x, *weight, *means, *rstds;
  bool center;
  S *out, *weight_grad, *bias_grad;

  HOLDFAST_HD T Mean(int64_t row) const {
    return center ? Convert<T>(means[row]) : T(0);
  }
  // With the sums of gw = g weight and of gw (x - mean) over n elements of row
  // r, the gradient is gw a + (x - mean) b + k.
  HOLDFAST_HD ChannelTerms<T> RowTerms(int64_t r, double n,
                                       TwoSums sums) const {
    const double rstd = Convert<T>(rstds[r]);
    const double k = center ? -sums.first / n * rstd : 0.0;
    return {Mean(r), Convert<T>(rstds[r]),
            static_cast<T>(-sums.second / n * rstd * rstd * rstd),
            static_cast<T>(k)};
  }
};

template <typename S, int kWidth, bool kAlong>
struct HeldRowGradient {
  using T = ComputeOf<S>;

  GradCall<S> call;
  RowFactors<S, uint32_t, kAlong> factors;
  int n;

  HOLDFAST_HD void operator()(const Group& group, int64_t r) const {
    const int64_t start = r * n, channel = factors.Channel(r);
    HeldRow<S, kWidth> g(call.g + start, n, group.rank, group.size);
    HeldRow<S, kWidth> x(call.x + start, n, group.rank, group.size);
    const T mean = call.Mean(r);
    T of_g = 0, of_product = 0;
    // From here on g is g weight, and x is x - mean.
    g.ForEachPack([&](int p, int i) {
      T w[kWidth];
      factors.Load(call.weight, T(1), channel, static_cast<uint32_t>(i), w);
      HOLDFAST_UNROLL
      for (int e = 0; e < kWidth; ++e) {
        g.v[p][e] *= w[e];
        x.v[p][e] -= mean;
        of_g += g.v[p][e];
        of_product += g.v[p][e] * x.v[p][e];
      }
    });
    const TwoSums sums = group.Reduce(TwoSums{of_g, of_product}, AddSums());
    const ChannelTerms<T> t = call.RowTerms(r, n, sums);
    g.ForEachPack([&](int p, int i) {
      T y[kWidth];
      HOLDFAST_UNROLL
      for (int e = 0; e < kWidth; ++e) {
        y[e] = g.v[p][e] * t.a + x.v[p][e] * t.b + t.k;
      }
      StorePack<kWidth>(call.out + start + i, y);
    });
  }
};

template <typename S, int kWidth, bool kAlong>
absl::Status HeldRowGradients(KernelContext& context, const GroupLayout& l,
                              const GradCall<S>& call, int group) {
  return ForEachRow(
      context, l.rows, group,
      HeldRowGradient<S, kWidth, kAlong>{
          call, RowFactors<S, uint32_t, kAlong>(l), static_cast<int>(l.row())});
}

// The two sums of a long row, as the one plane of a channel.
template <typename S, bool kAlong, typename Index>
struct LongRowSums : SumsOfTwo<S> {
  using T = ComputeOf<S>;
  struct State {
    RunningSums<T> sums;
    T mean;
    int64_t channel;
  };
  GradCall<S> call;
  RowFactors<S, Index, kAlong> factors;

  LongRowSums(const GradCall<S>& c, const GroupLayout& l)
      : SumsOfTwo<S>{{c.g, c.x}}, call(c), factors(l) {}

  HOLDFAST_HD State Start(int64_t row) const {
    return {{}, call.Mean(row), factors.Channel(row)};
  }
  HOLDFAST_HD void Adjust(const State& state, int64_t, int64_t i,
                          T (&v)[2]) const {
    T w[1];
    factors.Load(call.weight, T(1), state.channel, static_cast<Index>(i), w);
    v[0] *= w[0];
    v[1] = v[0] * (v[1] - state.mean);
  }
};

template <typename S, int kWidth, bool kAlong, typename Index>
struct GradientPack {
  using T = ComputeOf<S>;

  GradCall<S> call;
  RowFactors<S, Index, kAlong> factors;
  const T* terms;
  Division<Index> row;  // by its packs

  HOLDFAST_HD void operator()(int64_t p) const {
    const auto at = row.Split(static_cast<Index>(p));
    const int64_t r = at.quotient;
    const ChannelTerms<T> t = LoadTerms(terms, r);
    T g[kWidth], x[kWidth], w[kWidth];
    LoadPack<kWidth>(call.g + p * kWidth, g);
    LoadPack<kWidth>(call.x + p * kWidth, x);
    factors.Load(call.weight, T(1), factors.Channel(r),
                 static_cast<Index>(at.rest * kWidth), w);
    HOLDFAST_UNROLL
    for (int e = 0; e < kWidth; ++e) {
      x[e] = g[e] * w[e] * t.a + (x[e] - t.mean) * t.b + t.k;
    }
    StorePack<kWidth>(call.out + p * kWidth, x);
  }
};

template <typename S, bool kAlong, typename Index>
absl::Status LongRowTerms(KernelContext& context, const GroupLayout& l,
                          const GradCall<S>& call, ComputeOf<S>* terms) {
  using T = ComputeOf<S>;
  const double n = static_cast<double>(l.row());
  return SumPlanes<Index>(context, {1, l.rows, l.row()},
                          LongRowSums<S, kAlong, Index>(call, l),
                          [=] HOLDFAST_LAMBDA(int64_t r, TwoSums sums) {
                            StoreTerms<T>(terms, r, call.RowTerms(r, n, sums));
                          });
}

template <typename S, int kWidth, bool kAlong, typename Index>
absl::Status GradientPacks(KernelContext& context, const GroupLayout& l,
                           const GradCall<S>& call, const ComputeOf<S>* terms) {
  return ForEach(context, l.numel() / kWidth,
                 GradientPack<S, kWidth, kAlong, Index>{
                     call, RowFactors<S, Index, kAlong>(l), terms,
                     Division<Index>(l.row() / kWidth)});
}

template <typename S>
absl::Status InputGradient(KernelContext& context, const GroupLayout& l,
                           const GradCall<S>& call) {
  using T = ComputeOf<S>;
  const bool fits =
      RowPacksFit<S>(l, {call.g, call.x, call.out}, {call.weight});
  if (const int group = HeldGroup<T>(l.row()); group != 0) {
    return DispatchRows<S>(l, fits, [&](auto width, auto along) {
      return HeldRowGradients<S, width(), along()>(context, l, call, group);
    });
  }
  T* const terms = ScratchOf<T>(context, 4 * l.rows);
  if (terms == nullptr) return NoScratch();
  return DispatchIndex(l.numel(), [&](auto tag) -> absl::Status {
    using Index = typename decltype(tag)::type;
    absl::Status s =
        l.inner == 1 ? LongRowTerms<S, true, Index>(context, l, call, terms)
                     : LongRowTerms<S, false, Index>(context, l, call, terms);
    if (!s.ok()) return s;
    return DispatchRows<S>(l, fits, [&](auto width, auto along) {
      return GradientPacks<S, width(), along(), Index>(context, l, call, terms);
    });
  });
}

// Adds up g and g (x - mean) rstd over the samples and the channel's elements.
// With one group a sample's channels share mean and rstd, read once for a pack.
template <typename S, bool kOneGroup>
struct FactorSums : SumsOfTwo<S> {
  using T = ComputeOf<S>;
  struct State {
    RunningSums<T> sums;
    int64_t group;
  };
  GradCall<S> call;
  int64_t groups, channels;

  FactorSums(const GradCall<S>& c, const GroupLayout& l)
      : SumsOfTwo<S>{{c.g, c.x}},
        call(c),
        groups(l.groups),
        channels(l.channels) {}

  HOLDFAST_HD State Start(int64_t channel) const {
    return {{}, kOneGroup ? 0 : channel / channels};
  }
  HOLDFAST_HD void Adjust(const State& state, int64_t n, int64_t,
                          T (&v)[2]) const {
    const int64_t r = kOneGroup ? n : n * groups + state.group;
    v[1] = v[0] * ((v[1] - call.Mean(r)) * Convert<T>(call.rstds[r]));
  }
};

template <typename S>
struct StoreFactorGradients {
  S *weight_grad, *bias_grad;

  HOLDFAST_HD void operator()(int64_t c, TwoSums sums) const {
    using T = ComputeOf<S>;
    bias_grad[c] = Convert<S>(static_cast<T>(sums.first));
    weight_grad[c] = Convert<S>(static_cast<T>(sums.second));
  }
};

template <typename S>
absl::Status FactorGradients(KernelContext& context, const GroupLayout& l,
                             const GradCall<S>& call) {
  const PlaneLayout planes = {l.rows / l.groups, l.all(), l.inner};
  const StoreFactorGradients<S> store = {call.weight_grad, call.bias_grad};
  if (AreColumns(planes) && l.groups == 1) {
    return SumColumns(context, planes, FactorSums<S, true>(call, l), store);
  }
  return SumChannels(context, planes, FactorSums<S, false>(call, l), store);
}

}  // namespace

HOLDFAST_CUDA_KERNEL(group_norm_backward) {
  const TensorSpec& spec = *inputs[1].spec;
  const GroupLayout l = GroupLayoutOf(attrs, spec);
  ContiguousOperands<6> in;
  absl::Status s = in.Make(context, inputs, spec.dtype);
  if (!s.ok()) return s;
  return DispatchStoredFloat(spec.dtype, [&](auto tag) -> absl::Status {
    using S = typename decltype(tag)::type;
    const GradCall<S> call = {
        in.as<S>(0),        in.as<S>(1),        in.as<S>(2),
        in.as<S>(3),        in.as<S>(4),        attrs.Bool("center"),
        outputs[0].as<S>(), outputs[1].as<S>(), outputs[2].as<S>()};
    absl::Status status = InputGradient<S>(context, l, call);
    return status.ok() ? FactorGradients<S>(context, l, call) : status;
  });
}

}  // namespace holdfast::cuda
