// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// index, index_put: elements addressed by several index tensors together. A
// table of memory offsets is made of them first, where every index is checked.
#include <vector>

#include "kernels/cuda/check.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/elements.h"
#include "kernels/cuda/lanes.h"
#include "kernels/cuda/offsets.h"

namespace holdfast::cuda {
namespace {

// How `dims` of a tensor are indexed by tensors that broadcast to `shape`.
struct Addressing {
  Dims dims, shape;
  int64_t count = 0;  // of index tuples
  bool adjacent = true;

  // Where the index tensors' dimensions stand in the result.
  int first() const { return adjacent ? static_cast<int>(dims[0]) : 0; }
};

absl::StatusOr<Addressing> MakeAddressing(
    const Attrs& attrs, absl::Span<const TensorView> indices) {
  Addressing a;
  a.dims = attrs.Ints("dims");
  for (const TensorView& index : indices) {
    absl::StatusOr<Dims> both = BroadcastShapes(a.shape, index.spec->shape);
    if (!both.ok()) return both.status();
    a.shape = *std::move(both);
  }
  a.count = NumElements(a.shape);
  a.adjacent =
      a.dims.back() - a.dims[0] + 1 == static_cast<int64_t>(a.dims.size());
  return a;
}

// Adds index k's part to the table; the place of a bad index, or -1. Waits.
absl::StatusOr<int64_t> AddToTable(KernelContext& context, const Addressing& a,
                                   const TensorView& view, int64_t size,
                                   int64_t stride, int64_t* table) {
  const Dims strides = BroadcastStrides(*view.spec, a.shape);
  const Offsets<1> offsets = MakeOffsets<1>(a.shape, {strides});
  const Operand index(view);
  return FirstFaultOfSteps(context, a.count, [=] HOLDFAST_LAMBDA(int64_t i) {
    int64_t at;
    offsets.At(i, &at);
    int64_t place = index.Load<int64_t>(at);
    place += place < 0 ? size : 0;
    if (!InRange(place, size)) return true;
    table[i] += place * stride;
    return false;
  });
}

absl::Status TellBad(KernelContext& context, const Attrs& attrs,
                     const Addressing& a, const TensorView& view, int64_t fault,
                     int dim, int64_t size) {
  const Dims strides = BroadcastStrides(*view.spec, a.shape);
  const Offsets<1> offsets = MakeOffsets<1>(a.shape, {strides});
  int64_t at;
  offsets.At(fault, &at);
  const auto tell = [&](const auto& read) -> absl::Status {
    if (!read.ok()) return read.status();
    return BadIndex(attrs, *read, dim, size);
  };
  return view.spec->dtype == DType::kInt64
             ? tell(ReadElement(context, view.as<int64_t>() + at))
             : tell(ReadElement(context, view.as<int32_t>() + at));
}

// Memory offsets, one per index tuple.
absl::StatusOr<const int64_t*> OffsetTable(
    KernelContext& context, const Attrs& attrs, const TensorSpec& data,
    const Addressing& a, absl::Span<const TensorView> indices) {
  int64_t* const table = ScratchOf<int64_t>(context, a.count);
  if (table == nullptr) return NoScratch();
  absl::Status s = Cuda(context).FillBytes(table, 0, a.count * sizeof(int64_t));
  if (!s.ok()) return s;
  for (size_t k = 0; k < indices.size(); ++k) {
    const int dim = static_cast<int>(a.dims[k]);
    absl::StatusOr<int64_t> fault = AddToTable(
        context, a, indices[k], data.shape[dim], data.strides[dim], table);
    if (!fault.ok()) return fault.status();
    if (*fault >= 0) {
      return TellBad(context, attrs, a, indices[k], *fault, dim,
                     data.shape[dim]);
    }
  }
  return table;
}

// The walk over the result: through data but for the indexed dimensions, the
// table, and another tensor of the result's shape.
Offsets<3> ResultWalk(const TensorSpec& data, const Addressing& a,
                      const TensorSpec& other) {
  Dims shape, in_data, in_table;
  const Dims table = ContiguousStrides(a.shape);
  const auto add_table = [&] {
    for (size_t d = 0; d < a.shape.size(); ++d) {
      shape.push_back(a.shape[d]);
      in_data.push_back(0);
      in_table.push_back(table[d]);
    }
  };
  size_t next = 0;
  for (int d = 0; d <= data.rank(); ++d) {
    if (d == a.first()) add_table();
    if (d == data.rank()) break;
    if (next < a.dims.size() && a.dims[next] == d) {
      ++next;
      continue;
    }
    shape.push_back(data.shape[d]);
    in_data.push_back(data.strides[d]);
    in_table.push_back(0);
  }
  const Dims in_other = BroadcastStrides(other, shape);
  return MakeOffsets<3>(shape, {in_data, in_table, in_other});
}

// Of that walk: indices may meet along the table.
Lanes TableLanes(const TensorSpec& data, const Addressing& a) {
  Lanes lanes;
  lanes.steps = a.count;
  size_t next = 0;
  for (int d = 0; d < data.rank(); ++d) {
    if (next < a.dims.size() && a.dims[next] == d) {
      ++next;
      continue;
    }
    (d < a.first() ? lanes.outer : lanes.inner) *= data.shape[d];
  }
  return lanes;
}

template <typename Bits>
absl::Status TakeAll(KernelContext& context, const Offsets<3>& walk,
                     const Bits* from, const int64_t* table, Bits* to) {
  return ForEach(context, walk.numel, [=] HOLDFAST_LAMBDA(int64_t i) {
    int64_t at[3];
    walk.At(i, at);
    to[at[2]] = from[at[0] + table[at[1]]];
  });
}

template <typename T, bool kAdd>
absl::Status PutAll(KernelContext& context, const Lanes& lanes,
                    const Offsets<3>& walk, const T* values,
                    const int64_t* table, T* to) {
  return ForEachInLanes(context, lanes, [=] HOLDFAST_LAMBDA(int64_t i) {
    int64_t at[3];
    walk.At(i, at);
    T* const place = to + at[0] + table[at[1]];
    const T value = values[at[2]];
    if constexpr (kAdd) {
      AtomicAdd(place, value);
    } else {
      *place = value;
    }
  });
}

}  // namespace

HOLDFAST_CUDA_KERNEL(index) {
  const TensorSpec& data = *inputs[0].spec;
  absl::StatusOr<Addressing> a = MakeAddressing(attrs, inputs.subspan(1));
  if (!a.ok()) return a.status();
  if (outputs[0].spec->numel() == 0) return absl::OkStatus();
  absl::StatusOr<const int64_t*> table =
      OffsetTable(context, attrs, data, *a, inputs.subspan(1));
  if (!table.ok()) return table.status();
  const Offsets<3> walk = ResultWalk(data, *a, *outputs[0].spec);
  return DispatchBits(data.dtype, [&](auto tag) -> absl::Status {
    using Bits = typename decltype(tag)::type;
    return TakeAll<Bits>(context, walk, inputs[0].as<Bits>(), *table,
                         outputs[0].as<Bits>());
  });
}

HOLDFAST_CUDA_KERNEL(index_put) {
  const TensorView& output = outputs[0];
  const TensorSpec& data = *output.spec;
  absl::StatusOr<Addressing> a = MakeAddressing(attrs, inputs.subspan(2));
  if (!a.ok()) return a.status();
  const bool nothing = a->count == 0 || data.numel() == 0;
  const int64_t* table = nullptr;
  if (!nothing) {
    absl::StatusOr<const int64_t*> filled =
        OffsetTable(context, attrs, data, *a, inputs.subspan(2));
    if (!filled.ok()) return filled.status();
    table = *filled;
  }
  if (output.data != inputs[0].data) {
    absl::Status s = CudaCopy(context, inputs[0], output);
    if (!s.ok()) return s;
  }
  if (nothing) return absl::OkStatus();
  const Offsets<3> walk = ResultWalk(data, *a, *inputs[1].spec);
  const Lanes lanes = TableLanes(data, *a);
  if (attrs.Bool("accumulate")) {
    return DispatchWithComplex(data.dtype, [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      return PutAll<T, true>(context, lanes, walk, inputs[1].as<T>(), table,
                             output.as<T>());
    });
  }
  return DispatchBits(data.dtype, [&](auto tag) -> absl::Status {
    using Bits = typename decltype(tag)::type;
    return PutAll<Bits, false>(context, lanes, walk, inputs[1].as<Bits>(),
                               table, output.as<Bits>());
  });
}

}  // namespace holdfast::cuda
