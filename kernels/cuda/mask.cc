// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// nonzero, index_mask, mask_put: a running count of a mask's true elements says
// which place of the result each has.
#include "absl/strings/str_cat.h"
#include "kernels/cuda/check.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/elements.h"
#include "kernels/cuda/offsets.h"
#include "kernels/cuda/sort.h"
#include "ops/op_schema.h"

namespace holdfast::cuda {
namespace {

// ranks[i]: true elements before i, in row-major order; ranks[n]: all of them.
struct MaskRanks {
  const int64_t* ranks = nullptr;
  int64_t count = 0;  // on the host
};

// Waits.
absl::Status RankMask(KernelContext& context, const TensorView& view,
                      MaskRanks* result) {
  const int64_t n = view.spec->numel();
  int64_t* const flags = ScratchOf<int64_t>(context, n + 1);
  int64_t* const ranks = ScratchOf<int64_t>(context, n + 1);
  if (flags == nullptr || ranks == nullptr) return NoScratch();
  const TensorSpec* const specs[1] = {view.spec};
  const Offsets<1> offsets = BroadcastOffsets<1>(specs);
  const Operand mask(view);
  absl::Status s = ForEach(context, n + 1, [=] HOLDFAST_LAMBDA(int64_t i) {
    int64_t at = 0;
    if (i < n) offsets.At(i, &at);
    flags[i] = i < n && mask.Load<bool>(at) ? 1 : 0;
  });
  if (s.ok()) s = ExclusiveSum(context, flags, ranks, n + 1);
  if (!s.ok()) return s;
  absl::StatusOr<int64_t> count = ReadElement(context, ranks + n);
  if (!count.ok()) return count.status();
  *result = {ranks, *count};
  return absl::OkStatus();
}

// positions[r]: where the r-th true element is. Fewer than `count` are written
// if the mask has changed since it was counted: the rest stay 0.
absl::StatusOr<const int64_t*> Positions(KernelContext& context,
                                         const MaskRanks& mask, int64_t n) {
  int64_t* const positions = ScratchOf<int64_t>(context, mask.count);
  if (positions == nullptr) return NoScratch();
  const int64_t* const ranks = mask.ranks;
  absl::Status s = ForEach(context, n, [=] HOLDFAST_LAMBDA(int64_t i) {
    if (ranks[i + 1] > ranks[i]) positions[ranks[i]] = i;
  });
  if (!s.ok()) return s;
  return positions;
}

// What the kernel goes on with: the ranks, which are scratch memory as long.
// The kernel may run on another thread, later: nothing of the host's is
// carried.
void Carry(KernelContext& context, const MaskRanks& mask) {
  context.carried = const_cast<int64_t*>(mask.ranks);
}
MaskRanks Carried(const KernelContext& context, int64_t count) {
  return {static_cast<const int64_t*>(context.carried), count};
}

template <typename Bits>
absl::Status TakeMasked(KernelContext& context, const Offsets<3>& walk,
                        const Offsets<1>& masked, const Bits* from,
                        const int64_t* positions, Bits* to) {
  return ForEach(context, walk.numel, [=] HOLDFAST_LAMBDA(int64_t i) {
    int64_t at[3], inside;
    walk.At(i, at);
    masked.At(positions[at[1]], &inside);
    to[at[2]] = from[at[0] + inside];
  });
}

template <typename Bits>
absl::Status PutMasked(KernelContext& context, const Offsets<3>& walk,
                       const Offsets<1>& masked, const Bits* from,
                       const int64_t* positions, Bits* to) {
  return ForEach(context, walk.numel, [=] HOLDFAST_LAMBDA(int64_t i) {
    int64_t at[3], inside;
    walk.At(i, at);
    masked.At(positions[at[1]], &inside);
    to[at[0] + inside] = from[at[2]];
  });
}

// Walks [before..., count, after...]: data's other dimensions, the masked ones
// as one that counts true elements, and another tensor (`strides`).
struct MaskWalk {
  Offsets<3> walk;
  Offsets<1> masked;  // of data, by position in the mask
};

MaskWalk MakeMaskWalk(const TensorSpec& data, int dim, int mask_rank,
                      int64_t count, absl::Span<const int64_t> strides) {
  Dims shape, in_data, in_table, masked_shape, masked_strides;
  for (int d = 0; d < data.rank(); ++d) {
    if (d >= dim && d < dim + mask_rank) {
      masked_shape.push_back(data.shape[d]);
      masked_strides.push_back(data.strides[d]);
      if (d > dim) continue;
    }
    const bool middle = d == dim;
    shape.push_back(middle ? count : data.shape[d]);
    in_data.push_back(middle ? 0 : data.strides[d]);
    in_table.push_back(middle ? 1 : 0);
  }
  return {MakeOffsets<3>(shape, {in_data, in_table, strides}),
          MakeOffsets<1>(masked_shape, {masked_strides})};
}

absl::StatusOr<int> MaskedDim(const Attrs& attrs, const TensorSpec& data) {
  return NormalizeDim(attrs.Int("dim"), data.rank());
}

// Whether the source has an entry per true element.
absl::Status CheckSource(const Attrs& attrs, const TensorSpec& data,
                         const TensorSpec& source, int dim, int mask_rank,
                         int64_t count) {
  const int lead = data.rank() - mask_rank + 1 - source.rank();
  if (dim < lead) return absl::OkStatus();
  const int64_t entries = source.shape[dim - lead];
  if (attrs.Bool("partial")) {
    if (entries >= count) return absl::OkStatus();
    return absl::InvalidArgumentError(absl::StrCat(
        "[masked_scatter] Number of elements of source < number of ones in "
        "mask. Got ",
        entries, " elements for ", count, " places."));
  }
  if (entries == 1 || entries == count) return absl::OkStatus();
  Dims result(data.shape.begin(), data.shape.begin() + dim);
  result.push_back(count);
  result.insert(result.end(), data.shape.begin() + dim + mask_rank,
                data.shape.end());
  return absl::InvalidArgumentError(
      absl::StrCat("[index_put] shape mismatch: value tensor of shape ",
                   ShapeString(source.shape),
                   " cannot be broadcast to indexing result of shape ",
                   ShapeString(result), "."));
}

}  // namespace

HOLDFAST_CUDA_SIZES(nonzero) {
  MaskRanks ranks;
  absl::Status s = RankMask(context, inputs[0], &ranks);
  if (!s.ok()) return s;
  sizes[0] = ranks.count;
  Carry(context, ranks);
  return absl::OkStatus();
}

HOLDFAST_CUDA_KERNEL(nonzero) {
  const TensorSpec& spec = *inputs[0].spec;
  const int rank = spec.rank();
  const MaskRanks mask = Carried(context, outputs[0].spec->shape[0]);
  if (rank == 0 || mask.count == 0) return absl::OkStatus();
  const int64_t* const ranks = mask.ranks;
  int64_t* const out = outputs[0].as<int64_t>();
  const Dims none(rank, 0);
  struct {
    int64_t sizes[kMaxRank];
  } shape;
  for (int d = 0; d < rank; ++d) shape.sizes[d] = spec.shape[d];
  return ForEach(context, spec.numel(), [=] HOLDFAST_LAMBDA(int64_t i) {
    if (ranks[i + 1] == ranks[i]) return;
    int64_t* const to = out + ranks[i] * rank;
    int64_t rest = i;
    for (int d = rank - 1; d >= 0; --d) {
      to[d] = rest % shape.sizes[d];
      rest /= shape.sizes[d];
    }
  });
}

HOLDFAST_CUDA_SIZES(index_mask) {
  MaskRanks ranks;
  absl::Status s = RankMask(context, inputs[1], &ranks);
  if (!s.ok()) return s;
  sizes[0] = ranks.count;
  Carry(context, ranks);
  return absl::OkStatus();
}

HOLDFAST_CUDA_KERNEL(index_mask) {
  const TensorSpec& data = *inputs[0].spec;
  absl::StatusOr<int> dim = MaskedDim(attrs, data);
  if (!dim.ok()) return dim.status();
  if (outputs[0].spec->numel() == 0) return absl::OkStatus();
  const MaskRanks mask = Carried(context, outputs[0].spec->shape[*dim]);
  absl::StatusOr<const int64_t*> positions =
      Positions(context, mask, inputs[1].spec->numel());
  if (!positions.ok()) return positions.status();
  const MaskWalk walk = MakeMaskWalk(data, *dim, inputs[1].spec->rank(),
                                     mask.count, outputs[0].spec->strides);
  return DispatchBits(data.dtype, [&](auto tag) -> absl::Status {
    using Bits = typename decltype(tag)::type;
    return TakeMasked<Bits>(context, walk.walk, walk.masked,
                            inputs[0].as<Bits>(), *positions,
                            outputs[0].as<Bits>());
  });
}

HOLDFAST_CUDA_KERNEL(mask_put) {
  const TensorView& output = outputs[0];
  const TensorSpec& data = *output.spec;
  absl::StatusOr<int> dim = MaskedDim(attrs, data);
  if (!dim.ok()) return dim.status();
  MaskRanks mask;
  absl::Status s = RankMask(context, inputs[1], &mask);
  if (!s.ok()) return s;
  const int mask_rank = inputs[1].spec->rank();
  const TensorSpec& source = *inputs[2].spec;
  s = CheckSource(attrs, data, source, *dim, mask_rank, mask.count);
  if (!s.ok()) return s;
  if (output.data != inputs[0].data) {
    if (s = CudaCopy(context, inputs[0], output); !s.ok()) return s;
  }
  if (mask.count == 0 || data.numel() == 0) return absl::OkStatus();
  absl::StatusOr<const int64_t*> positions =
      Positions(context, mask, inputs[1].spec->numel());
  if (!positions.ok()) return positions.status();
  const int rank = data.rank() - mask_rank + 1;
  Dims strides(rank, 0);
  for (int d = 0; d < source.rank(); ++d) {
    if (source.shape[d] == 1) continue;
    strides[rank - source.rank() + d] = source.strides[d];
  }
  const MaskWalk walk =
      MakeMaskWalk(data, *dim, mask_rank, mask.count, strides);
  return DispatchBits(data.dtype, [&](auto tag) -> absl::Status {
    using Bits = typename decltype(tag)::type;
    return PutMasked<Bits>(context, walk.walk, walk.masked,
                           inputs[2].as<Bits>(), *positions, output.as<Bits>());
  });
}

}  // namespace holdfast::cuda
