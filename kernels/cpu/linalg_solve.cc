// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Linear systems and the factorisations behind them: Cholesky, LU, triangular.
// A contiguous tensor is the transpose of what LAPACK sees, and most routines
// have a mirrored form that takes it as it lies.
#include <utility>

#include "absl/status/status.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/matrix_batch.h"
#include "kernels/cpu/strided_cursor.h"
#include "kernels/cpu/tiled_lapack.h"
#include "kernels/dtype_dispatch.h"

namespace holdfast::cpu {
namespace {

double Cubed(int64_t n) { return static_cast<double>(n) * n * n; }

// Strides of `spec`'s batch dimensions as they follow a batch of `rank`
// dimensions that it broadcasts to.
Dims BatchStrides(const TensorSpec& spec, int rank) {
  Dims strides(rank, 0);
  const int own = spec.rank() - 2;
  for (int d = 0; d < own; ++d) {
    if (spec.shape[d] != 1) strides[rank - own + d] = spec.strides[d];
  }
  return strides;
}

int64_t OffsetOf(absl::Span<const int64_t> batch, const Dims& strides,
                 int64_t i) {
  return StridedCursor<1>(batch, {strides.data()}, i)[0];
}

// How a matrix of any strides is given to BLAS: with 'N' if its rows are
// adjacent elements (seen transposed), with 'T' if its columns are.
struct Layout {
  char trans = 'N';
  int ld = 1;
};
bool FindLayout(const TensorSpec& a, Layout* layout) {
  const int64_t m = MatrixRows(a), n = MatrixColumns(a);
  const int64_t row = a.strides[a.rank() - 2], col = a.strides[a.rank() - 1];
  constexpr int64_t kMax = std::numeric_limits<int>::max();
  if (col == 1 && row >= std::max<int64_t>(n, 1) && row <= kMax) {
    *layout = {'N', static_cast<int>(row)};
    return true;
  }
  if (row == 1 && col >= std::max<int64_t>(m, 1) && col <= kMax) {
    *layout = {'T', static_cast<int>(col)};
    return true;
  }
  return false;
}

char Flipped(char uplo) { return uplo == 'U' ? 'L' : 'U'; }

}  // namespace

HOLDFAST_CPU_KERNEL(linalg_cholesky) {
  const bool upper = attrs.Bool("upper");
  const TensorView& out = outputs[0];
  CopyStrided(context, inputs[0], out);
  const int64_t count = BatchSize(*out.spec), n = MatrixRows(*out.spec);
  return DispatchFloat(out.spec->dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    const auto factor = [&](int64_t i, T*) -> absl::Status {
      T* a = out.as<T>() + i * n * n;
      if (n == 0) return absl::OkStatus();
      const int info = tiled::Potrf(context, upper ? 'L' : 'U', n, a, n);
      if (info > 0) {
        return NotPositiveDefinite(count, i, info);
      }
      for (int64_t r = 0; r < n; ++r) {
        T* row = a + r * n;
        if (upper) {
          std::fill(row, row + r, T(0));
        } else {
          std::fill(row + r + 1, row + n, T(0));
        }
      }
      return absl::OkStatus();
    };
    return ForEachMatrix<T>(context, count, Cubed(n) / 3, 0, factor);
  });
}

HOLDFAST_CPU_KERNEL(linalg_lu_factor) {
  const TensorView& out = outputs[0];
  int32_t* pivots = outputs[1].as<int32_t>();
  const int64_t count = BatchSize(*out.spec);
  const int64_t m = MatrixRows(*out.spec), n = MatrixColumns(*out.spec);
  const int64_t k = std::min(m, n);
  TensorSpec spec;
  TensorView in;
  absl::Status s =
      MakeContiguous(context, inputs[0], out.spec->dtype, &spec, &in);
  if (!s.ok() || k == 0) return s;
  return DispatchField(out.spec->dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    const auto factor = [&](int64_t i, T* a) -> absl::Status {
      TransposeMatrix(in.as<T>() + i * m * n, m, n, a);
      tiled::Getrf(context, m, n, a, m, pivots + i * k);
      TransposeMatrix(a, n, m, out.as<T>() + i * m * n);
      return absl::OkStatus();
    };
    return ForEachMatrix<T>(context, count, static_cast<double>(m) * n * k,
                            m * n, factor);
  });
}

HOLDFAST_CPU_KERNEL(linalg_lu_permutation) {
  const TensorView& out = outputs[0];
  const int64_t rows = out.spec->shape.back();
  TensorSpec spec;
  TensorView pivots;
  absl::Status s =
      MakeContiguous(context, inputs[0], DType::kInt32, &spec, &pivots);
  if (!s.ok()) return s;
  const int64_t k = inputs[0].spec->shape.back();
  for (int64_t i = 0; i < BatchSize(*out.spec, 1); ++i) {
    int64_t* order = out.as<int64_t>() + i * rows;
    for (int64_t r = 0; r < rows; ++r) order[r] = r;
    for (int64_t r = 0; r < k; ++r) {
      const int64_t pivot = pivots.as<int32_t>()[i * k + r];
      if (pivot < 1 || pivot > rows) {
        return BadPivot(rows, pivot);
      }
      std::swap(order[r], order[pivot - 1]);
    }
  }
  return absl::OkStatus();
}

// With A as it lies, LAPACK factors its transpose: P A^T = L U. Then A = U^T
// L^T P, and X^T = B^T U^-1 L^-1 P on the transposes of B and X, which is how
// they lie.
HOLDFAST_CPU_KERNEL(linalg_solve) {
  const TensorView& out = outputs[0];
  CopyStrided(context, inputs[1], out);
  const int64_t count = BatchSize(*out.spec);
  const int64_t n = MatrixRows(*out.spec), k = MatrixColumns(*out.spec);
  if (n == 0 || count == 0) return absl::OkStatus();
  TensorSpec spec;
  TensorView a;
  absl::Status s =
      MakeContiguous(context, inputs[0], out.spec->dtype, &spec, &a);
  if (!s.ok()) return s;
  const absl::Span<const int64_t> batch =
      absl::MakeConstSpan(out.spec->shape).first(out.spec->rank() - 2);
  const Dims strides = BatchStrides(*a.spec, batch.size());
  return DispatchField(out.spec->dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    const auto solve = [&](int64_t i, T* lu) -> absl::Status {
      std::copy_n(a.as<T>() + OffsetOf(batch, strides, i), n * n, lu);
      int* pivots = reinterpret_cast<int*>(lu + n * n);
      if (tiled::Getrf(context, n, n, lu, n, pivots) > 0) {
        return SingularMatrix(count, i);
      }
      T* x = out.as<T>() + i * n * k;
      if (k == 0) return absl::OkStatus();
      tiled::Trsm(context, 'R', 'U', 'N', 'N', k, n, lu, n, x, k);
      tiled::Trsm(context, 'R', 'L', 'N', 'U', k, n, lu, n, x, k);
      for (int64_t r = n - 1; r >= 0; --r) {
        const int64_t other = pivots[r] - 1;
        if (other != r)
          std::swap_ranges(x + r * k, x + r * k + k, x + other * k);
      }
      return absl::OkStatus();
    };
    return ForEachMatrix<T>(context, count,
                            Cubed(n) + static_cast<double>(n) * n * k,
                            n * n + n, solve);
  });
}

HOLDFAST_CPU_KERNEL(linalg_solve_triangular) {
  const TensorView& out = outputs[0];
  CopyStrided(context, inputs[1], out);
  const int64_t count = BatchSize(*out.spec);
  const int64_t m = MatrixRows(*out.spec), k = MatrixColumns(*out.spec);
  if (m == 0 || k == 0 || count == 0) return absl::OkStatus();
  TensorSpec spec;
  TensorView a = inputs[0];
  Layout layout;
  if (!FindLayout(*a.spec, &layout)) {
    absl::Status s =
        MakeContiguous(context, inputs[0], out.spec->dtype, &spec, &a);
    if (!s.ok()) return s;
    layout = {'N', static_cast<int>(MatrixColumns(*a.spec))};
  }
  const absl::Span<const int64_t> batch =
      absl::MakeConstSpan(out.spec->shape).first(out.spec->rank() - 2);
  const Dims strides = BatchStrides(*a.spec, batch.size());
  // BLAS sees X transposed, so that the sides are exchanged, and A transposed
  // ('N', its triangles exchanged) or as it is ('T').
  const char side = attrs.Bool("left") ? 'R' : 'L';
  const char own = attrs.Bool("upper") ? 'U' : 'L';
  const char uplo = layout.trans == 'N' ? Flipped(own) : own;
  const char diag = attrs.Bool("unitriangular") ? 'U' : 'N';
  const int64_t n = MatrixRows(*a.spec);
  return DispatchField(out.spec->dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    const auto solve = [&](int64_t i, T*) -> absl::Status {
      tiled::Trsm(context, side, uplo, layout.trans, diag, k, m,
                  a.as<T>() + OffsetOf(batch, strides, i), layout.ld,
                  out.as<T>() + i * m * k, k);
      return absl::OkStatus();
    };
    return ForEachMatrix<T>(context, count, static_cast<double>(m) * k * n, 0,
                            solve);
  });
}

}  // namespace holdfast::cpu
