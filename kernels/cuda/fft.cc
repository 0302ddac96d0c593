// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Fourier transforms: one dimension after the other, each a copy that makes its
// rows contiguous and a batch of one-dimensional transforms.
#include "kernels/fft.h"

#include <cmath>
#include <utility>
#include <vector>

#include "kernels/cuda/copy.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/elements.h"
#include "kernels/cuda/fft_rows.h"
#include "kernels/cuda/launch.h"
#include "kernels/dtype_dispatch.h"
#include "ops/complex.h"

namespace holdfast::cuda {

#if !defined(__CUDACC__)
namespace {

// Point `i` of a row of which complex numbers give the first half alone.
template <typename T>
Complex<double> OfHalf(const Complex<T>* row, int64_t i, int64_t n) {
  if (i <= n / 2) return {row[i].real, row[i].imag};
  return {row[n - i].real, -static_cast<double>(row[n - i].imag)};
}

template <typename T>
Complex<double> PointOf(const FftRows& fft, const void* row, int64_t i) {
  if (fft.kind == FftKind::kRealToComplex) {
    return {static_cast<const T*>(row)[i], 0};
  }
  const auto* const points = static_cast<const Complex<T>*>(row);
  if (fft.kind == FftKind::kComplexToReal) return OfHalf(points, i, fft.n);
  return {points[i].real, points[i].imag};
}

// The definition: n^2 products a row. Tests alone run it.
template <typename T>
void TransformRow(const FftRows& fft, const void* in, void* out) {
  const bool forward =
      fft.kind == FftKind::kForward || fft.kind == FftKind::kRealToComplex;
  const double turn = (forward ? -2 : 2) * 3.14159265358979323846 / fft.n;
  const int64_t results =
      fft.kind == FftKind::kRealToComplex ? fft.n / 2 + 1 : fft.n;
  std::vector<Complex<double>> sums(results);
  for (int64_t k = 0; k < results; ++k) {
    for (int64_t i = 0; i < fft.n; ++i) {
      const double angle = turn * static_cast<double>(i * k % fft.n);
      sums[k] = sums[k] + PointOf<T>(fft, in, i) *
                              Complex<double>{std::cos(angle), std::sin(angle)};
    }
  }
  for (int64_t k = 0; k < results; ++k) {
    if (fft.kind == FftKind::kComplexToReal) {
      static_cast<T*>(out)[k] = static_cast<T>(sums[k].real);
    } else {
      static_cast<Complex<T>*>(out)[k] = {static_cast<T>(sums[k].real),
                                          static_cast<T>(sums[k].imag)};
    }
  }
}

}  // namespace

absl::Status TransformRows(KernelContext&, const FftRows& fft, void* in,
                           void* out) {
  const int64_t half = fft.n / 2 + 1;
  return DispatchFloat(fft.real, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const int64_t in_row = fft.kind == FftKind::kRealToComplex   ? fft.n
                           : fft.kind == FftKind::kComplexToReal ? 2 * half
                                                                 : 2 * fft.n;
    const int64_t out_row = fft.kind == FftKind::kRealToComplex   ? 2 * half
                            : fft.kind == FftKind::kComplexToReal ? fft.n
                                                                  : 2 * fft.n;
    for (int64_t row = 0; row < fft.rows; ++row) {
      TransformRow<T>(fft, static_cast<T*>(in) + row * in_row,
                      static_cast<T*>(out) + row * out_row);
    }
    return absl::OkStatus();
  });
}
#endif

namespace {

// A tensor on its way: where its elements lie, in memory of its own or in the
// input's.
struct Points {
  TensorSpec spec;
  void* data = nullptr;

  TensorView view() const { return {data, &spec}; }
};

// The dimensions but `d` in order, then `d`, or the other way round.
Dims LastOf(const Dims& dims, int d) {
  Dims moved = dims;
  moved.erase(moved.begin() + d);
  moved.push_back(dims[d]);
  return moved;
}
Dims BackFromLast(const Dims& dims, int d) {
  Dims moved(dims.begin(), dims.end() - 1);
  moved.insert(moved.begin() + d, dims.back());
  return moved;
}

// A copy of `from` whose rows along `d` are contiguous, in scratch memory.
absl::Status CopyRows(KernelContext& context, const Points& from, int d,
                      Points* to) {
  TensorSpec moved = from.spec;
  moved.shape = LastOf(from.spec.shape, d);
  moved.strides = LastOf(from.spec.strides, d);
  to->spec = ContiguousSpec(moved.dtype, moved.shape);
  to->data = context.Scratch(to->spec.nbytes());
  if (to->data == nullptr) return NoScratch();
  return CudaCopy(context, {from.data, &moved}, to->view());
}

int64_t RowsOf(const Dims& shape) {
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < shape.size(); ++i) rows *= shape[i];
  return rows;
}

// Complex transforms over `dims` of *points, each into memory of its own.
absl::Status TransformDims(KernelContext& context, bool forward, DType real,
                           const std::vector<int>& dims, Points* points) {
  for (int d : dims) {
    Points rows;
    absl::Status s = CopyRows(context, *points, d, &rows);
    if (!s.ok()) return s;
    const FftRows fft = {forward ? FftKind::kForward : FftKind::kBackward, real,
                         rows.spec.shape.back(), RowsOf(rows.spec.shape)};
    s = TransformRows(context, fft, rows.data, rows.data);
    if (!s.ok()) return s;
    points->data = rows.data;
    points->spec.shape = BackFromLast(rows.spec.shape, d);
    points->spec.strides = BackFromLast(rows.spec.strides, d);
  }
  return absl::OkStatus();
}

// The transform between real numbers and half as many complex ones, along `d`
// of *points, which has `n` points where it is real.
absl::Status TransformHalf(KernelContext& context, FftKind kind, DType real,
                           int d, int64_t n, Points* points) {
  Points rows, result;
  absl::Status s = CopyRows(context, *points, d, &rows);
  if (!s.ok()) return s;
  const bool to_real = kind == FftKind::kComplexToReal;
  Dims shape = rows.spec.shape;
  shape.back() = to_real ? n : n / 2 + 1;
  result.spec = ContiguousSpec(
      to_real ? real : PromoteTypes(real, DType::kComplex64), shape);
  result.data = context.Scratch(result.spec.nbytes());
  if (result.data == nullptr) return NoScratch();
  s = TransformRows(context, {kind, real, n, RowsOf(shape)}, rows.data,
                    result.data);
  points->data = result.data;
  points->spec.dtype = result.spec.dtype;
  points->spec.shape = BackFromLast(result.spec.shape, d);
  points->spec.strides = BackFromLast(result.spec.strides, d);
  return s;
}

template <typename T>
absl::Status Multiply(KernelContext& context, T factor, int64_t n, T* data) {
  return ForEach(context, n,
                 [=] HOLDFAST_LAMBDA(int64_t i) { data[i] *= factor; });
}

// out = scale points.
absl::Status Finish(KernelContext& context, const Points& points, DType real,
                    double scale, const TensorView& out) {
  absl::Status s = CudaCopy(context, points.view(), out);
  if (!s.ok() || scale == 1.0) return s;
  const int64_t parts = out.spec->dtype == real ? 1 : 2;
  return DispatchFloat(real, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    return Multiply<T>(context, static_cast<T>(scale),
                       parts * out.spec->numel(), out.as<T>());
  });
}

Points PointsOf(const TensorView& view) { return {*view.spec, view.data}; }

}  // namespace

HOLDFAST_CUDA_KERNEL(fft_c2c) {
  const TensorView& out = outputs[0];
  if (out.spec->numel() == 0) return absl::OkStatus();
  const DType real = RealType(out.spec->dtype);
  Points points = PointsOf(inputs[0]);
  absl::Status s = TransformDims(context, attrs.Bool("forward"), real,
                                 FftDims(attrs, out.spec->rank()), &points);
  if (!s.ok()) return s;
  return Finish(context, points, real, attrs.Float("scale"), out);
}

HOLDFAST_CUDA_KERNEL(fft_r2c) {
  const TensorView& out = outputs[0];
  if (out.spec->numel() == 0) return absl::OkStatus();
  const DType real = RealType(out.spec->dtype);
  std::vector<int> dims = FftDims(attrs, out.spec->rank());
  const int last = dims.back();
  dims.pop_back();
  Points points = PointsOf(inputs[0]);
  absl::Status s = TransformHalf(context, FftKind::kRealToComplex, real, last,
                                 inputs[0].spec->shape[last], &points);
  if (s.ok()) s = TransformDims(context, true, real, dims, &points);
  if (!s.ok()) return s;
  return Finish(context, points, real, attrs.Float("scale"), out);
}

HOLDFAST_CUDA_KERNEL(fft_c2r) {
  const TensorView& out = outputs[0];
  if (out.spec->numel() == 0) return absl::OkStatus();
  const DType real = out.spec->dtype;
  std::vector<int> dims = FftDims(attrs, out.spec->rank());
  const int last = dims.back();
  dims.pop_back();
  Points points = PointsOf(inputs[0]);
  absl::Status s = TransformDims(context, false, real, dims, &points);
  if (s.ok()) {
    s = TransformHalf(context, FftKind::kComplexToReal, real, last,
                      out.spec->shape[last], &points);
  }
  if (!s.ok()) return s;
  return Finish(context, points, real, attrs.Float("scale"), out);
}

}  // namespace holdfast::cuda
