// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Orthogonal factorisations: QR, symmetric eigenvalues, singular values.
#include <vector>

#include "absl/status/status.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/matrix_batch.h"
#include "kernels/cpu/tiled_lapack.h"
#include "kernels/dtype_dispatch.h"

namespace holdfast::cpu {
namespace {

// See CheckLapackTime.
constexpr double kEigh = 1.0e-9, kEigvalsh = 0.25e-9, kSvd = 2.5e-9,
                 kSvdvals = 1.2e-9, kQr = 0.13e-9;

double Cost(int64_t m, int64_t n) {
  return 4.0 * m * n * static_cast<double>(std::min(m, n));
}

// Eigenvalues of the n x n matrix at `a` to `w`; with jobz 'V' the rows of `a`
// become the eigenvectors.
template <typename T>
struct SymmetricSolver {
  SymmetricSolver(char job, char triangle, int64_t size)
      : jobz(job), uplo(triangle), n(static_cast<int>(size)) {
    T work_size = 0;
    lapack::syevd(jobz, uplo, n, nullptr, std::max(n, 1), nullptr, &work_size,
                  -1, &liwork, -1);
    lwork = WorkSize(work_size);
  }
  int64_t scratch() const {
    return lwork + (liwork * sizeof(int) + sizeof(T) - 1) / sizeof(T);
  }
  int Run(T* a, T* w, T* scratch) const {
    return lapack::syevd(jobz, uplo, n, a, n, w, scratch, lwork,
                         reinterpret_cast<int*>(scratch + lwork), liwork);
  }

  char jobz, uplo;
  int n, lwork = 0, liwork = 0;
};

// A = U S Vh of the m x n matrix in `a`, which is lost. LAPACK sees A^T = V S
// U^T, so that what it calls u is Vh as it lies, and what it calls vt is U.
template <typename T>
struct SingularSolver {
  SingularSolver(char job, int64_t m_, int64_t n_)
      : jobz(job),
        m(static_cast<int>(m_)),
        n(static_cast<int>(n_)),
        k(std::min(m, n)),
        ldvt(job == 'A' ? m : std::max(k, 1)) {
    T size = 0;
    int iwork = 0;
    lapack::gesdd(jobz, n, m, nullptr, std::max(n, 1), nullptr, nullptr,
                  std::max(n, 1), nullptr, ldvt, &size, -1, &iwork);
    lwork = WorkSize(size);
  }
  int64_t scratch() const {
    return lwork + (8 * int64_t{k} * sizeof(int) + sizeof(T) - 1) / sizeof(T);
  }
  int Run(T* a, T* u, T* s, T* vh, T* scratch) const {
    return lapack::gesdd(jobz, n, m, a, n, s, vh, n, u, ldvt, scratch, lwork,
                         reinterpret_cast<int*>(scratch + lwork));
  }

  char jobz;
  int m, n, k, ldvt, lwork = 0;
};

// Without vectors: U and Vh absent.
absl::Status Svd(KernelContext& context, absl::string_view name,
                 const TensorView& input, char job, const TensorView& u,
                 const TensorView& s, const TensorView& vh) {
  const TensorSpec& spec = *input.spec;
  const int64_t count = BatchSize(spec);
  const int64_t m = MatrixRows(spec), n = MatrixColumns(spec);
  const int64_t k = std::min(m, n);
  const int64_t u_size = u.present() ? m * MatrixColumns(*u.spec) : 0;
  const int64_t vh_size = vh.present() ? MatrixRows(*vh.spec) * n : 0;
  TensorSpec in_spec;
  TensorView in;
  absl::Status status =
      MakeContiguous(context, input, spec.dtype, &in_spec, &in);
  if (!status.ok()) return status;
  return DispatchFloat(spec.dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    if (k == 0) {  // any basis will do
      const auto identity = [count](T* out, int64_t size) {
        std::fill_n(out, count * size * size, T(0));
        for (int64_t i = 0; i < count * size; ++i) {
          out[i / size * size * size + i % size * (size + 1)] = T(1);
        }
      };
      if (u_size > 0) identity(u.as<T>(), m);
      if (vh_size > 0) identity(vh.as<T>(), n);
      return absl::OkStatus();
    }
    if (absl::Status t =
            CheckLapackTime<T>(name, m, n, job == 'N' ? kSvdvals : kSvd);
        !t.ok()) {
      return t;
    }
    const SingularSolver<T> solver(job, m, n);
    return ForEachMatrix<T>(
        context, count, Cost(m, n) * 3, m * n + solver.scratch(),
        [&](int64_t i, T* a) -> absl::Status {
          std::copy_n(in.as<T>() + i * m * n, m * n, a);
          if (!AllFinite(a, m * n)) return MatrixNotFinite(name, count, i);
          const int info = solver.Run(
              a, u_size > 0 ? u.as<T>() + i * u_size : nullptr,
              s.as<T>() + i * k,
              vh_size > 0 ? vh.as<T>() + i * vh_size : nullptr, a + m * n);
          return info == 0 ? absl::OkStatus()
                           : NotConverged(name, count, i, info);
        });
  });
}

}  // namespace

HOLDFAST_CPU_KERNEL(linalg_qr) {
  const TensorView& q = outputs[0];
  const TensorView& r = outputs[1];
  const int64_t count = BatchSize(*q.spec);
  const int64_t m = MatrixRows(*q.spec), columns = MatrixColumns(*q.spec);
  const int64_t n = MatrixColumns(*r.spec);
  if (m == 0) return absl::OkStatus();
  TensorSpec spec;
  TensorView in;
  absl::Status s =
      MakeContiguous(context, inputs[0], q.spec->dtype, &spec, &in);
  if (!s.ok()) return s;
  return DispatchFloat(q.spec->dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    const tiled::Qr<T> qr(m, n, columns);
    if (qr.small()) {  // or else it looks between tiles
      absl::Status t = CheckLapackTime<T>("qr", m, std::max(n, columns), kQr);
      if (!t.ok()) return t;
    }
    return ForEachMatrix<T>(
        context, count, Cost(m, std::max(n, columns)),
        m * (n + columns) + qr.scratch(), [&](int64_t i, T* a) -> absl::Status {
          T* orthogonal = a + m * n;
          TransposeMatrix(in.as<T>() + i * m * n, m, n, a);
          qr.Run(context, a, orthogonal, orthogonal + m * columns);
          T* upper = r.as<T>() + i * columns * n;
          for (int64_t row = 0; row < columns; ++row) {
            for (int64_t j = 0; j < n; ++j) {
              upper[row * n + j] = row <= j ? a[j * m + row] : T(0);
            }
          }
          TransposeMatrix(orthogonal, columns, m, q.as<T>() + i * m * columns);
          return absl::OkStatus();
        });
  });
}

HOLDFAST_CPU_KERNEL(linalg_eigh) {
  const TensorView& w = outputs[0];
  const TensorView& v = outputs[1];
  CopyStrided(context, inputs[0], v);
  const int64_t count = BatchSize(*v.spec), n = MatrixRows(*v.spec);
  if (n == 0) return absl::OkStatus();
  return DispatchFloat(v.spec->dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    absl::Status t = CheckLapackTime<T>("eigh", n, n, kEigh);
    if (!t.ok()) return t;
    const SymmetricSolver<T> solver('V', attrs.Bool("upper") ? 'L' : 'U', n);
    return ForEachMatrix<T>(context, count, Cost(n, n) * 2, solver.scratch(),
                            [&](int64_t i, T* scratch) -> absl::Status {
                              T* a = v.as<T>() + i * n * n;
                              if (!AllFinite(a, n * n))
                                return MatrixNotFinite("eigh", count, i);
                              const int info =
                                  solver.Run(a, w.as<T>() + i * n, scratch);
                              if (info != 0)
                                return NotConverged("eigh", count, i, info);
                              TransposeInPlace(a, n);
                              return absl::OkStatus();
                            });
  });
}

HOLDFAST_CPU_KERNEL(linalg_eigvalsh) {
  const TensorView& w = outputs[0];
  TensorSpec spec;
  TensorView in;
  absl::Status s =
      MakeContiguous(context, inputs[0], w.spec->dtype, &spec, &in);
  if (!s.ok()) return s;
  const int64_t count = BatchSize(*in.spec), n = MatrixRows(*in.spec);
  if (n == 0) return absl::OkStatus();
  return DispatchFloat(w.spec->dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    absl::Status t = CheckLapackTime<T>("eigvalsh", n, n, kEigvalsh);
    if (!t.ok()) return t;
    const SymmetricSolver<T> solver('N', attrs.Bool("upper") ? 'L' : 'U', n);
    return ForEachMatrix<T>(
        context, count, Cost(n, n), n * n + solver.scratch(),
        [&](int64_t i, T* a) -> absl::Status {
          std::copy_n(in.as<T>() + i * n * n, n * n, a);
          if (!AllFinite(a, n * n))
            return MatrixNotFinite("eigvalsh", count, i);
          const int info = solver.Run(a, w.as<T>() + i * n, a + n * n);
          return info == 0 ? absl::OkStatus()
                           : NotConverged("eigvalsh", count, i, info);
        });
  });
}

HOLDFAST_CPU_KERNEL(linalg_svd) {
  return Svd(context, "svd", inputs[0], attrs.Bool("full_matrices") ? 'A' : 'S',
             outputs[0], outputs[1], outputs[2]);
}

HOLDFAST_CPU_KERNEL(linalg_svdvals) {
  return Svd(context, "svdvals", inputs[0], 'N', {}, outputs[0], {});
}

// V diag(1/s) U^T, over the singular values that count.
HOLDFAST_CPU_KERNEL(linalg_pinv) {
  const TensorView& out = outputs[0];
  const double atol = attrs.Float("atol"), rtol = attrs.Float("rtol");
  const int64_t count = BatchSize(*out.spec);
  const int64_t n = MatrixRows(*out.spec), m = MatrixColumns(*out.spec);
  const int64_t k = std::min(m, n);
  if (k == 0) return absl::OkStatus();
  TensorSpec spec;
  TensorView in;
  absl::Status s =
      MakeContiguous(context, inputs[0], out.spec->dtype, &spec, &in);
  if (!s.ok()) return s;
  return DispatchFloat(out.spec->dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    absl::Status t = CheckLapackTime<T>("pinv", m, n, kSvd);
    if (!t.ok()) return t;
    const SingularSolver<T> solver('S', m, n);
    return ForEachMatrix<T>(
        context, count, Cost(m, n) * 4,
        m * n + m * k + k * n + k + solver.scratch(),
        [&](int64_t i, T* a) -> absl::Status {
          T* u = a + m * n;
          T* vh = u + m * k;
          T* values = vh + k * n;
          std::copy_n(in.as<T>() + i * m * n, m * n, a);
          if (!AllFinite(a, m * n)) return MatrixNotFinite("pinv", count, i);
          const int info = solver.Run(a, u, values, vh, values + k);
          if (info != 0) return NotConverged("pinv", count, i, info);
          const double least = std::max(atol, rtol * values[0]);
          for (int64_t r = 0; r < k; ++r) {
            const T scale = values[r] > least ? T(1) / values[r] : T(0);
            for (int64_t j = 0; j < n; ++j) vh[r * n + j] *= scale;
          }
          tiled::Gemm(context, 'T', 'T', m, n, k, T(1), u, k, vh, n, T(0),
                      out.as<T>() + i * m * n, m);
          return absl::OkStatus();
        });
  });
}

}  // namespace holdfast::cpu
