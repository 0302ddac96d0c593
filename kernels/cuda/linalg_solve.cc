// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Linear systems and the factorisations behind them: Cholesky, LU, triangular.
// A contiguous tensor is the transpose of what dense_solver.h sees, and most
// routines have a mirrored form that takes it as it lies.
#include "kernels/cuda/linalg_solve.h"

#include <algorithm>
#include <vector>

#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/dense_solver.h"
#include "kernels/cuda/elements.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/matrix_batch.h"
#include "kernels/cuda/offsets.h"
#include "kernels/products.h"
#include "ops/complex.h"

namespace holdfast::cuda {
namespace {

absl::Span<const int64_t> BatchOf(const TensorSpec& spec) {
  return absl::MakeConstSpan(spec.shape).first(spec.rank() - 2);
}

// From a place in the batch `of` to elements of `spec`, whose own batch
// broadcasts to it.
Offsets<1> MatrixOffsets(const TensorSpec& spec, const TensorSpec& of) {
  TensorSpec batch = spec;
  batch.shape.resize(spec.rank() - 2);
  batch.strides.resize(spec.rank() - 2);
  const Dims strides = BroadcastStrides(batch, BatchOf(of));
  return MakeOffsets<1>(BatchOf(of), {strides});
}

// Where the matrices of `a` are that belong to each of `of`'s, on the host.
std::vector<const void*> MatrixPlaces(const TensorView& a,
                                      const TensorSpec& of) {
  const Offsets<1> offsets = MatrixOffsets(*a.spec, of);
  const int64_t item = static_cast<int64_t>(ItemSize(a.spec->dtype));
  std::vector<const void*> places(BatchSize(of));
  for (size_t i = 0; i < places.size(); ++i) {
    int64_t at;
    offsets.At(static_cast<int64_t>(i), &at);
    places[i] = a.as<char>() + at * item;
  }
  return places;
}

// An error for the first matrix that is not positive definite. Zeros the other
// triangle.
template <typename T>
absl::Status FinishCholesky(KernelContext& context, bool upper, int64_t n,
                            int64_t count, const int32_t* info, T* a) {
  absl::StatusOr<int64_t> fault = FirstFault(
      context, count * n,
      [=] HOLDFAST_LAMBDA(int64_t i) { return info[i / n] == i % n + 1; });
  if (!fault.ok()) return fault.status();
  if (*fault >= 0) {
    return NotPositiveDefinite(count, *fault / n, *fault % n + 1);
  }
  return ForEach(context, count * n * n, [=] HOLDFAST_LAMBDA(int64_t i) {
    const int64_t row = i / n % n, column = i % n;
    if (upper ? column < row : column > row) a[i] = T(0);
  });
}

// order[i] = the row of the matrix that the exchanges bring to row i.
absl::Status Permutations(KernelContext& context, int64_t rows, int64_t k,
                          int64_t count, const int32_t* pivots,
                          int64_t* order) {
  absl::Status s =
      ForEach(context, count * rows,
              [=] HOLDFAST_LAMBDA(int64_t i) { order[i] = i % rows; });
  if (!s.ok()) return s;
  return ForEach(context, count, [=] HOLDFAST_LAMBDA(int64_t i) {
    int64_t* const own = order + i * rows;
    for (int64_t r = 0; r < k; ++r) {
      const int64_t other = pivots[i * k + r] - 1;
      const int64_t row = own[r];
      own[r] = own[other];
      own[other] = row;
    }
  });
}

// Row order[r] of out = row r of x. `order` has n rows for each matrix that was
// factored, which `factored` leads to.
template <typename T>
absl::Status ScatterRows(KernelContext& context, const Offsets<1>& factored,
                         int64_t n, int64_t k, int64_t count,
                         const int64_t* order, const T* x, T* out) {
  return ForEach(context, count * n * k, [=] HOLDFAST_LAMBDA(int64_t i) {
    const int64_t matrix = i / (n * k), row = i / k % n;
    int64_t own;
    factored.At(matrix, &own);
    out[(matrix * n + order[own * n + row]) * k + i % k] = x[i];
  });
}

// The first of the batch `of` whose matrix is singular, as `info` has it.
absl::Status CheckRegular(KernelContext& context, const Offsets<1>& factored,
                          int64_t own, int64_t count, const int32_t* info) {
  absl::StatusOr<std::vector<int32_t>> read = ReadInfo(context, own, info);
  if (!read.ok()) return read.status();
  for (int64_t i = 0; i < count; ++i) {
    int64_t at;
    factored.At(i, &at);
    if ((*read)[at] > 0) return SingularMatrix(count, i);
  }
  return absl::OkStatus();
}

// Numbers of `a`'s matrices, as a tensor of their batch would have them.
Offsets<1> FactoredOf(const TensorSpec& a, const TensorSpec& of) {
  Dims shape(a.shape.begin(), a.shape.end() - 2);
  shape.push_back(1);
  shape.push_back(1);
  return MatrixOffsets(ContiguousSpec(a.dtype, shape), of);
}

}  // namespace

// With A as it lies, what is factored is its transpose: P A^T = L U. Then A =
// U^T L^T P, and X^T = B^T U^-1 L^-1 P on the transposes of B and X, which is
// how they lie.
absl::Status SolveSystems(KernelContext& context, const TensorView& a,
                          const TensorView& b, bool checked,
                          const TensorView& out) {
  const DType dtype = a.spec->dtype;
  const int64_t own = BatchSize(*a.spec), count = BatchSize(*b.spec);
  const int64_t n = MatrixRows(*b.spec), k = MatrixColumns(*b.spec);
  int32_t* const pivots = ScratchOf<int32_t>(context, own * (n + 1));
  int64_t* const order = ScratchOf<int64_t>(context, own * n);
  if (pivots == nullptr || order == nullptr) return NoScratch();
  int32_t* const info = pivots + own * n;
  absl::Status s = FactorLu(context, dtype, n, n, own, a.data, pivots, info);
  if (!s.ok()) return s;
  const Offsets<1> factored = FactoredOf(*a.spec, *b.spec);
  if (checked) s = CheckRegular(context, factored, own, count, info);
  if (!s.ok() || k == 0) return s;
  const std::vector<const void*> places = MatrixPlaces(a, *b.spec);
  TriangularSystem system;
  system.right = true;
  system.upper = true;
  system.m = k;
  system.n = n;
  system.lda = n;
  s = SolveTriangular(context, dtype, system, places, b.data);
  if (!s.ok()) return s;
  system.upper = false;
  system.unit = true;
  s = SolveTriangular(context, dtype, system, places, b.data);
  if (s.ok()) s = Permutations(context, n, n, own, pivots, order);
  if (!s.ok()) return s;
  return DispatchField(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return ScatterRows<T>(context, factored, n, k, count, order, b.as<T>(),
                          out.as<T>());
  });
}

HOLDFAST_CUDA_KERNEL(linalg_cholesky) {
  const bool upper = attrs.Bool("upper");
  const TensorView& out = outputs[0];
  if (out.spec->numel() == 0) return absl::OkStatus();
  const int64_t count = BatchSize(*out.spec), n = MatrixRows(*out.spec);
  int32_t* const info = ScratchOf<int32_t>(context, count);
  if (info == nullptr) return NoScratch();
  absl::Status s = CudaCopy(context, inputs[0], out);
  if (s.ok()) {
    s = FactorCholesky(context, out.spec->dtype, !upper, n, count, out.data,
                       info);
  }
  if (!s.ok()) return s;
  return DispatchFloat(out.spec->dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    return FinishCholesky<T>(context, upper, n, count, info, out.as<T>());
  });
}

HOLDFAST_CUDA_KERNEL(linalg_lu_factor) {
  const TensorView& out = outputs[0];
  if (out.spec->numel() == 0) return absl::OkStatus();
  const int64_t count = BatchSize(*out.spec);
  int32_t* const info = ScratchOf<int32_t>(context, count);
  if (info == nullptr) return NoScratch();
  absl::StatusOr<void*> a = CopyColumnMajor(context, inputs[0]);
  if (!a.ok()) return a.status();
  absl::Status s = FactorLu(context, out.spec->dtype, MatrixRows(*out.spec),
                            MatrixColumns(*out.spec), count, *a,
                            outputs[1].as<int32_t>(), info);
  return s.ok() ? CopyFromColumns(context, *a, out) : s;
}

HOLDFAST_CUDA_KERNEL(linalg_lu_permutation) {
  const TensorView& out = outputs[0];
  const int64_t rows = out.spec->shape.back();
  const int64_t k = inputs[0].spec->shape.back();
  if (out.spec->numel() == 0) return absl::OkStatus();
  TensorSpec spec;
  TensorView in;
  absl::Status s =
      MakeContiguous(context, inputs[0], DType::kInt32, &spec, &in);
  if (!s.ok()) return s;
  const int32_t* const pivots = in.as<int32_t>();
  absl::StatusOr<int64_t> fault =
      FirstFault(context, in.spec->numel(), [=] HOLDFAST_LAMBDA(int64_t i) {
        return pivots[i] < 1 || pivots[i] > rows;
      });
  if (!fault.ok()) return fault.status();
  if (*fault >= 0) {
    absl::StatusOr<int32_t> pivot = ReadElement(context, pivots + *fault);
    return pivot.ok() ? BadPivot(rows, *pivot) : pivot.status();
  }
  return Permutations(context, rows, k, BatchSize(*out.spec, 1), pivots,
                      out.as<int64_t>());
}

HOLDFAST_CUDA_KERNEL(linalg_solve) {
  const TensorView& out = outputs[0];
  const int64_t count = BatchSize(*out.spec), n = MatrixRows(*out.spec);
  if (n == 0 || count == 0) return absl::OkStatus();
  const TensorSpec a_spec =
      ContiguousSpec(out.spec->dtype, inputs[0].spec->shape);
  const TensorSpec b_spec = ContiguousSpec(out.spec->dtype, out.spec->shape);
  absl::StatusOr<void*> a = CopyMatrices(context, inputs[0], a_spec);
  if (!a.ok()) return a.status();
  absl::StatusOr<void*> b = CopyMatrices(context, inputs[1], b_spec);
  if (!b.ok()) return b.status();
  return SolveSystems(context, {*a, &a_spec}, {*b, &b_spec}, /*checked=*/true,
                      out);
}

HOLDFAST_CUDA_KERNEL(linalg_solve_triangular) {
  const TensorView& out = outputs[0];
  if (out.spec->numel() == 0) return absl::OkStatus();
  absl::Status s = CudaCopy(context, inputs[1], out);
  if (!s.ok()) return s;
  TensorSpec spec;
  TensorView a = inputs[0];
  BlasLayout layout;
  const auto lies = [&] {
    const int rank = a.spec->rank();
    return FindBlasLayout(MatrixRows(*a.spec), MatrixColumns(*a.spec),
                          a.spec->strides[rank - 2], a.spec->strides[rank - 1],
                          &layout);
  };
  if (!lies()) {
    s = MakeContiguous(context, inputs[0], out.spec->dtype, &spec, &a);
    if (!s.ok()) return s;
    lies();
  }
  // The transposes of B and X are seen, so that the sides are exchanged, and A
  // transposed, its triangles exchanged, or as it is.
  TriangularSystem system;
  system.right = attrs.Bool("left");
  system.upper = attrs.Bool("upper") == layout.transposed;
  system.transposed = layout.transposed;
  system.unit = attrs.Bool("unitriangular");
  system.m = MatrixColumns(*out.spec);
  system.n = MatrixRows(*out.spec);
  system.lda = layout.ld;
  return SolveTriangular(context, out.spec->dtype, system,
                         MatrixPlaces(a, *out.spec), out.data);
}

}  // namespace holdfast::cuda
