// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Orthogonal factorisations: QR, symmetric eigenvalues, singular values.
#include <algorithm>

#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/dense_solver.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/matrix_batch.h"
#include "kernels/cuda/run_products.h"

namespace holdfast::cuda {
namespace {

// Identity matrices.
template <typename T>
absl::Status FillIdentity(KernelContext& context, int64_t n, int64_t count,
                          T* out) {
  return ForEach(context, count * n * n, [=] HOLDFAST_LAMBDA(int64_t i) {
    out[i] = i / n % n == i % n ? T(1) : T(0);
  });
}

// r, `rows` x n, = the upper triangle of a, m x n, column by column.
template <typename T>
absl::Status CopyUpper(KernelContext& context, int64_t m, int64_t n,
                       int64_t rows, int64_t count, const T* a, T* r) {
  return ForEach(context, count * rows * n, [=] HOLDFAST_LAMBDA(int64_t i) {
    const int64_t matrix = i / (rows * n), row = i / n % rows, column = i % n;
    r[i] = row <= column ? a[(matrix * n + column) * m + row] : T(0);
  });
}

// q, m x columns, = the first `used` columns of a, m x n; both column by
// column. The others do not matter.
template <typename T>
absl::Status CopyColumns(KernelContext& context, int64_t m, int64_t n,
                         int64_t columns, int64_t used, int64_t count,
                         const T* a, T* q) {
  return ForEach(context, count * m * used, [=] HOLDFAST_LAMBDA(int64_t i) {
    const int64_t matrix = i / (m * used), at = i % (m * used);
    q[matrix * m * columns + at] = a[matrix * m * n + at];
  });
}

template <typename T>
absl::Status Qr(KernelContext& context, const TensorView& input,
                const TensorView& q, const TensorView& r) {
  const int64_t count = BatchSize(*q.spec), m = MatrixRows(*q.spec);
  const int64_t columns = MatrixColumns(*q.spec), n = MatrixColumns(*r.spec);
  const int64_t k = std::min(m, n);
  if (k == 0) return FillIdentity<T>(context, columns, count, q.as<T>());
  absl::StatusOr<void*> copy = CopyColumnMajor(context, input);
  if (!copy.ok()) return copy.status();
  T* const a = static_cast<T*>(*copy);
  T* const tau = ScratchOf<T>(context, count * k);
  T* const orthogonal = ScratchOf<T>(context, count * m * columns);
  if (tau == nullptr || orthogonal == nullptr) return NoScratch();
  const DType dtype = q.spec->dtype;
  absl::Status s = FactorQr(context, dtype, m, n, count, a, tau);
  if (s.ok()) {
    s = CopyUpper<T>(context, m, n, columns, count, a, r.as<T>());
  }
  if (s.ok()) {
    s = CopyColumns<T>(context, m, n, columns, k, count, a, orthogonal);
  }
  if (s.ok()) s = FormQ(context, dtype, m, columns, k, count, orthogonal, tau);
  return s.ok() ? CopyFromColumns(context, orthogonal, q) : s;
}

// A symmetric matrix lies as it is seen, its triangles exchanged.
absl::Status Eigh(KernelContext& context, absl::string_view name,
                  const TensorView& input, bool upper, const TensorView& w,
                  const TensorView& v) {
  if (w.spec->numel() == 0) return absl::OkStatus();
  const DType dtype = w.spec->dtype;
  const int64_t count = BatchSize(*input.spec), n = MatrixRows(*input.spec);
  int32_t* const info = ScratchOf<int32_t>(context, count);
  if (info == nullptr) return NoScratch();
  absl::StatusOr<void*> a = CopyRowMajor(context, input);
  if (!a.ok()) return a.status();
  absl::Status s = CheckFinite(context, name, dtype, count, n * n, *a);
  if (s.ok()) {
    s = SymmetricEigen(context, dtype, v.present(), !upper, n, count, *a,
                       w.data, info);
  }
  if (s.ok()) s = CheckConverged(context, name, count, info);
  return s.ok() && v.present() ? CopyFromColumns(context, *a, v) : s;
}

// A = U S Vh of m x n matrices. Those with m <= n are seen transposed, as they
// lie, A^T = V S U^T; the others are copied column by column. Either way there
// are as many rows as columns or more, and the narrower factor is square.
struct Singular {
  SingularShape shape;
  int64_t count = 0;
  bool wide = false;       // m <= n
  void* tall = nullptr;    // shape.m x columns(): V if wide, U if not
  void* square = nullptr;  // shape.n x shape.n: the other one
  void* values = nullptr;
};

// REQUIRES: input.spec->numel() > 0. `values`: where they go, or null. Waits.
absl::StatusOr<Singular> Decompose(KernelContext& context,
                                   absl::string_view name,
                                   const TensorView& input, bool vectors,
                                   bool full, void* values) {
  const DType dtype = input.spec->dtype;
  const int64_t m = MatrixRows(*input.spec), n = MatrixColumns(*input.spec);
  const int64_t item = static_cast<int64_t>(ItemSize(dtype));
  Singular of;
  of.wide = m <= n;
  of.shape = {std::max(m, n), std::min(m, n), vectors, full};
  of.count = BatchSize(*input.spec);
  absl::StatusOr<void*> a =
      of.wide ? CopyRowMajor(context, input) : CopyColumnMajor(context, input);
  if (!a.ok()) return a.status();
  const int64_t rows = of.shape.m, columns = of.shape.n;
  of.values =
      values != nullptr ? values : context.Scratch(of.count * columns * item);
  if (vectors) {
    of.tall = context.Scratch(of.count * rows * of.shape.columns() * item);
    of.square = context.Scratch(of.count * columns * columns * item);
    if (of.tall == nullptr || of.square == nullptr) return NoScratch();
  }
  int32_t* const info = ScratchOf<int32_t>(context, of.count);
  if (of.values == nullptr || info == nullptr) return NoScratch();
  absl::Status s = CheckFinite(context, name, dtype, of.count, m * n, *a);
  if (s.ok()) {
    s = SingularValues(context, dtype, of.shape, of.count, *a, of.values,
                       of.tall, of.square, info);
  }
  if (s.ok()) s = CheckConverged(context, name, of.count, info);
  if (!s.ok()) return s;
  return of;
}

// out = `from`, column by column, or as it lies if `out` is its transpose.
absl::Status Deliver(KernelContext& context, void* from, bool as_it_lies,
                     const TensorView& out) {
  if (!as_it_lies) return CopyFromColumns(context, from, out);
  return Cuda(context).CopyOnDevice(out.data, from, out.spec->nbytes());
}

// Column j of v, n x n column by column, divided by values[j], or zero where
// that is too small.
template <typename T>
absl::Status ScaleInverse(KernelContext& context, double atol, double rtol,
                          int64_t n, int64_t count, const T* values, T* v) {
  return ForEach(context, count * n * n, [=] HOLDFAST_LAMBDA(int64_t i) {
    const T* const own = values + i / (n * n) * n;
    const double relative = rtol * own[0];
    const double least = atol > relative ? atol : relative;
    const T value = own[i / n % n];
    v[i] *= value > least ? T(1) / value : T(0);
  });
}

// Strides of `count` m x n matrices, column by column, or of their transposes.
TensorSpec ColumnsSpec(DType dtype, int64_t count, int64_t m, int64_t n,
                       bool transposed) {
  const TensorSpec spec = ColumnMajorSpec(dtype, {count, m, n});
  return transposed ? Transposed(spec) : spec;
}

// X diag(1 / s) Y^T, n x m, where the pseudoinverse is V diag(1 / s) U^T: X and
// Y are the tall factor and the square one if the matrix is wide, and the other
// way round if not.
absl::Status PseudoInverse(KernelContext& context, const Singular& of,
                           double atol, double rtol, const TensorView& out) {
  const DType dtype = out.spec->dtype;
  const int64_t rows = of.shape.m, k = of.shape.n;
  absl::Status s = DispatchFloat(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return ScaleInverse<T>(context, atol, rtol, k, of.count,
                           static_cast<const T*>(of.values),
                           static_cast<T*>(of.square));
  });
  if (!s.ok()) return s;
  const TensorSpec tall = ColumnsSpec(dtype, of.count, rows, k, !of.wide);
  const TensorSpec square = ColumnsSpec(dtype, of.count, k, k, of.wide);
  const TensorView tall_view = {of.tall, &tall};
  const TensorView square_view = {of.square, &square};
  const TensorView& x = of.wide ? tall_view : square_view;
  const TensorView& y = of.wide ? square_view : tall_view;
  const TensorSpec result = ContiguousSpec(
      dtype, {of.count, MatrixRows(*out.spec), MatrixColumns(*out.spec)});
  return RunProducts(context, MatmulProducts(*x.spec, *y.spec, result), x, y,
                     /*add=*/false, {out.data, &result});
}

}  // namespace

HOLDFAST_CUDA_KERNEL(linalg_qr) {
  if (outputs[0].spec->numel() == 0) return absl::OkStatus();
  return DispatchFloat(outputs[0].spec->dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return Qr<T>(context, inputs[0], outputs[0], outputs[1]);
  });
}

HOLDFAST_CUDA_KERNEL(linalg_eigh) {
  return Eigh(context, "eigh", inputs[0], attrs.Bool("upper"), outputs[0],
              outputs[1]);
}

HOLDFAST_CUDA_KERNEL(linalg_eigvalsh) {
  return Eigh(context, "eigvalsh", inputs[0], attrs.Bool("upper"), outputs[0],
              {});
}

HOLDFAST_CUDA_KERNEL(linalg_svd) {
  const TensorView& u = outputs[0];
  const TensorView& vh = outputs[2];
  if (inputs[0].spec->numel() == 0) {  // any basis will do
    return DispatchFloat(u.spec->dtype, [&](auto tag) {
      using T = typename decltype(tag)::type;
      absl::Status s;
      for (const TensorView& out : {u, vh}) {
        if (!s.ok() || out.spec->numel() == 0) continue;
        s = FillIdentity<T>(context, MatrixRows(*out.spec),
                            BatchSize(*out.spec), out.as<T>());
      }
      return s;
    });
  }
  absl::StatusOr<Singular> of =
      Decompose(context, "svd", inputs[0], /*vectors=*/true,
                attrs.Bool("full_matrices"), outputs[1].data);
  if (!of.ok()) return of.status();
  absl::Status s = Deliver(context, of->wide ? of->square : of->tall,
                           /*as_it_lies=*/false, u);
  if (!s.ok()) return s;
  return Deliver(context, of->wide ? of->tall : of->square,
                 /*as_it_lies=*/true, vh);
}

HOLDFAST_CUDA_KERNEL(linalg_svdvals) {
  if (inputs[0].spec->numel() == 0) return absl::OkStatus();
  return Decompose(context, "svdvals", inputs[0], /*vectors=*/false,
                   /*full=*/false, outputs[0].data)
      .status();
}

HOLDFAST_CUDA_KERNEL(linalg_pinv) {
  if (inputs[0].spec->numel() == 0) return absl::OkStatus();
  absl::StatusOr<Singular> of =
      Decompose(context, "pinv", inputs[0], /*vectors=*/true, /*full=*/false,
                /*values=*/nullptr);
  if (!of.ok()) return of.status();
  return PseudoInverse(context, *of, attrs.Float("atol"), attrs.Float("rtol"),
                       outputs[0]);
}

}  // namespace holdfast::cuda
