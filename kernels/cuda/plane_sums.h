// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Sums per channel of [batch, channels, inner]. Threads read packs of adjacent
// elements, several before they add up the first. Where a channel has adjacent
// elements, a group of threads has a channel, or a segment of one; where inner
// is 1, a thread has some adjacent channels. A second launch combines what
// segments gave, in a fixed order.
// Thread-safety: reentrant.
#ifndef HOLDFAST_KERNELS_CUDA_PLANE_SUMS_H_
#define HOLDFAST_KERNELS_CUDA_PLANE_SUMS_H_

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "kernels/cuda/group.h"
#include "kernels/cuda/index_division.h"
#include "kernels/cuda/packs.h"

namespace holdfast::cuda {

// A contiguous tensor.
struct PlaneLayout {
  int64_t batch = 1, channels = 1, inner = 1;

  int64_t count() const { return batch * inner; }  // per channel
  int64_t numel() const { return batch * channels * inner; }
};

// What a thread reads before it adds up.
inline constexpr int kChunkRows = 8;
template <int kWidth>
inline constexpr int kChunkPacks = kWidth == 1 ? 8 : 4;

// Adjacent channels of a thread.
template <typename S>
inline constexpr int kColumnWidth = sizeof(S) == 8 ? 2 : 4;

// How sums are spread over threads. A segment is of packs where channels have
// groups of threads, else of rows.
struct PlanePlan {
  int width = 1;  // elements of a pack
  bool columns = false;
  int group = 1;
  int64_t segments = 1, length = 0, count = 0;
};

inline PlanePlan PlanPlanes(const PlaneLayout& l, bool columns, int width) {
  constexpr int64_t kThreads = 1 << 17;  // enough for any GPU
  constexpr int64_t kMostSegments = 1024;
  PlanePlan plan;
  plan.columns = columns;
  plan.width = width;
  plan.count = columns ? l.batch : l.count() / width;
  plan.group = columns ? 1 : GroupSize(plan.count);
  const int64_t least = columns ? 2 * kChunkRows : 8 * plan.group;
  const int64_t items = columns ? l.channels / width : l.channels;
  const int64_t wanted = kThreads / std::max<int64_t>(items * plan.group, 1);
  plan.segments = std::clamp<int64_t>(std::min(wanted, plan.count / least), 1,
                                      kMostSegments);
  plan.length = (plan.count + plan.segments - 1) / plan.segments;
  return plan;
}

// A sum is described by a Body:
//   Stored, Compute, kInputs, `const Stored* inputs[kInputs]`;
//   State: what a thread has of a channel; Start(channel) makes one;
//   Adjust(state, n, i, v): makes what is added of the inputs' elements v, at
//     element i of the plane of sample n;
//   Add(&state, v, valid): the first `valid` of v[kInputs][some];
//   Acc, Result(state), Init(), and Combine of two.

template <typename Body>
struct CombineIn {
  using Acc = typename Body::Acc;
  HOLDFAST_HD Acc operator()(Acc a, Acc b) const { return Body::Combine(a, b); }
};

// A thread's part of a channel's planes.
template <typename Body, int kWidth, typename Index>
struct PlaneWalk {
  using T = typename Body::Compute;
  using State = typename Body::State;
  static constexpr int kPacks = kChunkPacks<kWidth>;

  Body body;
  Index stride;           // from a sample's plane to the next one's
  Division<Index> plane;  // by its packs

  // Packs first, first + step, ... of those that begin at element `base`.
  HOLDFAST_HD void AddChunk(State* state, Index base, Index first, Index step,
                            int packs) const {
    T v[Body::kInputs][kPacks * kWidth];
    HOLDFAST_UNROLL
    for (int p = 0; p < kPacks; ++p) {
      if (p >= packs) break;
      const auto at = plane.Split(first + static_cast<Index>(p) * step);
      const Index i = at.rest * kWidth;
      const Index from = at.quotient * stride + base + i;
      HOLDFAST_UNROLL
      for (int k = 0; k < Body::kInputs; ++k) {
        LoadPack<kWidth>(body.inputs[k] + from, v[k] + p * kWidth);
      }
      HOLDFAST_UNROLL
      for (int e = 0; e < kWidth; ++e) {
        T one[Body::kInputs];
        for (int k = 0; k < Body::kInputs; ++k) one[k] = v[k][p * kWidth + e];
        body.Adjust(*state, at.quotient, i + e, one);
        for (int k = 0; k < Body::kInputs; ++k) v[k][p * kWidth + e] = one[k];
      }
    }
    body.Add(state, v, packs * kWidth);
  }

  // Packs [begin, end), those of `rank` among `size`.
  HOLDFAST_HD typename Body::Acc Run(int64_t channel, Index base, Index begin,
                                     Index end, int rank, int size) const {
    State state = body.Start(channel);
    const Index step = static_cast<Index>(size);
    Index j = begin + static_cast<Index>(rank);
    for (; j + (kPacks - 1) * step < end; j += kPacks * step) {
      AddChunk(&state, base, j, step, kPacks);
    }
    if (j < end) {
      AddChunk(&state, base, j, step,
               static_cast<int>((end - j + step - 1) / step));
    }
    return body.Result(state);
  }
};

// Rows [begin, end) of kWidth adjacent channels, of which `inner` is 1.
template <typename Body, int kWidth>
struct ColumnWalk {
  using T = typename Body::Compute;
  using State = typename Body::State;

  Body body;
  int64_t channels;

  HOLDFAST_HD void AddChunk(State (&states)[kWidth], int64_t channel,
                            int64_t row, int rows) const {
    T v[kWidth][Body::kInputs][kChunkRows];
    HOLDFAST_UNROLL
    for (int r = 0; r < kChunkRows; ++r) {
      if (r >= rows) break;
      T pack[Body::kInputs][kWidth];
      HOLDFAST_UNROLL
      for (int k = 0; k < Body::kInputs; ++k) {
        LoadPack<kWidth>(body.inputs[k] + (row + r) * channels + channel,
                         pack[k]);
      }
      HOLDFAST_UNROLL
      for (int c = 0; c < kWidth; ++c) {
        T one[Body::kInputs];
        for (int k = 0; k < Body::kInputs; ++k) one[k] = pack[k][c];
        body.Adjust(states[c], row + r, 0, one);
        for (int k = 0; k < Body::kInputs; ++k) v[c][k][r] = one[k];
      }
    }
    HOLDFAST_UNROLL
    for (int c = 0; c < kWidth; ++c) body.Add(&states[c], v[c], rows);
  }

  HOLDFAST_HD void Run(int64_t channel, int64_t begin, int64_t end,
                       typename Body::Acc (&accs)[kWidth]) const {
    State states[kWidth];
    HOLDFAST_UNROLL
    for (int c = 0; c < kWidth; ++c) states[c] = body.Start(channel + c);
    int64_t row = begin;
    for (; row + kChunkRows <= end; row += kChunkRows) {
      AddChunk(states, channel, row, kChunkRows);
    }
    if (row < end) {
      AddChunk(states, channel, row, static_cast<int>(end - row));
    }
    HOLDFAST_UNROLL
    for (int c = 0; c < kWidth; ++c) accs[c] = body.Result(states[c]);
  }
};

// What takes the sums of a segment: the caller's write(channel, acc) itself
// where a channel has one, else memory.
template <typename Acc, typename Write>
struct SegmentSums {
  Acc* partial;  // null: one segment per channel
  int64_t channels;
  Write write;

  HOLDFAST_HD void Take(int64_t segment, int64_t channel, Acc acc) const {
    if (partial == nullptr) {
      write(channel, acc);
    } else {
      partial[segment * channels + channel] = acc;
    }
  }
};

template <typename Body, typename Write>
absl::Status CombineSegments(KernelContext& context, int64_t channels,
                             int64_t segments,
                             const typename Body::Acc* partial, Write write) {
  using Acc = typename Body::Acc;
  return ForEachRow(
      context, channels, channels >= 4096 ? 1 : GroupSize(segments),
      [=] HOLDFAST_LAMBDA(const Group& group, int64_t c) {
        Acc acc = Body::Init();
        for (int64_t s = group.rank; s < segments; s += group.size) {
          acc = Body::Combine(acc, partial[s * channels + c]);
        }
        acc = group.Reduce(acc, CombineIn<Body>());
        if (group.first()) write(c, acc);
      });
}

template <typename Body, int kWidth, typename Index, typename Take>
absl::Status SumOverPlanes(KernelContext& context, const PlaneLayout& l,
                           const PlanePlan& plan, const Body& body, Take take) {
  const PlaneWalk<Body, kWidth, Index> walk = {
      body, static_cast<Index>(l.channels * l.inner),
      Division<Index>(l.inner / kWidth)};
  const int64_t channels = l.channels, inner = l.inner;
  const int64_t length = plan.length, count = plan.count;
  return ForEachRow(context, channels * plan.segments, plan.group,
                    [=] HOLDFAST_LAMBDA(const Group& group, int64_t item) {
                      const int64_t segment = item / channels;
                      const int64_t channel = item - segment * channels;
                      const int64_t begin = segment * length;
                      const int64_t end =
                          begin + length < count ? begin + length : count;
                      typename Body::Acc acc = walk.Run(
                          channel, static_cast<Index>(channel * inner),
                          static_cast<Index>(begin), static_cast<Index>(end),
                          group.rank, group.size);
                      acc = group.Reduce(acc, CombineIn<Body>());
                      if (group.first()) take.Take(segment, channel, acc);
                    });
}

template <typename Body, int kWidth, typename Take>
absl::Status SumOverColumns(KernelContext& context, const PlaneLayout& l,
                            const PlanePlan& plan, const Body& body,
                            Take take) {
  const ColumnWalk<Body, kWidth> walk = {body, l.channels};
  const int64_t packs = l.channels / kWidth;
  const int64_t length = plan.length, count = plan.count;
  // Threads beside each other have channels beside each other.
  return ForEach(
      context, packs * plan.segments, [=] HOLDFAST_LAMBDA(int64_t item) {
        const int64_t segment = item / packs;
        const int64_t channel = (item - segment * packs) * kWidth;
        const int64_t begin = segment * length;
        const int64_t end = begin + length < count ? begin + length : count;
        typename Body::Acc accs[kWidth];
        walk.Run(channel, begin, end, accs);
        for (int c = 0; c < kWidth; ++c) {
          take.Take(segment, channel + c, accs[c]);
        }
      });
}

// The widest packs in which all of the body's inputs can be read.
template <typename Body>
bool BodyFits(const Body& body, int width, int64_t row) {
  for (const auto* input : body.inputs) {
    if (!PacksFit<typename Body::Stored>(width, row, {input})) return false;
  }
  return true;
}

// sum(take) by the plan's segments, and their combination if there are several.
template <typename Body, typename Write, typename Sum>
absl::Status SumSegments(KernelContext& context, const PlaneLayout& l,
                         const PlanePlan& plan, Write write, Sum sum) {
  using Acc = typename Body::Acc;
  SegmentSums<Acc, Write> take = {nullptr, l.channels, write};
  if (plan.segments > 1) {
    take.partial = ScratchOf<Acc>(context, l.channels * plan.segments);
    if (take.partial == nullptr) return NoScratch();
  }
  absl::Status s = sum(take);
  if (!s.ok() || plan.segments == 1) return s;
  return CombineSegments<Body>(context, l.channels, plan.segments, take.partial,
                               write);
}

// write(channel, sums) for every channel; of nothing: Body::Init(). `Index` is
// DispatchIndex's for the tensor.
template <typename Index, typename Body, typename Write>
absl::Status SumPlanes(KernelContext& context, const PlaneLayout& l,
                       const Body& body, Write write) {
  constexpr int kFull = kPackWidth<typename Body::Stored>;
  const bool fits = BodyFits(body, kFull, l.inner);
  const PlanePlan plan = PlanPlanes(l, /*columns=*/false, fits ? kFull : 1);
  return SumSegments<Body>(context, l, plan, write,
                           [&](auto take) -> absl::Status {
                             return fits ? SumOverPlanes<Body, kFull, Index>(
                                               context, l, plan, body, take)
                                         : SumOverPlanes<Body, 1, Index>(
                                               context, l, plan, body, take);
                           });
}

// Channels beside each other in memory, enough for neighbouring threads.
inline bool AreColumns(const PlaneLayout& l) {
  return l.inner == 1 && l.channels >= kWarp;
}

// The same. REQUIRES: AreColumns.
template <typename Body, typename Write>
absl::Status SumColumns(KernelContext& context, const PlaneLayout& l,
                        const Body& body, Write write) {
  constexpr int kFull = kColumnWidth<typename Body::Stored>;
  const bool fits = BodyFits(body, kFull, l.channels);
  const PlanePlan plan = PlanPlanes(l, /*columns=*/true, fits ? kFull : 1);
  return SumSegments<Body>(
      context, l, plan, write, [&](auto take) -> absl::Status {
        return fits ? SumOverColumns<Body, kFull>(context, l, plan, body, take)
                    : SumOverColumns<Body, 1>(context, l, plan, body, take);
      });
}

template <typename Body, typename Write>
absl::Status SumChannels(KernelContext& context, const PlaneLayout& l,
                         const Body& body, Write write) {
  if (AreColumns(l)) return SumColumns(context, l, body, write);
  return DispatchIndex(l.numel(), [&](auto tag) -> absl::Status {
    using Index = typename decltype(tag)::type;
    return SumPlanes<Index>(context, l, body, write);
  });
}

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_PLANE_SUMS_H_
