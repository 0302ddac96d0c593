// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Fourier transforms: one dimension after the other, each a loop of
// one-dimensional transforms that the threads share.
#include "kernels/fft.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/fftw.h"
#include "kernels/cpu/parallel.h"
#include "kernels/dtype_dispatch.h"
#include "kernels/op_time.h"

namespace holdfast::cpu {
namespace {

template <typename T>
struct Complexes {
  T re, im;
};

// Dimension `d` of a contiguous shape: `outer` blocks of `n` rows of `inner`
// adjacent elements.
struct Axis {
  int64_t outer = 1, n = 1, inner = 1;
};
Axis AxisOf(const Dims& shape, int d) {
  Axis axis;
  axis.n = shape[d];
  for (int i = 0; i < static_cast<int>(shape.size()); ++i) {
    if (i < d) axis.outer *= shape[i];
    if (i > d) axis.inner *= shape[i];
  }
  return axis;
}

// One row is one call, on one thread.
absl::Status CheckRow(int64_t n) {
  constexpr double kFast = 2e9;  // operations a second, from memory
  const double points = static_cast<double>(n);
  return OpTime::CheckCall(absl::StrCat("[fft] a transform of ", n, " points"),
                           5 * points * std::log2(points) / kFast);
}

// Transforms `in` to `out`, both contiguous; their sizes along the axis are
// in_n and out_n, and n points are transformed. `scale` multiplies the result.
//
// The work is cut into pieces of fixed size, so that the plans, and with them
// the last bits of the result, do not depend on the number of threads: some of
// the columns of a block where inner > 1, else some rows.
template <typename T, typename In, typename Out>
absl::Status TransformAxis(const KernelContext& context, FftKind kind,
                           const Axis& axis, int64_t in_n, int64_t out_n,
                           In* in, Out* out, double scale) {
  const bool columns = axis.inner > 1;
  if (absl::Status s = CheckRow(axis.n); !s.ok()) return s;
  const int64_t count = columns ? axis.inner : axis.outer;
  const int64_t piece =
      std::min(count, std::max<int64_t>(columns ? 8 : 1, 8192 / axis.n));
  const int64_t per_block = (count + piece - 1) / piece;
  const int64_t pieces = per_block * (columns ? axis.outer : 1);
  const int64_t in_step = columns ? 1 : in_n, out_step = columns ? 1 : out_n;
  FirstFailure failure;
  const int64_t grain = std::max<int64_t>(1, 16384 / (piece * axis.n));
  ParallelFor(context, pieces, grain, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t block = i / per_block, first = i % per_block * piece;
      const int64_t size = std::min(piece, count - first);
      In* from = in + block * in_n * axis.inner + first * in_step;
      Out* to = out + block * out_n * axis.inner + first * out_step;
      auto plan = FftwPlan<T>::Make(kind, {axis.n, axis.inner, axis.inner},
                                    {size, in_step, out_step}, from, to);
      if (!plan.ok()) {
        failure.Note(i, plan.status());
        return;
      }
      plan->Run(from, to);
      if (scale == 1.0) continue;
      // Rows of `size` adjacent elements, or one run of them all.
      const int64_t rows = columns ? out_n : 1;
      const int64_t run = columns ? size : size * out_n;
      constexpr int64_t kParts = sizeof(Out) / sizeof(T);
      for (int64_t r = 0; r < rows; ++r) {
        T* parts = reinterpret_cast<T*>(to + r * axis.inner);
        for (int64_t j = 0; j < run * kParts; ++j) {
          parts[j] *= static_cast<T>(scale);
        }
      }
    }
  });
  return failure.Take();
}

// `dims` of the complex tensor `data`, in place.
template <typename T>
absl::Status TransformInPlace(const KernelContext& context, bool forward,
                              const Dims& shape, const std::vector<int>& dims,
                              Complexes<T>* data, double scale) {
  for (int d : dims) {
    const Axis axis = AxisOf(shape, d);
    absl::Status s = TransformAxis<T>(
        context, forward ? FftKind::kForward : FftKind::kBackward, axis, axis.n,
        axis.n, data, data, scale);
    if (!s.ok()) return s;
    scale = 1.0;
  }
  return absl::OkStatus();
}

}  // namespace

HOLDFAST_CPU_KERNEL(fft_c2c) {
  const TensorView& out = outputs[0];
  if (out.spec->numel() == 0) return absl::OkStatus();
  const std::vector<int> dims = FftDims(attrs, out.spec->rank());
  CopyStrided(context, inputs[0], out);
  return DispatchFloat(RealType(out.spec->dtype), [&](auto tag) {
    using T = typename decltype(tag)::type;
    return TransformInPlace<T>(context, attrs.Bool("forward"), out.spec->shape,
                               dims, out.as<Complexes<T>>(),
                               attrs.Float("scale"));
  });
}

HOLDFAST_CPU_KERNEL(fft_r2c) {
  const TensorView& out = outputs[0];
  if (out.spec->numel() == 0) return absl::OkStatus();
  std::vector<int> dims = FftDims(attrs, out.spec->rank());
  TensorSpec spec;
  TensorView in;
  absl::Status s =
      MakeContiguous(context, inputs[0], inputs[0].spec->dtype, &spec, &in);
  if (!s.ok()) return s;
  return DispatchFloat(in.spec->dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    const int last = dims.back();
    dims.pop_back();
    const Axis axis = AxisOf(in.spec->shape, last);
    absl::Status status = TransformAxis<T>(
        context, FftKind::kRealToComplex, axis, axis.n, axis.n / 2 + 1,
        in.as<T>(), out.as<Complexes<T>>(), attrs.Float("scale"));
    if (!status.ok()) return status;
    return TransformInPlace<T>(context, true, out.spec->shape, dims,
                               out.as<Complexes<T>>(), 1.0);
  });
}

HOLDFAST_CPU_KERNEL(fft_c2r) {
  const TensorView& out = outputs[0];
  if (out.spec->numel() == 0) return absl::OkStatus();
  std::vector<int> dims = FftDims(attrs, out.spec->rank());
  const int last = dims.back();
  dims.pop_back();
  TensorSpec spec =
      ContiguousSpec(inputs[0].spec->dtype, inputs[0].spec->shape);
  TensorView in;
  if (dims.empty()) {
    absl::Status s =
        MakeContiguous(context, inputs[0], inputs[0].spec->dtype, &spec, &in);
    if (!s.ok()) return s;
  } else {
    void* memory = context.Scratch(spec.nbytes());
    if (memory == nullptr) {
      return absl::ResourceExhaustedError("no scratch memory for a transform");
    }
    in = {memory, &spec};
    CopyStrided(context, inputs[0], in);
  }
  return DispatchFloat(out.spec->dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    Complexes<T>* data = in.as<Complexes<T>>();
    absl::Status status =
        TransformInPlace<T>(context, false, in.spec->shape, dims, data, 1.0);
    if (!status.ok()) return status;
    const Axis axis = AxisOf(out.spec->shape, last);
    return TransformAxis<T>(context, FftKind::kComplexToReal, axis,
                            axis.n / 2 + 1, axis.n, data, out.as<T>(),
                            attrs.Float("scale"));
  });
}

}  // namespace holdfast::cpu
