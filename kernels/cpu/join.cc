// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Ops that write tensors as parts of a larger one: cat, constant_pad,
// slice_backward, select_backward, as_strided_scatter.
#include <algorithm>
#include <cstring>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/vectorised.h"
#include "kernels/dtype_dispatch.h"

namespace holdfast::cpu {
namespace {

TensorView AtOffset(const TensorView& view, int64_t elements,
                    const TensorSpec& spec) {
  return {
      view.as<char>() + elements * static_cast<int64_t>(ItemSize(spec.dtype)),
      &spec};
}

template <typename T>
void FillContiguous(const KernelContext& context, T* out, int64_t n, T value) {
  ParallelFor(context, n, 65536, [&](int64_t b, int64_t e) {
    std::fill(out + b, out + e, value);
  });
}

void FillZero(const KernelContext& context, const TensorView& out) {
  FillContiguous<char>(context, out.as<char>(), out.spec->nbytes(), 0);
}

// A number as PyTorch converts it to T. Out-of-range values of floats are
// bounded by AttrAsInt, integers wrap.
template <typename T>
T NumberAs(const AttrValue& value) {
  if constexpr (std::is_same_v<T, bool>) {
    return AttrAsDouble(value) != 0;
  } else if constexpr (std::is_floating_point_v<T>) {
    return static_cast<T>(AttrAsDouble(value));
  } else {
    return static_cast<T>(AttrAsInt(value));
  }
}

// By value: seen through references, the numbers would be loaded again after
// every store. A length that is a constant needs no call of memcpy, which would
// take longer than what it copies.
template <typename Length>
void CopySomeRuns(const char* src, Length length, char* dst, int64_t dst_run,
                  int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    std::memcpy(dst + i * dst_run, src + i * length, length);
  }
}

// Contiguous inputs of the output's type: runs of bytes, one per outer index.
void CopyRuns(const KernelContext& context, const char* src, int64_t src_run,
              char* dst, int64_t dst_run, int64_t outer) {
  ParallelFor(context, outer, std::max<int64_t>(1, 65536 / (src_run + 1)),
              [&](int64_t b, int64_t e) {
                const char* from = src + b * src_run;
                char* to = dst + b * dst_run;
                const auto copy = [&](auto length) {
                  CopySomeRuns(from, length, to, dst_run, e - b);
                };
                switch (src_run) {
                  case 4:
                    return copy(std::integral_constant<int64_t, 4>());
                  case 8:
                    return copy(std::integral_constant<int64_t, 8>());
                  case 16:
                    return copy(std::integral_constant<int64_t, 16>());
                  case 32:
                    return copy(std::integral_constant<int64_t, 32>());
                  default:
                    return copy(src_run);
                }
              });
}

template <typename U>
struct InterleaveBody {
  static HOLDFAST_INLINE int Run(const U* a, const U* b, U* out, int64_t n) {
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      out[2 * i] = a[i];
      out[2 * i + 1] = b[i];
    }
    return 0;
  }
};

template <typename U>
void Interleave(const KernelContext& context, const void* a, const void* b,
                void* out, int64_t n) {
  ParallelFor(context, n, 32768, [&](int64_t begin, int64_t end) {
    Vectorised<InterleaveBody<U>>(
        static_cast<const U*>(a) + begin, static_cast<const U*>(b) + begin,
        static_cast<U*>(out) + 2 * begin, end - begin);
  });
}

// Two tensors that alternate element by element, as real and imaginary parts
// do: in one pass. False if they are of another kind.
bool CatPairs(const KernelContext& context, absl::Span<const TensorView> inputs,
              const TensorView& output, int64_t outer, int64_t item) {
  if (inputs.size() != 2 || (item != 4 && item != 8)) return false;
  for (const TensorView& input : inputs) {
    const TensorSpec& in = *input.spec;
    if (in.dtype != output.spec->dtype || in.numel() != outer ||
        !in.contiguous()) {
      return false;
    }
  }
  const auto interleave =
      item == 4 ? &Interleave<uint32_t> : &Interleave<uint64_t>;
  interleave(context, inputs[0].data, inputs[1].data, output.data, outer);
  return true;
}

}  // namespace

HOLDFAST_CPU_KERNEL(cat) {
  const TensorView& output = outputs[0];
  const TensorSpec& out = *output.spec;
  if (out.numel() == 0) return absl::OkStatus();
  absl::StatusOr<int> dim = NormalizeDim(attrs.Int("dim"), out.rank());
  if (!dim.ok()) return dim.status();
  int64_t outer = 1;
  for (int d = 0; d < *dim; ++d) outer *= out.shape[d];
  const int64_t item = static_cast<int64_t>(ItemSize(out.dtype));
  const int64_t out_run = out.numel() / outer * item;
  if (CatPairs(context, inputs, output, outer, item)) return absl::OkStatus();
  int64_t position = 0;
  for (const TensorView& input : inputs) {
    const TensorSpec& in = *input.spec;
    if (in.numel() == 0) continue;
    TensorSpec part = out;
    part.shape[*dim] = in.shape[*dim];
    const TensorView target =
        AtOffset(output, position * out.strides[*dim], part);
    position += in.shape[*dim];
    // One run is a plain copy, which CopyStrided splits over threads.
    if (in.dtype == out.dtype && outer > 1 && in.contiguous()) {
      CopyRuns(context, input.as<char>(), in.numel() / outer * item,
               target.as<char>(), out_run, outer);
    } else {
      CopyStrided(context, input, target);
    }
  }
  return absl::OkStatus();
}

HOLDFAST_CPU_KERNEL(constant_pad) {
  const TensorSpec& in = *inputs[0].spec;
  const TensorSpec& out = *outputs[0].spec;
  const Dims& pad = attrs.Ints("pad");
  TensorSpec from = in, to = out;
  int64_t from_offset = 0, to_offset = 0;
  for (size_t i = 0; i < pad.size() / 2; ++i) {
    const int d = in.rank() - 1 - static_cast<int>(i);
    const int64_t before = pad[2 * i], after = pad[2 * i + 1];
    const int64_t size = in.shape[d] + std::min<int64_t>(before, 0) +
                         std::min<int64_t>(after, 0);
    from.shape[d] = to.shape[d] = size;
    from_offset += std::max<int64_t>(-before, 0) * in.strides[d];
    to_offset += std::max<int64_t>(before, 0) * out.strides[d];
  }
  if (to.numel() != out.numel()) {
    FillStrided(context, attrs.Get("value"), outputs[0]);
  }
  if (from.numel() == 0) return absl::OkStatus();
  CopyStrided(context, AtOffset(inputs[0], from_offset, from),
              AtOffset(outputs[0], to_offset, to));
  return absl::OkStatus();
}

HOLDFAST_CPU_KERNEL(slice_backward) {
  const TensorSpec& grad = *inputs[0].spec;
  const TensorSpec& out = *outputs[0].spec;
  FillZero(context, outputs[0]);
  if (grad.numel() == 0) return absl::OkStatus();
  absl::StatusOr<int> dim = NormalizeDim(attrs.Int("dim"), out.rank());
  if (!dim.ok()) return dim.status();
  const int64_t start = attrs.Int("start"), step = attrs.Int("step");
  TensorSpec part = out;
  part.shape = grad.shape;
  part.strides[*dim] *= step;
  CopyStrided(context, inputs[0],
              AtOffset(outputs[0], start * out.strides[*dim], part));
  return absl::OkStatus();
}

HOLDFAST_CPU_KERNEL(select_backward) {
  const TensorSpec& grad = *inputs[0].spec;
  const TensorSpec& out = *outputs[0].spec;
  FillZero(context, outputs[0]);
  if (grad.numel() == 0) return absl::OkStatus();
  absl::StatusOr<int> dim = NormalizeDim(attrs.Int("dim"), out.rank());
  if (!dim.ok()) return dim.status();
  TensorSpec part = out;
  part.shape.erase(part.shape.begin() + *dim);
  part.strides.erase(part.strides.begin() + *dim);
  CopyStrided(
      context, inputs[0],
      AtOffset(outputs[0], attrs.Int("index") * out.strides[*dim], part));
  return absl::OkStatus();
}

HOLDFAST_CPU_KERNEL(as_strided_scatter) {
  const TensorSpec& out = *outputs[0].spec;
  CopyStrided(context, inputs[0], outputs[0]);
  if (inputs[1].spec->numel() == 0) return absl::OkStatus();
  TensorSpec part = out;
  part.shape = attrs.Ints("size");
  part.strides = attrs.Ints("stride");
  const int64_t offset =
      attrs.None("storage_offset") ? 0 : attrs.Int("storage_offset");
  CopyStrided(context, inputs[1], AtOffset(outputs[0], offset, part));
  return absl::OkStatus();
}

}  // namespace holdfast::cpu
