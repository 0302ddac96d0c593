// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// gather, index_select, scatter, scatter_add, scatter_reduce, index_add. Every
// index is checked before anything is written, so that a failed op leaves its
// tensor as it was. Where several sources meet in one place, their order is
// not fixed: float sums may differ in their last bits from call to call.
#include <limits>
#include <string>

#include "kernels/cuda/check.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/elements.h"
#include "kernels/cuda/lanes.h"
#include "kernels/cuda/offsets.h"

namespace holdfast::cuda {
namespace {

absl::StatusOr<int> IndexedDim(const Attrs& attrs, const TensorSpec& data) {
  return NormalizeDim(attrs.Int("dim"), data.rank());
}

// Where elements meet indices: the walk over `shape` through data (0 along
// dim), index and the other tensor; data's step and size along dim.
struct Indexed {
  Offsets<3> offsets;
  Lanes lanes;  // along dim, where indices may be equal
  int dim = 0;
  int64_t step = 1, size = 1;
};

Indexed MakeIndexed(absl::Span<const int64_t> shape, int dim,
                    const TensorSpec& data, absl::Span<const int64_t> index,
                    absl::Span<const int64_t> other) {
  Indexed result;
  result.dim = dim;
  result.lanes = LanesAlong(shape, dim);
  Dims steps(shape.size(), 0);
  if (data.rank() > 0) {
    result.step = data.strides[dim];
    result.size = data.shape[dim];
    for (int d = 0; d < data.rank(); ++d) {
      if (d != dim) steps[d] = data.strides[d];
    }
  }
  result.offsets = MakeOffsets<3>(shape, {steps, index, other});
  return result;
}

// Strides of a 1-D index seen as a tensor of `rank` dimensions, equal along
// all but `dim`.
Dims AlongDim(const TensorSpec& index, int rank, int dim) {
  Dims strides(rank, 0);
  if (rank > 0 && index.rank() > 0) strides[dim] = index.strides[0];
  return strides;
}

// Waits.
absl::Status CheckIndices(KernelContext& context, const Attrs& attrs, int dim,
                          int64_t size, const TensorView& view) {
  const TensorSpec* const specs[1] = {view.spec};
  const Offsets<1> offsets = BroadcastOffsets<1>(specs);
  const Operand index(view);
  absl::StatusOr<int64_t> fault =
      FirstFault(context, offsets.numel, [=] HOLDFAST_LAMBDA(int64_t i) {
        int64_t at;
        offsets.At(i, &at);
        return !InRange(index.Load<int64_t>(at), size);
      });
  if (!fault.ok()) return fault.status();
  if (*fault < 0) return absl::OkStatus();
  int64_t at;
  offsets.At(*fault, &at);
  int64_t bad = 0;
  if (view.spec->dtype == DType::kInt64) {
    absl::StatusOr<int64_t> read =
        ReadElement(context, view.as<int64_t>() + at);
    if (!read.ok()) return read.status();
    bad = *read;
  } else {
    absl::StatusOr<int32_t> read =
        ReadElement(context, view.as<int32_t>() + at);
    if (!read.ok()) return read.status();
    bad = *read;
  }
  return BadIndex(attrs, bad, dim, size);
}

template <typename Bits>
absl::Status GatherBits(KernelContext& context, const Indexed& x,
                        const TensorView& data, const TensorView& index_view,
                        const TensorView& output) {
  const Offsets<3> offsets = x.offsets;
  const int64_t step = x.step;
  const Operand index(index_view);
  const Bits* const from = data.as<Bits>();
  Bits* const to = output.as<Bits>();
  return ForEach(context, offsets.numel, [=] HOLDFAST_LAMBDA(int64_t i) {
    int64_t at[3];
    offsets.At(i, at);
    to[at[2]] = from[at[0] + index.Load<int64_t>(at[1]) * step];
  });
}

absl::Status Gather(KernelContext& context, const Attrs& attrs,
                    const Indexed& x, const TensorView& data,
                    const TensorView& index, const TensorView& output) {
  absl::Status s = CheckIndices(context, attrs, x.dim, x.size, index);
  if (!s.ok()) return s;
  return DispatchBits(data.spec->dtype, [&](auto tag) -> absl::Status {
    return GatherBits<typename decltype(tag)::type>(context, x, data, index,
                                                    output);
  });
}

// Plain stores: of several to one place, any may stay (in lanes: the last).
struct Assign {
  template <typename T>
  static HOLDFAST_HD void Apply(T* to, T value) {
    *to = value;
  }
};
struct Add {
  template <typename T>
  static HOLDFAST_HD void Apply(T* to, T value) {
    AtomicAdd(to, value);
  }
};
struct MultiplyTwo {
  template <typename T>
  HOLDFAST_HD T operator()(T a, T b) const {
    return elementwise::Multiply(a, b);
  }
};
// NaN if one is.
struct LargerTwo {
  template <typename T>
  HOLDFAST_HD T operator()(T a, T b) const {
    return b != b ? b : b > a ? b : a;
  }
};
struct SmallerTwo {
  template <typename T>
  HOLDFAST_HD T operator()(T a, T b) const {
    return b != b ? b : b < a ? b : a;
  }
};
template <typename Combine>
struct Atomically {
  template <typename T>
  static HOLDFAST_HD void Apply(T* to, T value) {
    AtomicUpdate(to, value, Combine());
  }
};

template <typename Op, typename T>
absl::Status ScatterAs(KernelContext& context, const Indexed& x,
                       const TensorView& index_view, const TensorView& source,
                       const TensorView& output) {
  const Offsets<3> offsets = x.offsets;
  const int64_t step = x.step;
  const Operand index(index_view), src(source);
  T* const to = output.as<T>();
  return ForEachInLanes(context, x.lanes, [=] HOLDFAST_LAMBDA(int64_t i) {
    int64_t at[3];
    offsets.At(i, at);
    Op::Apply(to + at[0] + index.Load<int64_t>(at[1]) * step,
              src.Load<T>(at[2]));
  });
}

template <typename Bits>
absl::Status ScatterBits(KernelContext& context, const Indexed& x,
                         const TensorView& index_view, const Bits* src,
                         Bits* to) {
  const Offsets<3> offsets = x.offsets;
  const int64_t step = x.step;
  const Operand index(index_view);
  return ForEachInLanes(context, x.lanes, [=] HOLDFAST_LAMBDA(int64_t i) {
    int64_t at[3];
    offsets.At(i, at);
    to[at[0] + index.Load<int64_t>(at[1]) * step] = src[at[2]];
  });
}

// Checks, starts from a copy of the input unless the call is in place, writes.
// `index_strides` and `src_strides` are for `shape`.
template <typename Op>
absl::Status ScatterInto(KernelContext& context, const Attrs& attrs,
                         const TensorView& input, const TensorView& index,
                         absl::Span<const int64_t> shape,
                         absl::Span<const int64_t> index_strides,
                         const TensorView& src,
                         absl::Span<const int64_t> src_strides,
                         const TensorView& output) {
  const TensorSpec& out = *output.spec;
  absl::StatusOr<int> dim = IndexedDim(attrs, out);
  if (!dim.ok()) return dim.status();
  if (index.spec->numel() == 0) {  // may be of any type and rank
    if (output.data == input.data) return absl::OkStatus();
    return CudaCopy(context, input, output);
  }
  const Indexed x = MakeIndexed(shape, *dim, out, index_strides, src_strides);
  absl::Status s = CheckIndices(context, attrs, x.dim, x.size, index);
  if (!s.ok()) return s;
  if (output.data != input.data) {
    if (s = CudaCopy(context, input, output); !s.ok()) return s;
  }
  if constexpr (std::is_same_v<Op, Assign>) {
    if (!IsNumber(src) && src.spec->dtype == out.dtype) {
      return DispatchBits(out.dtype, [&](auto tag) -> absl::Status {
        using Bits = typename decltype(tag)::type;
        return ScatterBits<Bits>(context, x, index, src.as<Bits>(),
                                 output.as<Bits>());
      });
    }
    return DispatchStored(out.dtype, [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      return ScatterAs<Assign, T>(context, x, index, src, output);
    });
  } else {
    return DispatchDType(out.dtype, [&](auto tag) -> absl::Status {
      using T = typename decltype(tag)::type;
      return ScatterAs<Op, T>(context, x, index, src, output);
    });
  }
}

Dims Padded(const TensorSpec& spec, int rank) {
  Dims strides = spec.strides;
  strides.resize(rank, 0);
  return strides;
}

template <typename T>
absl::Status DivideAs(KernelContext& context, const TensorView& output,
                      const int64_t* counts) {
  const TensorSpec* const specs[1] = {output.spec};
  const Offsets<1> offsets = BroadcastOffsets<1>(specs);
  T* const to = output.as<T>();
  return ForEach(context, offsets.numel, [=] HOLDFAST_LAMBDA(int64_t i) {
    int64_t at;
    offsets.At(i, &at);
    const int64_t n = counts[i];
    if (n <= 1) return;
    T* const place = to + at;
    if constexpr (std::is_same_v<T, bool>) {
      *place = false;
    } else if constexpr (std::is_integral_v<T>) {
      *place = static_cast<T>(
          elementwise::FloorDivide(static_cast<int64_t>(*place), n));
    } else {
      *place /= static_cast<T>(n);
    }
  });
}

// Sums become means: each element divided by how many were added to it, and
// itself with `include_self`. Integers round down.
absl::Status DivideByCounts(KernelContext& context, const Attrs& attrs,
                            const TensorView& index, bool include_self,
                            const TensorView& output) {
  const TensorSpec spec = ContiguousSpec(DType::kInt64, output.spec->shape);
  int64_t* const counts = ScratchOf<int64_t>(context, spec.numel());
  if (counts == nullptr) return NoScratch();
  const TensorView count_view{counts, &spec};
  absl::Status s =
      CudaFill(context, AttrValue(static_cast<int64_t>(include_self ? 1 : 0)),
               count_view);
  if (!s.ok()) return s;
  int64_t one = 1;
  TensorSpec one_spec = ContiguousSpec(DType::kInt64, {});
  one_spec.offset = kNumberOffset;
  s = ScatterInto<Add>(context, attrs, count_view, index, index.spec->shape,
                       index.spec->strides, {&one, &one_spec},
                       Dims(index.spec->rank(), 0), count_view);
  if (!s.ok()) return s;
  return DispatchDType(output.spec->dtype, [&](auto tag) -> absl::Status {
    return DivideAs<typename decltype(tag)::type>(context, output, counts);
  });
}

// What changes nothing, as the number that scatter_reduce starts from.
template <typename T>
T IdentityOf(const std::string& reduce) {
  using Limits = std::numeric_limits<T>;
  if (reduce == "prod") return T(1);
  if (reduce == "amax") {
    return Limits::has_infinity ? static_cast<T>(-Limits::infinity())
                                : Limits::lowest();
  }
  if (reduce == "amin") {
    return Limits::has_infinity ? Limits::infinity() : Limits::max();
  }
  return T(0);
}

}  // namespace

HOLDFAST_CUDA_KERNEL(gather) {
  const TensorSpec& index = *inputs[1].spec;
  if (index.numel() == 0) return absl::OkStatus();
  absl::StatusOr<int> dim = IndexedDim(attrs, *inputs[0].spec);
  if (!dim.ok()) return dim.status();
  const Indexed x = MakeIndexed(index.shape, *dim, *inputs[0].spec,
                                index.strides, outputs[0].spec->strides);
  return Gather(context, attrs, x, inputs[0], inputs[1], outputs[0]);
}

HOLDFAST_CUDA_KERNEL(index_select) {
  const TensorSpec& out = *outputs[0].spec;
  if (out.numel() == 0) return absl::OkStatus();
  absl::StatusOr<int> dim = IndexedDim(attrs, *inputs[0].spec);
  if (!dim.ok()) return dim.status();
  const Dims index = AlongDim(*inputs[1].spec, out.rank(), *dim);
  const Indexed x =
      MakeIndexed(out.shape, *dim, *inputs[0].spec, index, out.strides);
  return Gather(context, attrs, x, inputs[0], inputs[1], outputs[0]);
}

HOLDFAST_CUDA_KERNEL(scatter) {
  const TensorSpec& index = *inputs[1].spec;
  return ScatterInto<Assign>(context, attrs, inputs[0], inputs[1], index.shape,
                             index.strides, inputs[2],
                             Padded(*inputs[2].spec, index.rank()), outputs[0]);
}

HOLDFAST_CUDA_KERNEL(scatter_add) {
  const TensorSpec& index = *inputs[1].spec;
  return ScatterInto<Add>(context, attrs, inputs[0], inputs[1], index.shape,
                          index.strides, inputs[2],
                          Padded(*inputs[2].spec, index.rank()), outputs[0]);
}

HOLDFAST_CUDA_KERNEL(index_add) {
  const TensorSpec& source = *inputs[2].spec;
  absl::StatusOr<int> dim = IndexedDim(attrs, *inputs[0].spec);
  if (!dim.ok()) return dim.status();
  const Dims index = AlongDim(*inputs[1].spec, source.rank(), *dim);
  return ScatterInto<Add>(context, attrs, inputs[0], inputs[1], source.shape,
                          index, inputs[2], source.strides, outputs[0]);
}

HOLDFAST_CUDA_KERNEL(scatter_reduce) {
  const TensorView& output = outputs[0];
  const TensorSpec& index = *inputs[1].spec;
  const std::string& reduce = attrs.Str("reduce");
  const bool include_self = attrs.Bool("include_self");
  const Dims src_strides = Padded(*inputs[2].spec, index.rank());
  TensorView input = inputs[0];
  if (!include_self) {
    TensorSpec spec = ContiguousSpec(output.spec->dtype, {});
    spec.offset = kNumberOffset;
    alignas(16) char identity[16] = {};
    DispatchDType(spec.dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      *reinterpret_cast<T*>(identity) = IdentityOf<T>(reduce);
    });
    absl::Status s = ScatterInto<Assign>(
        context, attrs, input, inputs[1], index.shape, index.strides,
        {identity, &spec}, Dims(index.rank(), 0), output);
    if (!s.ok()) return s;
    input = output;
  }
  const auto run = [&](auto op) {
    return ScatterInto<decltype(op)>(context, attrs, input, inputs[1],
                                     index.shape, index.strides, inputs[2],
                                     src_strides, output);
  };
  if (reduce == "prod") return run(Atomically<MultiplyTwo>());
  if (reduce == "amax") return run(Atomically<LargerTwo>());
  if (reduce == "amin") return run(Atomically<SmallerTwo>());
  absl::Status s = run(Add());
  if (!s.ok() || reduce == "sum") return s;
  return DivideByCounts(context, attrs, inputs[1], include_self, output);
}

}  // namespace holdfast::cuda
