// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// gather, index_select, scatter, scatter_add, scatter_reduce, index_add.
// Indices are checked at the load that uses them; ops that can work in place
// look through all of them first, so that a failed op leaves its tensor as it
// was.
#include <algorithm>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/index_rows.h"
#include "kernels/cpu/item_dispatch.h"
#include "kernels/cpu/load_once.h"
#include "kernels/cpu/vectorised.h"
#include "kernels/dtype_dispatch.h"

namespace holdfast::cpu {
namespace {

absl::StatusOr<int> IndexedDim(const Attrs& attrs, const TensorSpec& data) {
  return NormalizeDim(attrs.Int("dim"), data.rank());
}

// Strides of a 1-D index seen as a tensor of `rank` dimensions, equal along
// all but `dim`.
Dims AlongDim(const TensorSpec& index, int rank, int dim) {
  Dims strides(rank, 0);
  if (rank > 0 && index.rank() > 0) strides[dim] = index.strides[0];
  return strides;
}

template <typename I>
struct AnyOutsideBody {
  static HOLDFAST_INLINE bool Run(const I* index, int64_t n, int64_t step,
                                  int64_t size) {
    bool outside = false;
    if (step == 1) {
      for (int64_t j = 0; j < n; ++j) outside |= !InRange(index[j], size);
    } else {
      for (int64_t j = 0; j < n; ++j) {
        outside |= !InRange(index[j * step], size);
      }
    }
    return outside;
  }
};

// Every index, read before anything is written. What the client changes after
// that is caught at its use.
template <typename I>
absl::Status CheckIndices(const KernelContext& context, const Attrs& attrs,
                          int dim, int64_t size, const TensorSpec& spec,
                          const I* index) {
  if (spec.numel() == 0) return absl::OkStatus();
  FirstBadIndex bad;
  const int inner = spec.rank() - 1;
  const int64_t n = inner < 0 ? 1 : spec.shape[inner];
  const int64_t step = inner < 0 ? 0 : spec.strides[inner];
  const absl::Span<const int64_t> outer =
      absl::MakeSpan(spec.shape).subspan(0, std::max(inner, 0));
  // Ranges of elements: a row may be all there is.
  ParallelFor(context, spec.numel(), 65536, [&](int64_t b, int64_t e) {
    StridedCursor<1> at(outer, {spec.strides.data()}, b / n);
    for (int64_t i = b, first = b % n; i < e && !bad.seen(); first = 0) {
      const int64_t count = std::min(n - first, e - i);
      const I* row = index + at[0] + first * step;
      if (Vectorised<AnyOutsideBody<I>>(row, count, step, size)) {
        for (int64_t j = 0; j < count; ++j) {
          const int64_t value = LoadOnce(row + j * step);
          if (!InRange(value, size)) bad.Record(value);
        }
      }
      i += count;
      at.Next();
    }
  });
  return bad.ToStatus(attrs, dim, size);
}

// What scatter, scatter_add and index_add share: start from a copy of the
// input, or check all indices first if the call is in place (or writes
// nothing), then write. `index_strides` is for `shape`, which is src's part
// that is used.
template <typename Op>
absl::Status ScatterInto(KernelContext& context, const Attrs& attrs,
                         const TensorView& input, const TensorView& index,
                         absl::Span<const int64_t> shape,
                         absl::Span<const int64_t> index_strides,
                         const TensorView& src,
                         absl::Span<const int64_t> src_strides,
                         const TensorView& output) {
  const TensorSpec& out_spec = *output.spec;
  absl::StatusOr<int> dim = IndexedDim(attrs, out_spec);
  if (!dim.ok()) return dim.status();
  if (index.spec->numel() == 0) {  // may be of any type and rank
    if (output.data != input.data) CopyStrided(context, input, output);
    return absl::OkStatus();
  }
  const int64_t size = out_spec.rank() == 0 ? 1 : out_spec.shape[*dim];
  return DispatchIndex(index.spec->dtype, [&](auto index_tag) -> absl::Status {
    using I = typename decltype(index_tag)::type;
    const I* indices = index.as<I>();
    if (output.data == input.data || NumElements(shape) == 0) {
      absl::Status s =
          CheckIndices(context, attrs, *dim, size, *index.spec, indices);
      if (!s.ok()) return s;
    }
    if (output.data != input.data) CopyStrided(context, input, output);
    if (NumElements(shape) == 0) return absl::OkStatus();
    const IndexLoops loops =
        MakeIndexLoops(shape, *dim, out_spec, index_strides, src_strides);
    if constexpr (std::is_same_v<Op, Assign>) {
      return DispatchItem(out_spec.dtype, [&](auto tag) -> absl::Status {
        using U = typename decltype(tag)::type;
        return Scatter<Op, U, I>(context, attrs, *dim, loops, src.as<U>(),
                                 indices, output.as<U>());
      });
    } else {
      return DispatchDType(out_spec.dtype, [&](auto tag) -> absl::Status {
        using T = typename decltype(tag)::type;
        return Scatter<Op, T, I>(context, attrs, *dim, loops, src.as<T>(),
                                 indices, output.as<T>());
      });
    }
  });
}

struct Multiply {
  template <typename T>
  static void Apply(T* to, const T* from) {
    if constexpr (std::is_same_v<T, bool>) {
      *to = LoadElement(to) & LoadElement(from);
    } else if constexpr (std::is_integral_v<T>) {
      using U = std::make_unsigned_t<T>;  // wraps instead of overflowing
      *to = static_cast<T>(static_cast<U>(*to) * static_cast<U>(*from));
    } else {
      *to *= *from;
    }
  }
};

// Of two numbers; NaN if one is. Two choices of values and no branch: no
// processor can predict which of numbers in no order is larger.
struct Larger {
  template <typename T>
  static void Apply(T* to, const T* from) {
    const T a = LoadElement(to), b = LoadElement(from);
    const T larger = b > a ? b : a;
    *to = b != b ? b : larger;
  }
};
struct Smaller {
  template <typename T>
  static void Apply(T* to, const T* from) {
    const T a = LoadElement(to), b = LoadElement(from);
    const T smaller = b < a ? b : a;
    *to = b != b ? b : smaller;
  }
};

// Sums become means: each element divided by how many were added to it, and
// itself with `include_self`. Integers round down.
absl::Status DivideByCounts(KernelContext& context, const Attrs& attrs,
                            const TensorView& index, bool include_self,
                            const TensorView& output) {
  const TensorSpec& out = *output.spec;
  if (out.numel() == 0) return absl::OkStatus();
  auto* counts =
      static_cast<int64_t*>(context.Scratch(out.numel() * sizeof(int64_t)));
  if (counts == nullptr) {
    return absl::ResourceExhaustedError("no scratch memory");
  }
  std::fill(counts, counts + out.numel(), include_self ? 1 : 0);
  const TensorSpec spec = ContiguousSpec(DType::kInt64, out.shape);
  const int64_t one = 1;
  const TensorSpec one_spec = ContiguousSpec(DType::kInt64, {});
  const TensorView count_view{counts, &spec};
  absl::Status s = ScatterInto<Add>(context, attrs, count_view, index,
                                    index.spec->shape, index.spec->strides,
                                    {const_cast<int64_t*>(&one), &one_spec},
                                    Dims(index.spec->rank(), 0), count_view);
  if (!s.ok()) return s;
  return DispatchDType(out.dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    StridedCursor<1> at(out.shape, {out.strides.data()});
    for (int64_t i = 0; i < out.numel(); ++i, at.Next()) {
      T* to = output.as<T>() + at[0];
      if (counts[i] <= 1) continue;
      if constexpr (std::is_same_v<T, bool>) {
        *to = false;
      } else if constexpr (std::is_integral_v<T>) {
        const int64_t sum = *to;
        const bool down = sum < 0 && sum % counts[i] != 0;
        *to = static_cast<T>(sum / counts[i] - (down ? 1 : 0));
      } else {
        *to /= static_cast<T>(counts[i]);
      }
    }
    return absl::OkStatus();
  });
}

}  // namespace

HOLDFAST_CPU_KERNEL(gather) {
  const TensorSpec& data = *inputs[0].spec;
  const TensorSpec& index = *inputs[1].spec;
  if (index.numel() == 0) return absl::OkStatus();
  absl::StatusOr<int> dim = IndexedDim(attrs, data);
  if (!dim.ok()) return dim.status();
  const IndexLoops loops = MakeIndexLoops(
      index.shape, *dim, data, index.strides, outputs[0].spec->strides);
  return DispatchIndex(index.dtype, [&](auto index_tag) -> absl::Status {
    using I = typename decltype(index_tag)::type;
    return DispatchItem(data.dtype, [&](auto tag) -> absl::Status {
      using U = typename decltype(tag)::type;
      return Gather<U, I>(context, attrs, *dim, loops, inputs[0].as<U>(),
                          inputs[1].as<I>(), outputs[0].as<U>());
    });
  });
}

HOLDFAST_CPU_KERNEL(index_select) {
  const TensorSpec& data = *inputs[0].spec;
  const TensorSpec& index = *inputs[1].spec;
  const TensorSpec& out = *outputs[0].spec;
  if (out.numel() == 0) return absl::OkStatus();
  absl::StatusOr<int> dim = IndexedDim(attrs, data);
  if (!dim.ok()) return dim.status();
  const Dims index_strides = AlongDim(index, out.rank(), *dim);
  const IndexLoops loops =
      MakeIndexLoops(out.shape, *dim, data, index_strides, out.strides);
  return DispatchIndex(index.dtype, [&](auto index_tag) -> absl::Status {
    using I = typename decltype(index_tag)::type;
    return DispatchItem(data.dtype, [&](auto tag) -> absl::Status {
      using U = typename decltype(tag)::type;
      return Gather<U, I>(context, attrs, *dim, loops, inputs[0].as<U>(),
                          inputs[1].as<I>(), outputs[0].as<U>());
    });
  });
}

HOLDFAST_CPU_KERNEL(scatter) {
  const TensorSpec& index = *inputs[1].spec;
  TensorView src = inputs[2];
  // A number comes in the type of the computation, not of the tensor.
  Item16 number = {};
  TensorSpec number_spec = ContiguousSpec(outputs[0].spec->dtype, {});
  Dims src_strides = src.spec->strides;
  if (src.spec->dtype != number_spec.dtype) {
    CopyStrided(context, src, {&number, &number_spec});
    src = {&number, &number_spec};
  }
  src_strides.resize(index.rank(), 0);
  return ScatterInto<Assign>(context, attrs, inputs[0], inputs[1], index.shape,
                             index.strides, src, src_strides, outputs[0]);
}

HOLDFAST_CPU_KERNEL(scatter_add) {
  const TensorSpec& index = *inputs[1].spec;
  Dims src_strides = inputs[2].spec->strides;
  src_strides.resize(index.rank(), 0);
  return ScatterInto<Add>(context, attrs, inputs[0], inputs[1], index.shape,
                          index.strides, inputs[2], src_strides, outputs[0]);
}

HOLDFAST_CPU_KERNEL(scatter_reduce) {
  const TensorView& output = outputs[0];
  const TensorSpec& index = *inputs[1].spec;
  const std::string& reduce = attrs.Str("reduce");
  const bool include_self = attrs.Bool("include_self");
  Dims src_strides = inputs[2].spec->strides;
  src_strides.resize(index.rank(), 0);
  TensorView input = inputs[0];
  if (!include_self) {
    // Start from what changes nothing.
    uint64_t identity = 0;
    const TensorSpec spec = ContiguousSpec(output.spec->dtype, {});
    DispatchDType(spec.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      using Limits = std::numeric_limits<T>;
      T value{};
      if (reduce == "prod") value = T(1);
      if (reduce == "amax") {
        value = Limits::has_infinity ? static_cast<T>(-Limits::infinity())
                                     : Limits::lowest();
      }
      if (reduce == "amin") {
        value = Limits::has_infinity ? Limits::infinity() : Limits::max();
      }
      std::memcpy(&identity, &value, sizeof(T));
    });
    absl::Status s = ScatterInto<Assign>(
        context, attrs, input, inputs[1], index.shape, index.strides,
        {&identity, &spec}, Dims(index.rank(), 0), output);
    if (!s.ok()) return s;
    input = output;
  }
  const auto run = [&](auto op) {
    return ScatterInto<decltype(op)>(context, attrs, input, inputs[1],
                                     index.shape, index.strides, inputs[2],
                                     src_strides, output);
  };
  if (reduce == "prod") return run(Multiply());
  if (reduce == "amax") return run(Larger());
  if (reduce == "amin") return run(Smaller());
  absl::Status s = run(Add());
  if (!s.ok() || reduce == "sum") return s;
  return DivideByCounts(context, attrs, inputs[1], include_self, output);
}

HOLDFAST_CPU_KERNEL(index_add) {
  const TensorSpec& source = *inputs[2].spec;
  absl::StatusOr<int> dim = IndexedDim(attrs, *inputs[0].spec);
  if (!dim.ok()) return dim.status();
  const Dims index_strides = AlongDim(*inputs[1].spec, source.rank(), *dim);
  return ScatterInto<Add>(context, attrs, inputs[0], inputs[1], source.shape,
                          index_strides, inputs[2], source.strides, outputs[0]);
}

}  // namespace holdfast::cpu
