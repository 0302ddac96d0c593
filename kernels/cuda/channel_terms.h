// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// out = g a + (x - mean) b + k over [batch, channels, inner], with four numbers
// per channel that were computed once. A thread has a pack of adjacent elements
// of one channel, or some rows of adjacent channels where inner is 1.
// Thread-safety: reentrant.
#ifndef HOLDFAST_KERNELS_CUDA_CHANNEL_TERMS_H_
#define HOLDFAST_KERNELS_CUDA_CHANNEL_TERMS_H_

#include <cstdint>

#include "absl/status/status.h"
#include "kernels/cuda/group.h"
#include "kernels/cuda/index_division.h"
#include "kernels/cuda/packs.h"
#include "kernels/cuda/plane_sums.h"

namespace holdfast::cuda {

// A channel's; one load for float.
template <typename T>
struct ChannelTerms {
  T mean, a, b, k;
};

// What elements are computed from.
enum class TermsOf { kX, kBoth };

// One element. Without a gradient there is no g a.
template <TermsOf kOf, typename T>
HOLDFAST_HD T Applied(const ChannelTerms<T>& t, T g, T x) {
  const T y = (x - t.mean) * t.b + t.k;
  return kOf == TermsOf::kX ? y : g * t.a + y;
}

template <typename T>
HOLDFAST_HD ChannelTerms<T> LoadTerms(const T* terms, int64_t channel) {
  T v[4];
  LoadPack<4>(terms + 4 * channel, v);
  return {v[0], v[1], v[2], v[3]};
}

template <typename T>
HOLDFAST_HD void StoreTerms(T* terms, int64_t channel,
                            const ChannelTerms<T>& t) {
  const T v[4] = {t.mean, t.a, t.b, t.k};
  StorePack<4>(terms + 4 * channel, v);
}

// `terms`: 4 numbers for each channel, at an address that packs fit.
template <TermsOf kOf, typename S>
struct TermsCall {
  const ComputeOf<S>* terms;
  const S* g;  // null where kOf is kX
  const S* x;
  S* out;
};

template <TermsOf kOf, typename S, int kWidth, typename Index>
struct ApplyToPlanes {
  using T = ComputeOf<S>;

  TermsCall<kOf, S> call;
  Division<Index> plane, channels;  // a plane's packs, and the channels

  // Pack p of all.
  HOLDFAST_HD void operator()(int64_t p) const {
    const Index pack = static_cast<Index>(p);
    const Index channel = channels.Split(plane.Divide(pack)).rest;
    const ChannelTerms<T> t = LoadTerms(call.terms, channel);
    const int64_t at = p * kWidth;
    T x[kWidth], g[kWidth] = {};
    LoadPack<kWidth>(call.x + at, x);
    if (kOf == TermsOf::kBoth) LoadPack<kWidth>(call.g + at, g);
    HOLDFAST_UNROLL
    for (int e = 0; e < kWidth; ++e) x[e] = Applied<kOf>(t, g[e], x[e]);
    StorePack<kWidth>(call.out + at, x);
  }
};

// Rows of a thread, for which it reads the terms once, and those of them that
// it loads before it stores the first.
inline constexpr int kTermRows = 8;
inline constexpr int kLoadedRows = 4;

template <TermsOf kOf, typename S, int kWidth, typename Index>
struct ApplyToColumns {
  using T = ComputeOf<S>;

  TermsCall<kOf, S> call;
  Index batch, channels;
  Division<Index> packs;  // by those of a row

  HOLDFAST_HD void operator()(int64_t item) const {
    const auto at = packs.Split(static_cast<Index>(item));
    const Index channel = at.rest * kWidth, first = at.quotient * kTermRows;
    ChannelTerms<T> t[kWidth];
    HOLDFAST_UNROLL
    for (int c = 0; c < kWidth; ++c) t[c] = LoadTerms(call.terms, channel + c);
    HOLDFAST_UNROLL
    for (int r = 0; r < kTermRows; r += kLoadedRows) {
      ApplyToRows(t, channel, first + r);
    }
  }

  HOLDFAST_HD void ApplyToRows(const ChannelTerms<T> (&t)[kWidth],
                               Index channel, Index row) const {
    T x[kLoadedRows][kWidth], g[kLoadedRows][kWidth] = {};
    const Index at = row * channels + channel;
    HOLDFAST_UNROLL
    for (int r = 0; r < kLoadedRows; ++r) {
      if (row + r >= batch) continue;
      LoadPack<kWidth>(call.x + (at + r * channels), x[r]);
      if (kOf == TermsOf::kBoth) {
        LoadPack<kWidth>(call.g + (at + r * channels), g[r]);
      }
    }
    HOLDFAST_UNROLL
    for (int r = 0; r < kLoadedRows; ++r) {
      if (row + r >= batch) continue;
      HOLDFAST_UNROLL
      for (int c = 0; c < kWidth; ++c) {
        x[r][c] = Applied<kOf>(t[c], g[r][c], x[r][c]);
      }
      StorePack<kWidth>(call.out + (at + r * channels), x[r]);
    }
  }
};

template <TermsOf kOf, typename S, int kWidth, typename Index>
absl::Status ApplyTermsToPlanes(KernelContext& context, const PlaneLayout& l,
                                const TermsCall<kOf, S>& call) {
  return ForEach(context, l.numel() / kWidth,
                 ApplyToPlanes<kOf, S, kWidth, Index>{
                     call, Division<Index>(l.inner / kWidth),
                     Division<Index>(l.channels)});
}

template <TermsOf kOf, typename S, int kWidth, typename Index>
absl::Status ApplyTermsToColumns(KernelContext& context, const PlaneLayout& l,
                                 const TermsCall<kOf, S>& call) {
  const int64_t blocks = (l.batch + kTermRows - 1) / kTermRows;
  return ForEach(
      context, blocks * (l.channels / kWidth),
      ApplyToColumns<kOf, S, kWidth, Index>{
          call, static_cast<Index>(l.batch), static_cast<Index>(l.channels),
          Division<Index>(l.channels / kWidth)});
}

template <TermsOf kOf, typename S>
absl::Status ApplyTerms(KernelContext& context, const PlaneLayout& l,
                        const TermsCall<kOf, S>& call) {
  constexpr int kPlane = kPackWidth<S>, kColumn = kColumnWidth<S>;
  const bool columns = AreColumns(l);
  const bool fits =
      PacksFit<S>(columns ? kColumn : kPlane, columns ? l.channels : l.inner,
                  {call.g, call.x, call.out});
  // Of the last rows' places some are past the end.
  return DispatchIndex(
      l.numel() + kTermRows * l.channels, [&](auto tag) -> absl::Status {
        using Index = typename decltype(tag)::type;
        if (columns) {
          return fits ? ApplyTermsToColumns<kOf, S, kColumn, Index>(context, l,
                                                                    call)
                      : ApplyTermsToColumns<kOf, S, 1, Index>(context, l, call);
        }
        return fits
                   ? ApplyTermsToPlanes<kOf, S, kPlane, Index>(context, l, call)
                   : ApplyTermsToPlanes<kOf, S, 1, Index>(context, l, call);
      });
}

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_CHANNEL_TERMS_H_
