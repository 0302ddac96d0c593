// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// matrix_exp: scaling and squaring with Pade approximants (kernels/pade.h).
// exp(A^T) = exp(A)^T, so that it does not matter which way a matrix lies.
#include "absl/status/status.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/matrix_batch.h"
#include "kernels/cpu/tiled_lapack.h"
#include "kernels/dtype_dispatch.h"
#include "kernels/pade.h"

namespace holdfast::cpu {
namespace {

template <typename T>
class Exponential {
 public:
  // A, A^2, A^4, A^6, A^8, two sums, and pivots.
  static int64_t Scratch(int64_t n) { return 7 * n * n + n; }

  Exponential(const KernelContext& context, int64_t n, T* scratch)
      : context_(context), n_(n), scratch_(scratch) {}

  // a = exp(a).
  void Run(T* a) {
    const T norm = Norm(a);
    if (!(norm <= std::numeric_limits<T>::max())) {
      std::fill_n(a, n_ * n_, std::numeric_limits<T>::quiet_NaN());
      return;
    }
    const PadeApproximant& use = PadeFor(norm);
    const int squarings = PadeSquarings(use, norm);
    T* x = Matrix(0);
    const T scale = static_cast<T>(std::ldexp(1.0, -squarings));
    for (int64_t i = 0; i < n_ * n_; ++i) x[i] = a[i] * scale;
    Multiply(x, x, Matrix(1));
    Multiply(Matrix(1), Matrix(1), Matrix(2));
    if (use.degree > 5) Multiply(Matrix(2), Matrix(1), Matrix(3));
    if (use.degree == 9) Multiply(Matrix(3), Matrix(1), Matrix(4));
    Quotient(use, a);
    for (int i = 0; i < squarings; ++i) {
      Multiply(a, a, x);
      std::copy_n(x, n_ * n_, a);
    }
  }

 private:
  T* Matrix(int i) { return scratch_ + i * n_ * n_; }

  T Norm(const T* a) const {
    T most = 0;
    for (int64_t j = 0; j < n_; ++j) {
      T sum = 0;
      for (int64_t i = 0; i < n_; ++i) sum += std::fabs(a[j * n_ + i]);
      if (!(sum <= most)) most = sum;  // NaN stays
      if (most != most) return most;
    }
    return most;
  }

  void Multiply(const T* a, const T* b, T* c) {
    tiled::Gemm(context_, 'N', 'N', n_, n_, n_, T(1), a, n_, b, n_, T(0), c,
                n_);
  }

  // out = sum over i of b[first + 2 i] A^(2 i), for i < terms; A^0 is I.
  void EvenSum(const double* b, int first, int terms, T* out) {
    std::fill_n(out, n_ * n_, T(0));
    for (int term = 1; term < terms; ++term) {
      const T factor = static_cast<T>(b[first + 2 * term]);
      const T* power = Matrix(term);
      for (int64_t i = 0; i < n_ * n_; ++i) out[i] += factor * power[i];
    }
    for (int64_t i = 0; i < n_; ++i) out[i * (n_ + 1)] += T(b[first]);
  }

  // The even powers from A^6 on that degree 13 has besides: A^6 (b A^2 + ..).
  void AddHighPowers(const double* b, int first, T* out) {
    T* sum = Matrix(4);
    std::fill_n(sum, n_ * n_, T(0));
    for (int term = 1; term <= 3; ++term) {
      const T factor = static_cast<T>(b[first + 2 * term + 6]);
      const T* power = Matrix(term);
      for (int64_t i = 0; i < n_ * n_; ++i) sum[i] += factor * power[i];
    }
    tiled::Gemm(context_, 'N', 'N', n_, n_, n_, T(1), Matrix(3), n_, sum, n_,
                T(1), out, n_);
  }

  // out = (V - U)^-1 (V + U), with the odd part U and the even part V.
  void Quotient(const PadeApproximant& use, T* out) {
    const int terms = use.degree == 13 ? 4 : (use.degree + 1) / 2;
    T* odd = Matrix(5);
    T* even = Matrix(6);
    EvenSum(use.b, 1, terms, even);
    if (use.degree == 13) AddHighPowers(use.b, 1, even);
    Multiply(Matrix(0), even, odd);
    EvenSum(use.b, 0, terms, even);
    if (use.degree == 13) AddHighPowers(use.b, 0, even);
    for (int64_t i = 0; i < n_ * n_; ++i) {
      out[i] = even[i] + odd[i];
      even[i] -= odd[i];
    }
    int* pivots = reinterpret_cast<int*>(scratch_ + 7 * n_ * n_);
    tiled::Getrf(context_, n_, n_, even, n_, pivots);
    for (int64_t j = 0; j < n_; ++j) {
      for (int64_t i = 0; i < n_; ++i) {
        std::swap(out[j * n_ + i], out[j * n_ + pivots[i] - 1]);
      }
    }
    tiled::Trsm(context_, 'L', 'L', 'N', 'U', n_, n_, even, n_, out, n_);
    tiled::Trsm(context_, 'L', 'U', 'N', 'N', n_, n_, even, n_, out, n_);
  }

  const KernelContext& context_;
  const int64_t n_;
  T* const scratch_;
};

}  // namespace

HOLDFAST_CPU_KERNEL(linalg_matrix_exp) {
  const TensorView& out = outputs[0];
  CopyStrided(context, inputs[0], out);
  const int64_t count = BatchSize(*out.spec), n = MatrixRows(*out.spec);
  if (n == 0) return absl::OkStatus();
  return DispatchFloat(out.spec->dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    return ForEachMatrix<T>(
        context, count, 12.0 * n * n * n, Exponential<T>::Scratch(n),
        [&](int64_t i, T* scratch) -> absl::Status {
          Exponential<T>(context, n, scratch).Run(out.as<T>() + i * n * n);
          return absl::OkStatus();
        });
  });
}

}  // namespace holdfast::cpu
