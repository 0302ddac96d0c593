// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// dense_solver.h by LAPACK, matrix by matrix: for tests without a GPU.
#include <algorithm>
#include <vector>

#include "kernels/cuda/dense_solver.h"
#include "kernels/dtype_dispatch.h"
#include "kernels/lapack.h"
#include "ops/complex.h"

namespace holdfast::cuda {
namespace {

using lapack::OneThread;

// LAPACK's answer to a query.
template <typename T>
int Size(T answer) {
  return static_cast<int>(answer) + 1;
}

template <typename T>
T* At(void* matrices, int64_t i, int64_t size) {
  return static_cast<T*>(matrices) + i * size;
}

}  // namespace

absl::Status FactorCholesky(KernelContext&, DType dtype, bool upper, int64_t n,
                            int64_t count, void* a, int32_t* info) {
  const OneThread one;
  return DispatchFloat(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < count; ++i) {
      info[i] = lapack::potrf(upper ? 'U' : 'L', n, At<T>(a, i, n * n), n);
    }
    return absl::OkStatus();
  });
}

absl::Status FactorLu(KernelContext&, DType dtype, int64_t m, int64_t n,
                      int64_t count, void* a, int32_t* pivots, int32_t* info) {
  const OneThread one;
  const int64_t k = std::min(m, n);
  return DispatchField(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < count; ++i) {
      info[i] = lapack::getrf(m, n, At<T>(a, i, m * n), m, pivots + i * k);
    }
    return absl::OkStatus();
  });
}

absl::Status SolveTriangular(KernelContext&, DType dtype,
                             const TriangularSystem& system,
                             absl::Span<const void* const> a, void* b) {
  const OneThread one;
  return DispatchField(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (size_t i = 0; i < a.size(); ++i) {
      lapack::trsm(system.right ? 'R' : 'L', system.upper ? 'U' : 'L',
                   system.transposed ? 'T' : 'N', system.unit ? 'U' : 'N',
                   system.m, system.n, static_cast<const T*>(a[i]), system.lda,
                   At<T>(b, i, system.m * system.n), system.m);
    }
    return absl::OkStatus();
  });
}

absl::Status FactorQr(KernelContext&, DType dtype, int64_t m, int64_t n,
                      int64_t count, void* a, void* tau) {
  const OneThread one;
  return DispatchFloat(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T size = 0;
    lapack::geqrf(m, n, nullptr, m, nullptr, &size, -1);
    std::vector<T> work(Size(size));
    for (int64_t i = 0; i < count; ++i) {
      lapack::geqrf(m, n, At<T>(a, i, m * n), m, At<T>(tau, i, std::min(m, n)),
                    work.data(), static_cast<int>(work.size()));
    }
    return absl::OkStatus();
  });
}

absl::Status FormQ(KernelContext&, DType dtype, int64_t m, int64_t columns,
                   int64_t k, int64_t count, void* q, const void* tau) {
  const OneThread one;
  return DispatchFloat(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T size = 0;
    lapack::orgqr(m, columns, k, nullptr, m, nullptr, &size, -1);
    std::vector<T> work(Size(size));
    for (int64_t i = 0; i < count; ++i) {
      lapack::orgqr(m, columns, k, At<T>(q, i, m * columns), m,
                    static_cast<const T*>(tau) + i * k, work.data(),
                    static_cast<int>(work.size()));
    }
    return absl::OkStatus();
  });
}

absl::Status SymmetricEigen(KernelContext&, DType dtype, bool vectors,
                            bool upper, int64_t n, int64_t count, void* a,
                            void* w, int32_t* info) {
  const OneThread one;
  const char job = vectors ? 'V' : 'N', uplo = upper ? 'U' : 'L';
  return DispatchFloat(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T size = 0;
    int integers = 0;
    lapack::syevd(job, uplo, n, nullptr, n, nullptr, &size, -1, &integers, -1);
    std::vector<T> work(Size(size));
    std::vector<int> more(integers);
    for (int64_t i = 0; i < count; ++i) {
      info[i] =
          lapack::syevd(job, uplo, n, At<T>(a, i, n * n), n, At<T>(w, i, n),
                        work.data(), static_cast<int>(work.size()), more.data(),
                        static_cast<int>(more.size()));
    }
    return absl::OkStatus();
  });
}

absl::Status SingularValues(KernelContext&, DType dtype,
                            const SingularShape& shape, int64_t count,
                            const void* a, void* s, void* u, void* v,
                            int32_t* info) {
  const OneThread one;
  const int64_t m = shape.m, n = shape.n;
  const char job = !shape.vectors ? 'N' : shape.full ? 'A' : 'S';
  return DispatchFloat(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T size = 0;
    std::vector<int> integers(8 * n);
    lapack::gesdd(job, m, n, nullptr, m, nullptr, nullptr, m, nullptr, n, &size,
                  -1, integers.data());
    std::vector<T> work(Size(size)), own(m * n), transposed(n * n);
    for (int64_t i = 0; i < count; ++i) {
      std::copy_n(static_cast<const T*>(a) + i * m * n, m * n, own.data());
      info[i] = lapack::gesdd(
          job, m, n, own.data(), m, At<T>(s, i, n),
          shape.vectors ? At<T>(u, i, m * shape.columns()) : nullptr, m,
          transposed.data(), n, work.data(), static_cast<int>(work.size()),
          integers.data());
      for (int64_t e = 0; shape.vectors && e < n * n; ++e) {
        At<T>(v, i, n * n)[e] = transposed[e % n * n + e / n];
      }
    }
    return absl::OkStatus();
  });
}

absl::Status GeneralEigen(KernelContext&, DType dtype, bool vectors, int64_t n,
                          int64_t count, void* a, void* w, void* v,
                          int32_t* info) {
  const OneThread one;
  const char job = vectors ? 'V' : 'N';
  return DispatchFloat(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    T size = 0;
    lapack::geev(job, n, nullptr, n, nullptr, nullptr, nullptr, n, &size, -1);
    std::vector<T> work(Size(size)), parts(2 * n);
    for (int64_t i = 0; i < count; ++i) {
      info[i] =
          lapack::geev(job, n, At<T>(a, i, n * n), n, parts.data(),
                       parts.data() + n, vectors ? At<T>(v, i, n * n) : nullptr,
                       n, work.data(), static_cast<int>(work.size()));
      for (int64_t j = 0; j < n; ++j) {
        At<Complex<T>>(w, i, n)[j] = {parts[j], parts[n + j]};
      }
    }
    return absl::OkStatus();
  });
}

}  // namespace holdfast::cuda
