// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// index, index_put: elements addressed by several index tensors together. A
// table of memory offsets is made of them first, where every index is checked;
// what follows is gather and scatter along one dimension that goes through it.
#include <algorithm>
#include <array>
#include <complex>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/index_rows.h"
#include "kernels/cpu/item_dispatch.h"
#include "kernels/cpu/strided_cursor.h"

namespace holdfast::cpu {
namespace {

// How a tensor is indexed: `dims` of `data` by `indices`, which broadcast to
// `shape`, `count` elements.
struct Addressing {
  const TensorSpec* data = nullptr;
  Dims dims;
  absl::Span<const TensorView> indices;
  std::vector<Dims> strides;  // of the indices, for `shape`
  Dims shape;
  int64_t count = 0;
  int64_t rest = 1;  // elements of data per index tuple
  bool adjacent = true;
};

absl::StatusOr<Addressing> MakeAddressing(
    const Attrs& attrs, const TensorSpec& data,
    absl::Span<const TensorView> indices) {
  Addressing a;
  a.data = &data;
  a.dims = attrs.Ints("dims");
  a.indices = indices;
  for (const TensorView& index : indices) {
    absl::StatusOr<Dims> both = BroadcastShapes(a.shape, index.spec->shape);
    if (!both.ok()) return both.status();
    a.shape = *std::move(both);
  }
  a.count = NumElements(a.shape);
  for (const TensorView& index : indices) {
    const TensorSpec& spec = *index.spec;
    const int lead = static_cast<int>(a.shape.size()) - spec.rank();
    Dims strides(a.shape.size(), 0);
    for (int d = 0; d < spec.rank(); ++d) {
      if (spec.shape[d] != 1) strides[lead + d] = spec.strides[d];
    }
    a.strides.push_back(std::move(strides));
  }
  size_t next = 0;
  for (int d = 0; d < data.rank(); ++d) {
    if (next < a.dims.size() && a.dims[next] == d) {
      ++next;
    } else {
      a.rest *= data.shape[d];
    }
  }
  a.adjacent =
      a.dims.back() - a.dims[0] + 1 == static_cast<int64_t>(a.dims.size());
  return a;
}

// Bad indices per index tensor.
using BadIndices = std::array<FirstBadIndex, kMaxRank>;

absl::Status ToStatus(const Attrs& attrs, const Addressing& a,
                      const BadIndices& bad) {
  for (size_t k = 0; k < a.dims.size(); ++k) {
    if (!bad[k].seen()) continue;
    const int dim = static_cast<int>(a.dims[k]);
    return bad[k].ToStatus(attrs, dim, a.data->shape[dim]);
  }
  return absl::OkStatus();
}

constexpr int64_t kBlockOffsets = 1024;

// offsets[j] += at[j] * stride, negative indices counted from the end; whether
// all are in range.
template <typename I>
struct AddOffsetsBody {
  static HOLDFAST_INLINE bool Run(const I* at, int64_t n, int64_t size,
                                  int64_t stride, int64_t* offsets) {
    int64_t outside = 0;
    for (int64_t j = 0; j < n; ++j) {
      int64_t i = at[j];
      i += size & (i >> 63);
      outside |= i | (size - 1 - i);  // negative if either is
      // Unsigned: what is out of range may overflow.
      offsets[j] += static_cast<int64_t>(static_cast<uint64_t>(i) *
                                         static_cast<uint64_t>(stride));
    }
    return outside >= 0;
  }
};

// Adds what index k contributes to the offsets of elements [begin, begin + n);
// false at an index that is out of range. REQUIRES: n <= kBlockOffsets.
template <typename I>
bool AddOffsets(const Addressing& a, int k, int64_t begin, int64_t n,
                int64_t* offsets, FirstBadIndex* bad) {
  const TensorView& view = a.indices[k];
  const int64_t size = a.data->shape[a.dims[k]];
  const int64_t stride = a.data->strides[a.dims[k]];
  const I* index = view.as<I>();
  // A copy is checked and used, which no client can change in between.
  I at[kBlockOffsets];
  if (view.spec->contiguous() && view.spec->numel() == a.count) {
    std::memcpy(at, index + begin, n * sizeof(I));
  } else {
    StridedCursor<1> from(a.shape, {a.strides[k].data()}, begin);
    for (int64_t j = 0; j < n; ++j, from.Next()) at[j] = index[from[0]];
  }
  if (Vectorised<AddOffsetsBody<I>>(static_cast<const I*>(at), n, size, stride,
                                    offsets)) {
    return true;
  }
  for (int64_t j = 0; j < n; ++j) {
    if (at[j] < -size || at[j] >= size) {
      bad->Record(at[j]);
      break;
    }
  }
  return false;
}

// Offsets of elements [begin, begin + n) in data's memory.
bool FillOffsets(const Addressing& a, int64_t begin, int64_t n,
                 int64_t* offsets, BadIndices* bad) {
  std::fill(offsets, offsets + n, 0);
  bool good = true;
  for (size_t k = 0; k < a.indices.size() && good; ++k) {
    const int i = static_cast<int>(k);
    good = a.indices[k].spec->dtype == DType::kInt64
               ? AddOffsets<int64_t>(a, i, begin, n, offsets, &(*bad)[k])
               : AddOffsets<int32_t>(a, i, begin, n, offsets, &(*bad)[k]);
  }
  return good;
}

// Calls use(begin, n, offsets) for blocks of elements, in parallel.
template <typename F>
absl::Status ForEachOffsetBlock(KernelContext& context, const Attrs& attrs,
                                const Addressing& a, F&& use) {
  BadIndices bad;
  ParallelFor(context, a.count, 8192, [&](int64_t b, int64_t e) {
    int64_t offsets[kBlockOffsets];
    for (int64_t at = b; at < e; at += kBlockOffsets) {
      const int64_t n = std::min(kBlockOffsets, e - at);
      if (!FillOffsets(a, at, n, offsets, &bad)) return;
      use(at, n, offsets);
    }
  });
  return ToStatus(attrs, a, bad);
}

absl::StatusOr<const int64_t*> OffsetTable(KernelContext& context,
                                           const Attrs& attrs,
                                           const Addressing& a) {
  auto* table =
      static_cast<int64_t*>(context.Scratch(a.count * sizeof(int64_t)));
  if (table == nullptr) {
    return absl::ResourceExhaustedError("no scratch memory");
  }
  absl::Status s = ForEachOffsetBlock(
      context, attrs, a, [&](int64_t at, int64_t n, const int64_t* offsets) {
        std::copy(offsets, offsets + n, table + at);
      });
  if (!s.ok()) return s;
  if (context.Stopped()) return absl::AbortedError("stopped");
  return table;
}

// Loops over the result: data's other dimensions, and one of `count` that goes
// through the table. `other`: strides for the result's shape; `step`: what
// walks through its dimensions that come of the index tensors.
IndexLoops TableLoops(const Addressing& a, absl::Span<const int64_t> other,
                      int64_t step) {
  TensorSpec data;
  Dims shape, index, steps;
  int place = 0;
  const int first = a.adjacent ? static_cast<int>(a.dims[0]) : 0;
  const auto add_table = [&] {
    place = static_cast<int>(shape.size());
    shape.push_back(a.count);
    data.strides.push_back(1);
    index.push_back(1);
    steps.push_back(step);
  };
  size_t next = 0;
  int at = 0;  // in the result's dimensions
  for (int d = 0; d <= a.data->rank(); ++d) {
    if (d == first) {
      add_table();
      at += static_cast<int>(a.shape.size());
    }
    if (d == a.data->rank()) break;
    if (next < a.dims.size() && a.dims[next] == d) {
      ++next;
      continue;
    }
    shape.push_back(a.data->shape[d]);
    data.strides.push_back(a.data->strides[d]);
    index.push_back(0);
    steps.push_back(other[at++]);
  }
  data.shape = shape;
  // The table has been checked.
  data.shape[place] = std::numeric_limits<int64_t>::max();
  return MakeIndexLoops(shape, place, data, index, steps);
}

// The one step that walks through dimensions [first, first + rank) in row-major
// order, or false.
bool SingleStep(absl::Span<const int64_t> shape,
                absl::Span<const int64_t> strides, int first, int rank,
                int64_t* step) {
  *step = 0;
  int64_t expected = -1;
  for (int d = first + rank - 1; d >= first; --d) {
    if (shape[d] == 1) continue;
    if (expected < 0) {
      *step = strides[d];
    } else if (strides[d] != expected) {
      return false;
    }
    expected = strides[d] * shape[d];
  }
  return true;
}

// Where the thread that has the elements [low, low + width) writes: what is
// another's goes elsewhere. Chosen without a branch, which would be foretold
// wrongly half of the time.
template <typename T>
class OwnPlaces {
 public:
  OwnPlaces(T* out, int64_t low, int64_t high)
      : out_(out), low_(low), width_(static_cast<uint64_t>(high - low)) {}
  T* operator()(int64_t offset) {
    const auto other = reinterpret_cast<uintptr_t>(&elsewhere_);
    const uintptr_t own =
        -static_cast<uintptr_t>(static_cast<uint64_t>(offset - low_) < width_);
    const auto at = reinterpret_cast<uintptr_t>(out_ + offset);
    return reinterpret_cast<T*>(other ^ ((other ^ at) & own));
  }

 private:
  T* const out_;
  const int64_t low_;
  const uint64_t width_;
  T elsewhere_{};
};

// Writes (adds) one element per index tuple, in order, at place(its offset).
template <typename Op, typename T, typename Place>
void PutElementsAt(const KernelContext& context, const Addressing& a,
                   const T* values, int64_t step, Place place,
                   BadIndices* bad) {
  constexpr int64_t kAhead = 16;  // the places lie anywhere
  int64_t offsets[kBlockOffsets];
  for (int64_t at = 0; at < a.count; at += kBlockOffsets) {
    const int64_t n = std::min(kBlockOffsets, a.count - at);
    if (context.Stopped() || !FillOffsets(a, at, n, offsets, bad)) return;
    const T* from = values + at * step;
    for (int64_t j = 0; j < n; ++j) {
      __builtin_prefetch(place(offsets[std::min(j + kAhead, n - 1)]), 1);
      Op::Apply(place(offsets[j]), from + j * step);
    }
  }
}

// An index may come more than once, and the last one counts: the elements of
// the data are shared out among the threads, and each reads all indices. That
// pays where the data is larger than the caches.
template <typename Op, typename T>
absl::Status PutElements(KernelContext& context, const Attrs& attrs,
                         const Addressing& a, const T* values, int64_t step,
                         T* out) {
  int64_t extent = 1;
  for (int d = 0; d < a.data->rank(); ++d) {
    extent += (a.data->shape[d] - 1) * a.data->strides[d];
  }
  constexpr int64_t kMany = 65536, kLarge = 1 << 25;
  const bool shared =
      a.count >= kMany && extent * static_cast<int64_t>(sizeof(T)) >= kLarge;
  const int64_t parts = shared ? context.num_threads : 1;
  BadIndices bad;
  ParallelFor(context, parts, 1, [&](int64_t begin, int64_t end) {
    const int64_t low = extent * begin / parts;
    const int64_t high = extent * end / parts;
    if (parts == 1) {
      PutElementsAt<Op>(
          context, a, values, step,
          [&](int64_t offset) { return out + offset; }, &bad);
    } else {
      PutElementsAt<Op>(context, a, values, step, OwnPlaces<T>(out, low, high),
                        &bad);
    }
  });
  return ToStatus(attrs, a, bad);
}

// The same where a tuple names more than an element; `strides` are the values'.
template <typename Op, typename T>
absl::Status PutAll(KernelContext& context, const Attrs& attrs,
                    const Addressing& a, const int64_t* table, const T* values,
                    absl::Span<const int64_t> strides, int64_t step, T* out) {
  if (a.rest == 1) {
    return PutElements<Op>(context, attrs, a, values, step, out);
  }
  return Scatter<Op, T, int64_t>(context, attrs, static_cast<int>(a.dims[0]),
                                 TableLoops(a, strides, step), values, table,
                                 out);
}

}  // namespace

HOLDFAST_CPU_KERNEL(index) {
  const TensorSpec& data = *inputs[0].spec;
  const TensorSpec& out = *outputs[0].spec;
  absl::StatusOr<Addressing> made =
      MakeAddressing(attrs, data, inputs.subspan(1));
  if (!made.ok()) return made.status();
  const Addressing& a = *made;
  if (a.count == 0 || (out.numel() == 0 && a.rest == 0)) {
    return absl::OkStatus();
  }
  return DispatchItem(data.dtype, [&](auto tag) -> absl::Status {
    using U = typename decltype(tag)::type;
    const U* from = inputs[0].as<U>();
    U* to = outputs[0].as<U>();
    if (a.rest == 1) {
      return ForEachOffsetBlock(
          context, attrs, a,
          [&](int64_t at, int64_t n, const int64_t* offsets) {
            for (int64_t j = 0; j < n; ++j) to[at + j] = from[offsets[j]];
          });
    }
    absl::StatusOr<const int64_t*> table = OffsetTable(context, attrs, a);
    if (!table.ok()) return table.status();
    // The output is contiguous: its step is that of what follows the indices.
    const int first = a.adjacent ? static_cast<int>(a.dims[0]) : 0;
    int64_t step = 1;
    for (int d = first + static_cast<int>(a.shape.size()); d < out.rank();
         ++d) {
      step *= out.shape[d];
    }
    return Gather<U, int64_t>(context, attrs, static_cast<int>(a.dims[0]),
                              TableLoops(a, out.strides, step), from, *table,
                              to);
  });
}

HOLDFAST_CPU_KERNEL(index_put) {
  const TensorView& output = outputs[0];
  const TensorSpec& data = *output.spec;
  absl::StatusOr<Addressing> made =
      MakeAddressing(attrs, data, inputs.subspan(2));
  if (!made.ok()) return made.status();
  const Addressing& a = *made;
  const bool in_place = output.data == inputs[0].data;
  const int64_t* table = nullptr;
  if (a.count > 0 && a.rest > 1) {
    absl::StatusOr<const int64_t*> filled = OffsetTable(context, attrs, a);
    if (!filled.ok()) return filled.status();
    table = *filled;
  } else if (a.count > 0 && in_place) {
    // A bad index must leave the data as it was.
    absl::Status checked = ForEachOffsetBlock(
        context, attrs, a, [](int64_t, int64_t, const int64_t*) {});
    if (!checked.ok()) return checked;
  }
  if (!in_place) CopyStrided(context, inputs[0], output);
  if (a.count == 0 || a.rest == 0) return absl::OkStatus();
  // The values' strides for the result's shape.
  const int first = a.adjacent ? static_cast<int>(a.dims[0]) : 0;
  Dims shape;
  for (int d = 0, next = 0; d < data.rank(); ++d) {
    if (next < static_cast<int>(a.dims.size()) && a.dims[next] == d) {
      ++next;
    } else {
      shape.push_back(data.shape[d]);
    }
  }
  shape.insert(shape.begin() + first, a.shape.begin(), a.shape.end());
  TensorView values = inputs[1];
  const int lead = static_cast<int>(shape.size()) - values.spec->rank();
  Dims strides(shape.size(), 0);
  for (int d = 0; d < values.spec->rank(); ++d) {
    if (values.spec->shape[d] != 1) strides[lead + d] = values.spec->strides[d];
  }
  int64_t step = 0;
  TensorSpec spec;
  if (!SingleStep(shape, strides, first, static_cast<int>(a.shape.size()),
                  &step)) {
    // Repeated or transposed values are written out.
    TensorSpec expanded;
    expanded.dtype = data.dtype;
    expanded.shape = shape;
    expanded.strides = strides;
    absl::Status s = MakeContiguous(context, {values.data, &expanded},
                                    data.dtype, &spec, &values);
    if (!s.ok()) return s;
    strides = spec.strides;
    SingleStep(shape, strides, first, static_cast<int>(a.shape.size()), &step);
  }
  const auto add = [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    return PutAll<Add, T>(context, attrs, a, table, values.as<T>(), strides,
                          step, output.as<T>());
  };
  if (attrs.Bool("accumulate")) {
    if (data.dtype == DType::kComplex64)
      return add(TypeTag<std::complex<float>>());
    if (data.dtype == DType::kComplex128) {
      return add(TypeTag<std::complex<double>>());
    }
    return DispatchDType(data.dtype, add);
  }
  return DispatchItem(data.dtype, [&](auto tag) -> absl::Status {
    using U = typename decltype(tag)::type;
    return PutAll<Assign, U>(context, attrs, a, table, values.as<U>(), strides,
                             step, output.as<U>());
  });
}

}  // namespace holdfast::cpu
