// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// nonzero, index_mask, mask_put: what boolean masks choose. The first two have
// sizes that depend on data: the scan of the mask that tells them is carried
// over to the kernel.
#include <limits>
#include <new>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/index_rows.h"
#include "kernels/cpu/item_dispatch.h"
#include "kernels/cpu/mask_scan.h"
#include "ops/op_schema.h"

namespace holdfast::cpu {
namespace {

absl::Status NoScratch() {
  return absl::ResourceExhaustedError("no scratch memory");
}

// Elements as nonzero sees them, where C++ has no type for them.
struct HalfBits {
  HalfBits(int zero = 0) : bits(static_cast<uint16_t>(zero)) {}  // NOLINT
  // The sign does not count.
  bool operator!=(HalfBits) const { return (bits & 0x7fffu) != 0; }
  uint16_t bits;
};
template <typename T>
struct Pair {
  Pair(int zero = 0) : real(T(zero)), imag(T(zero)) {}  // NOLINT
  bool operator!=(Pair) const { return real != 0 || imag != 0; }
  T real, imag;
};

// DispatchDType, for every type there is.
template <typename F>
absl::Status DispatchTruth(DType dtype, F&& fn) {
  switch (dtype) {
    case DType::kInt8:
      return fn(TypeTag<uint8_t>{});
    case DType::kInt16:
      return fn(TypeTag<uint16_t>{});
    case DType::kFloat16:
    case DType::kBFloat16:
      return fn(TypeTag<HalfBits>{});
    case DType::kComplex64:
      return fn(TypeTag<Pair<float>>{});
    case DType::kComplex128:
      return fn(TypeTag<Pair<double>>{});
    default:
      return DispatchDType(dtype, fn);
  }
}

// Scans `view` and leaves the scan for the kernel.
absl::Status CarryScan(KernelContext& context, const TensorView& view,
                       int64_t* count) {
  void* place = context.Scratch(sizeof(MaskScan));
  if (place == nullptr) return NoScratch();
  auto* scan = new (place) MaskScan;
  absl::Status s = DispatchTruth(view.spec->dtype, [&](auto tag) {
    return CountMask<typename decltype(tag)::type>(context, view, scan);
  });
  if (!s.ok()) return s;
  context.carried = scan;
  *count = scan->count();
  return absl::OkStatus();
}

const MaskScan& CarriedScan(const KernelContext& context) {
  return *static_cast<const MaskScan*>(context.carried);
}

// Memory offsets of row-major positions in a few dimensions of a tensor.
class PositionOffsets {
 public:
  PositionOffsets(const TensorSpec& spec, int first, int count) {
    for (int d = first; d < first + count; ++d) {
      if (!sizes_.empty() &&
          strides_.back() == spec.strides[d] * spec.shape[d]) {
        sizes_.back() *= spec.shape[d];
        strides_.back() = spec.strides[d];
      } else {
        sizes_.push_back(spec.shape[d]);
        strides_.push_back(spec.strides[d]);
      }
    }
  }

  // In place.
  void Apply(int64_t* positions, int64_t n) const {
    if (sizes_.size() == 1) {
      const int64_t stride = strides_[0];
      if (stride == 1) return;
      for (int64_t j = 0; j < n; ++j) positions[j] *= stride;
      return;
    }
    for (int64_t j = 0; j < n; ++j) {
      int64_t rest = positions[j], offset = 0;
      for (int d = static_cast<int>(sizes_.size()) - 1; d > 0; --d) {
        offset += rest % sizes_[d] * strides_[d];
        rest /= sizes_[d];
      }
      positions[j] = sizes_.empty() ? 0 : offset + rest * strides_[0];
    }
  }

 private:
  Dims sizes_, strides_;
};

// A masked tensor's dimensions [0, dim), [dim, dim + k), [dim + k, rank): the
// mask covers those in the middle, which become one.
struct MaskedDims {
  MaskedDims(const TensorSpec& data, const TensorSpec& mask, int first)
      : dim(first), mask_rank(mask.rank()) {
    elements = NumElements(data.shape) / std::max<int64_t>(mask.numel(), 1);
  }
  int dim, mask_rank;
  int64_t elements;  // per element of the mask
};

// Where the scan's elements lie in `data`, in scratch memory; null: there is
// none, or the kernel is to stop.
int64_t* OffsetTable(KernelContext& context, const MaskScan& scan,
                     const TensorSpec& data, const MaskedDims& dims) {
  auto* table =
      static_cast<int64_t*>(context.Scratch(scan.count() * sizeof(int64_t)));
  if (table == nullptr) return nullptr;
  const PositionOffsets offsets(data, dims.dim, dims.mask_rank);
  ForEachTrue<bool>(context, scan, [&](int64_t* at, int64_t n, int64_t rank) {
    offsets.Apply(at, n);
    std::copy(at, at + n, table + rank);
  });
  return context.Stopped() ? nullptr : table;
}

// Loops over [before..., count, after...], where the middle goes through an
// offset table.
IndexLoops TableLoops(const TensorSpec& data, const MaskedDims& dims,
                      int64_t count, absl::Span<const int64_t> other) {
  TensorSpec table_data;
  Dims shape, index;
  for (int d = 0; d < data.rank(); ++d) {
    if (d > dims.dim && d < dims.dim + dims.mask_rank) continue;
    const bool middle = d == dims.dim;
    shape.push_back(middle ? count : data.shape[d]);
    index.push_back(middle ? 1 : 0);
    table_data.strides.push_back(middle ? 1 : data.strides[d]);
  }
  table_data.shape = shape;
  // Offsets have been made of positions: nothing to check.
  table_data.shape[dims.dim] = std::numeric_limits<int64_t>::max();
  return MakeIndexLoops(shape, dims.dim, table_data, index, other);
}

absl::StatusOr<int> MaskedDim(const Attrs& attrs, const TensorSpec& data) {
  return NormalizeDim(attrs.Int("dim"), data.rank());
}

// mask_put's source as a tensor of shape [before..., count, after...]: its
// strides, and whether it has an entry per true element.
absl::Status CheckPutSource(const Attrs& attrs, const TensorSpec& data,
                            const TensorSpec& source, const MaskedDims& dims,
                            int64_t count, Dims* strides) {
  const int rank = data.rank() - dims.mask_rank + 1;
  const int lead = rank - source.rank();
  strides->assign(rank, 0);
  for (int d = lead; d < rank; ++d) {
    if (source.shape[d - lead] != 1) {
      (*strides)[d] = source.strides[d - lead];
    }
  }
  if (dims.dim < lead) return absl::OkStatus();
  const int64_t entries = source.shape[dims.dim - lead];
  if (attrs.Bool("partial")) {
    if (entries < count) {
      return absl::InvalidArgumentError(absl::StrCat(
          "[masked_scatter] Number of elements of source < number of ones in "
          "mask. Got ",
          entries, " elements for ", count, " places."));
    }
  } else if (entries != 1 && entries != count) {
    Dims result(data.shape.begin(), data.shape.begin() + dims.dim);
    result.push_back(count);
    result.insert(result.end(), data.shape.begin() + dims.dim + dims.mask_rank,
                  data.shape.end());
    return absl::InvalidArgumentError(
        absl::StrCat("[index_put] shape mismatch: value tensor of shape ",
                     ShapeString(source.shape),
                     " cannot be broadcast to indexing result of shape ",
                     ShapeString(result), "."));
  }
  return absl::OkStatus();
}

}  // namespace

HOLDFAST_CPU_SIZES(nonzero) { return CarryScan(context, inputs[0], &sizes[0]); }

HOLDFAST_CPU_KERNEL(nonzero) {
  const TensorSpec& spec = *inputs[0].spec;
  const int rank = spec.rank();
  const MaskScan& scan = CarriedScan(context);
  if (rank == 0) return absl::OkStatus();  // [n, 0]
  auto* out = outputs[0].as<int64_t>();
  const int64_t row = spec.shape[rank - 1];
  const auto write = [&](const int64_t* at, int64_t n, int64_t first) {
    if (rank == 1) {
      std::copy(at, at + n, out + first);
      return;
    }
    // The coordinates of the row that `begin` is the first element of.
    Dims index(rank, 0);
    int64_t begin = at[0] - at[0] % row;
    int64_t rest = begin / row;
    for (int d = rank - 2; d >= 0; --d) {
      index[d] = rest % spec.shape[d];
      rest /= spec.shape[d];
    }
    int64_t* to = out + first * rank;
    for (int64_t j = 0; j < n; ++j, to += rank) {
      while (at[j] >= begin + row) {
        begin += row;
        for (int d = rank - 2; ++index[d] == spec.shape[d] && d > 0; --d) {
          index[d] = 0;
        }
      }
      for (int d = 0; d < rank - 1; ++d) to[d] = index[d];
      to[rank - 1] = at[j] - begin;
    }
  };
  return DispatchTruth(spec.dtype, [&](auto tag) -> absl::Status {
    ForEachTrue<typename decltype(tag)::type>(context, scan, write);
    return absl::OkStatus();
  });
}

HOLDFAST_CPU_SIZES(index_mask) {
  return CarryScan(context, inputs[1], &sizes[0]);
}

HOLDFAST_CPU_KERNEL(index_mask) {
  const TensorSpec& data = *inputs[0].spec;
  absl::StatusOr<int> dim = MaskedDim(attrs, data);
  if (!dim.ok()) return dim.status();
  if (outputs[0].spec->numel() == 0) return absl::OkStatus();
  const MaskScan& scan = CarriedScan(context);
  const MaskedDims dims(data, *inputs[1].spec, *dim);
  return DispatchItem(data.dtype, [&](auto tag) -> absl::Status {
    using U = typename decltype(tag)::type;
    const U* from = inputs[0].as<U>();
    U* to = outputs[0].as<U>();
    if (dims.elements == 1) {
      const PositionOffsets offsets(data, dims.dim, dims.mask_rank);
      ForEachTrue<bool>(context, scan, [&](int64_t* at, int64_t n, int64_t r) {
        offsets.Apply(at, n);
        for (int64_t j = 0; j < n; ++j) to[r + j] = from[at[j]];
      });
      return absl::OkStatus();
    }
    const int64_t* table = OffsetTable(context, scan, data, dims);
    if (table == nullptr) return NoScratch();
    const IndexLoops loops =
        TableLoops(data, dims, scan.count(), outputs[0].spec->strides);
    return Gather<U, int64_t>(context, attrs, dims.dim, loops, from, table, to);
  });
}

HOLDFAST_CPU_KERNEL(mask_put) {
  const TensorView& output = outputs[0];
  const TensorSpec& data = *output.spec;
  absl::StatusOr<int> dim = MaskedDim(attrs, data);
  if (!dim.ok()) return dim.status();
  MaskScan scan;
  absl::Status s = CountMask<bool>(context, inputs[1], &scan);
  if (!s.ok()) return s;
  const int64_t count = scan.count();
  const MaskedDims dims(data, *inputs[1].spec, *dim);
  Dims from_strides;
  s = CheckPutSource(attrs, data, *inputs[2].spec, dims, count, &from_strides);
  if (!s.ok()) return s;
  if (output.data != inputs[0].data) CopyStrided(context, inputs[0], output);
  if (count == 0 || data.numel() == 0) return absl::OkStatus();
  return DispatchItem(data.dtype, [&](auto tag) -> absl::Status {
    using U = typename decltype(tag)::type;
    const U* from = inputs[2].as<U>();
    U* to = output.as<U>();
    if (dims.elements == 1) {
      const PositionOffsets offsets(data, dims.dim, dims.mask_rank);
      const int64_t step = from_strides[dims.dim];
      ForEachTrue<bool>(context, scan, [&](int64_t* at, int64_t n, int64_t r) {
        offsets.Apply(at, n);
        for (int64_t j = 0; j < n; ++j) to[at[j]] = from[(r + j) * step];
      });
      return absl::OkStatus();
    }
    const int64_t* table = OffsetTable(context, scan, data, dims);
    if (table == nullptr) return NoScratch();
    const IndexLoops loops = TableLoops(data, dims, count, from_strides);
    return Scatter<Assign, U, int64_t>(context, attrs, dims.dim, loops, from,
                                       table, to, /*ordered=*/false);
  });
}

}  // namespace holdfast::cpu
