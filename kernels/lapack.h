// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The BLAS and LAPACK routines that linear algebra uses, one overload per
// element type. Matrices are column-major, as in Fortran: a contiguous tensor
// is the transpose of what these see. `int` results are LAPACK's info.
// Thread-safety: reentrant.
#ifndef HOLDFAST_KERNELS_LAPACK_H_
#define HOLDFAST_KERNELS_LAPACK_H_

#include <omp.h>

#include <cstddef>

#include "ops/complex.h"

namespace holdfast {
namespace lapack {

// Keeps OpenBLAS on the calling thread while it lives: how it would share a
// factorisation among threads changes the result's last bits. Kernels run
// whole matrices, or parts of fixed size, in parallel instead.
class OneThread {
 public:
  OneThread() : before_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OneThread() { omp_set_num_threads(before_); }
  OneThread(const OneThread&) = delete;
  OneThread& operator=(const OneThread&) = delete;

 private:
  const int before_;
};

// Fortran passes the lengths of strings after the other arguments.
// What real and complex matrices share; 'T' transposes without conjugating.
#define HOLDFAST_LAPACK_FIELD(T, name)                                         \
  extern "C" {                                                                 \
  void name(gemm_)(const char*, const char*, const int*, const int*,           \
                   const int*, const T*, const T*, const int*, const T*,       \
                   const int*, const T*, T*, const int*, size_t, size_t);      \
  void name(trsm_)(const char*, const char*, const char*, const char*,         \
                   const int*, const int*, const T*, const T*, const int*, T*, \
                   const int*, size_t, size_t, size_t, size_t);                \
  void name(getrf_)(const int*, const int*, T*, const int*, int*, int*);       \
  }                                                                            \
  inline void gemm(char ta, char tb, int m, int n, int k, T alpha, const T* a, \
                   int lda, const T* b, int ldb, T beta, T* c, int ldc) {      \
    name(gemm_)(&ta, &tb, &m, &n, &k, &alpha, a, &lda, b, &ldb, &beta, c,      \
                &ldc, 1, 1);                                                   \
  }                                                                            \
  inline void trsm(char side, char uplo, char trans, char diag, int m, int n,  \
                   const T* a, int lda, T* b, int ldb) {                       \
    const T one = 1;                                                           \
    name(trsm_)(&side, &uplo, &trans, &diag, &m, &n, &one, a, &lda, b, &ldb,   \
                1, 1, 1, 1);                                                   \
  }                                                                            \
  inline int getrf(int m, int n, T* a, int lda, int* pivots) {                 \
    int info = 0;                                                              \
    name(getrf_)(&m, &n, a, &lda, pivots, &info);                              \
    return info;                                                               \
  }

#define HOLDFAST_LAPACK(T, name)                                               \
  HOLDFAST_LAPACK_FIELD(T, name)                                               \
  extern "C" {                                                                 \
  void name(syrk_)(const char*, const char*, const int*, const int*, const T*, \
                   const T*, const int*, const T*, T*, const int*, size_t,     \
                   size_t);                                                    \
  void name(potrf_)(const char*, const int*, T*, const int*, int*, size_t);    \
  void name(geqrf_)(const int*, const int*, T*, const int*, T*, T*,            \
                    const int*, int*);                                         \
  void name(orgqr_)(const int*, const int*, const int*, T*, const int*,        \
                    const T*, T*, const int*, int*);                           \
  void name(larft_)(const char*, const char*, const int*, const int*,          \
                    const T*, const int*, const T*, T*, const int*, size_t,    \
                    size_t);                                                   \
  void name(larfb_)(const char*, const char*, const char*, const char*,        \
                    const int*, const int*, const int*, const T*, const int*,  \
                    const T*, const int*, T*, const int*, T*, const int*,      \
                    size_t, size_t, size_t, size_t);                           \
  void name(syevd_)(const char*, const char*, const int*, T*, const int*, T*,  \
                    T*, const int*, int*, const int*, int*, size_t, size_t);   \
  void name(gesdd_)(const char*, const int*, const int*, T*, const int*, T*,   \
                    T*, const int*, T*, const int*, T*, const int*, int*,      \
                    int*, size_t);                                             \
  void name(geev_)(const char*, const char*, const int*, T*, const int*, T*,   \
                   T*, T*, const int*, T*, const int*, T*, const int*, int*,   \
                   size_t, size_t);                                            \
  }                                                                            \
  inline void syrk(char uplo, char trans, int n, int k, T alpha, const T* a,   \
                   int lda, T beta, T* c, int ldc) {                           \
    name(syrk_)(&uplo, &trans, &n, &k, &alpha, a, &lda, &beta, c, &ldc, 1, 1); \
  }                                                                            \
  inline int potrf(char uplo, int n, T* a, int lda) {                          \
    int info = 0;                                                              \
    name(potrf_)(&uplo, &n, a, &lda, &info, 1);                                \
    return info;                                                               \
  }                                                                            \
  inline int geqrf(int m, int n, T* a, int lda, T* tau, T* work, int lwork) {  \
    int info = 0;                                                              \
    name(geqrf_)(&m, &n, a, &lda, tau, work, &lwork, &info);                   \
    return info;                                                               \
  }                                                                            \
  inline int orgqr(int m, int n, int k, T* a, int lda, const T* tau, T* work,  \
                   int lwork) {                                                \
    int info = 0;                                                              \
    name(orgqr_)(&m, &n, &k, a, &lda, tau, work, &lwork, &info);               \
    return info;                                                               \
  }                                                                            \
  /* The triangle t of the product of k reflections, columns of v. */          \
  inline void larft(int m, int k, const T* v, int ldv, const T* tau, T* t,     \
                    int ldt) {                                                 \
    name(larft_)("F", "C", &m, &k, v, &ldv, tau, t, &ldt, 1, 1);               \
  }                                                                            \
  /* c = op(that product) c; work has room for n k. */                         \
  inline void larfb(char trans, int m, int n, int k, const T* v, int ldv,      \
                    const T* t, int ldt, T* c, int ldc, T* work) {             \
    name(larfb_)("L", &trans, "F", "C", &m, &n, &k, v, &ldv, t, &ldt, c, &ldc, \
                 work, &n, 1, 1, 1, 1);                                        \
  }                                                                            \
  inline int syevd(char jobz, char uplo, int n, T* a, int lda, T* w, T* work,  \
                   int lwork, int* iwork, int liwork) {                        \
    int info = 0;                                                              \
    name(syevd_)(&jobz, &uplo, &n, a, &lda, w, work, &lwork, iwork, &liwork,   \
                 &info, 1, 1);                                                 \
    return info;                                                               \
  }                                                                            \
  inline int gesdd(char jobz, int m, int n, T* a, int lda, T* s, T* u,         \
                   int ldu, T* vt, int ldvt, T* work, int lwork, int* iwork) { \
    int info = 0;                                                              \
    name(gesdd_)(&jobz, &m, &n, a, &lda, s, u, &ldu, vt, &ldvt, work, &lwork,  \
                 iwork, &info, 1);                                             \
    return info;                                                               \
  }                                                                            \
  inline int geev(char jobvr, int n, T* a, int lda, T* wr, T* wi, T* vr,       \
                  int ldvr, T* work, int lwork) {                              \
    const char none = 'N';                                                     \
    const int one = 1;                                                         \
    int info = 0;                                                              \
    name(geev_)(&none, &jobvr, &n, a, &lda, wr, wi, nullptr, &one, vr, &ldvr,  \
                work, &lwork, &info, 1, 1);                                    \
    return info;                                                               \
  }

#define HOLDFAST_SINGLE(name) s##name
#define HOLDFAST_DOUBLE(name) d##name
HOLDFAST_LAPACK(float, HOLDFAST_SINGLE)
HOLDFAST_LAPACK(double, HOLDFAST_DOUBLE)
#undef HOLDFAST_SINGLE
#undef HOLDFAST_DOUBLE
#undef HOLDFAST_LAPACK

#define HOLDFAST_SINGLE(name) c##name
#define HOLDFAST_DOUBLE(name) z##name
HOLDFAST_LAPACK_FIELD(Complex<float>, HOLDFAST_SINGLE)
HOLDFAST_LAPACK_FIELD(Complex<double>, HOLDFAST_DOUBLE)
#undef HOLDFAST_SINGLE
#undef HOLDFAST_DOUBLE
#undef HOLDFAST_LAPACK_FIELD

}  // namespace lapack
}  // namespace holdfast

#endif  // HOLDFAST_KERNELS_LAPACK_H_
