// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Factorisations and products of large matrices by several threads, in tiles
// of fixed size, so that the result is the same for any number of threads.
// Column-major, with LAPACK's meaning of every argument; small sizes go to
// LAPACK itself.
// Thread-safety: reentrant.
#ifndef HOLDFAST_KERNELS_CPU_TILED_LAPACK_H_
#define HOLDFAST_KERNELS_CPU_TILED_LAPACK_H_

#include <algorithm>
#include <cstdint>
#include <utility>

#include "kernels/cpu/parallel.h"
#include "kernels/kernel.h"
#include "kernels/lapack.h"

namespace holdfast::cpu {
namespace tiled {

inline constexpr int kPanel = 64;   // columns factored by one thread
inline constexpr int kTile = 128;   // columns that one thread updates at once
inline constexpr int kSmall = 192;  // sides up to this go to LAPACK

// Calls fn(first, size) for the tiles of [begin, end).
template <typename F>
void ForTiles(const KernelContext& context, int begin, int end, F&& fn) {
  const int tiles = (end - begin + kTile - 1) / kTile;
  ParallelFor(context, tiles, 1, [&](int64_t b, int64_t e) {
    for (int64_t i = b; i < e; ++i) {
      const int first = begin + static_cast<int>(i) * kTile;
      fn(first, std::min(kTile, end - first));
    }
  });
}

// c = alpha op(a) op(b) + beta c.
template <typename T>
void Gemm(const KernelContext& context, char ta, char tb, int m, int n, int k,
          T alpha, const T* a, int lda, const T* b, int ldb, T beta, T* c,
          int ldc) {
  ForTiles(context, 0, n, [&](int j, int size) {
    const T* own = tb == 'N' ? b + int64_t{j} * ldb : b + j;
    lapack::gemm(ta, tb, m, size, k, alpha, a, lda, own, ldb, beta,
                 c + int64_t{j} * ldc, ldc);
  });
}

// b = op(a)^-1 b, or b op(a)^-1, in place.
template <typename T>
void Trsm(const KernelContext& context, char side, char uplo, char trans,
          char diag, int m, int n, const T* a, int lda, T* b, int ldb) {
  const bool left = side == 'L';
  ForTiles(context, 0, left ? n : m, [&](int first, int size) {
    lapack::trsm(side, uplo, trans, diag, left ? m : size, left ? size : n, a,
                 lda, left ? b + int64_t{first} * ldb : b + first, ldb);
  });
}

// LU with exchanges of rows.
template <typename T>
int Getrf(const KernelContext& context, int m, int n, T* a, int lda,
          int* pivots) {
  const int k = std::min(m, n);
  if (k <= kSmall) return lapack::getrf(m, n, a, lda, pivots);
  int info = 0;
  const auto at = [a, lda](int i, int j) { return a + i + int64_t{j} * lda; };
  for (int j = 0; j < k; j += kPanel) {
    const int width = std::min(kPanel, k - j), after = j + width;
    const int failed = lapack::getrf(m - j, width, at(j, j), lda, pivots + j);
    if (failed > 0 && info == 0) info = j + failed;
    for (int i = j; i < after; ++i) pivots[i] += j;
    const auto exchange = [&](int first, int size) {
      for (int c = first; c < first + size; ++c) {
        T* column = at(0, c);
        for (int i = j; i < after; ++i) {
          std::swap(column[i], column[pivots[i] - 1]);
        }
      }
    };
    exchange(0, j);
    ForTiles(context, after, n, [&](int first, int size) {
      exchange(first, size);
      lapack::trsm('L', 'L', 'N', 'U', width, size, at(j, j), lda, at(j, first),
                   lda);
      if (after < m) {
        lapack::gemm('N', 'N', m - after, size, width, T(-1), at(after, j), lda,
                     at(j, first), lda, T(1), at(after, first), lda);
      }
    });
  }
  return info;
}

// A = U^T U ('U') or L L^T ('L').
template <typename T>
int Potrf(const KernelContext& context, char uplo, int n, T* a, int lda) {
  if (n <= kSmall) return lapack::potrf(uplo, n, a, lda);
  const bool upper = uplo == 'U';
  // Block (i, j) of the triangle that is kept: i before j.
  const auto at = [=](int i, int j) {
    return upper ? a + i + int64_t{j} * lda : a + j + int64_t{i} * lda;
  };
  for (int j = 0; j < n; j += kTile) {
    const int width = std::min(kTile, n - j), after = j + width;
    const int info = lapack::potrf(uplo, width, at(j, j), lda);
    if (info > 0) return j + info;
    ForTiles(context, after, n, [&](int first, int size) {
      lapack::trsm(upper ? 'L' : 'R', uplo, 'T', 'N', upper ? width : size,
                   upper ? size : width, at(j, j), lda, at(j, first), lda);
    });
    const int tiles = (n - after + kTile - 1) / kTile;
    ParallelFor(context, tiles * (tiles + 1) / 2, 1, [&](int64_t b, int64_t e) {
      for (int64_t t = b; t < e; ++t) {
        int column = 0, before = 0;  // tiles in the columns before this one
        while (before + column + 1 <= t) before += ++column;
        const int row = static_cast<int>(t) - before;
        const int r = after + row * kTile, c = after + column * kTile;
        const int rows = std::min(kTile, n - r),
                  columns = std::min(kTile, n - c);
        if (r == c) {
          lapack::syrk(uplo, upper ? 'T' : 'N', rows, width, T(-1), at(j, r),
                       lda, T(1), at(r, r), lda);
        } else if (upper) {
          lapack::gemm('T', 'N', rows, columns, width, T(-1), at(j, r), lda,
                       at(j, c), lda, T(1), at(r, c), lda);
        } else {
          lapack::gemm('N', 'T', columns, rows, width, T(-1), at(j, c), lda,
                       at(j, r), lda, T(1), at(r, c), lda);
        }
      }
    });
  }
  return 0;
}

// QR of an m x n matrix, and the first `columns` columns of Q.
template <typename T>
class Qr {
 public:
  Qr(int m, int n, int columns)
      : m_(m), n_(n), columns_(columns), k_(std::min(m, n)) {
    T size = 0, other = 0;
    lapack::geqrf(m, kPanelOrAll(n), nullptr, m, nullptr, &size, -1);
    if (small()) {
      lapack::orgqr(m, columns, k_, nullptr, m, nullptr, &other, -1);
    }
    lwork_ = static_cast<int>(std::max(size, other)) + 1;
  }
  // Elements of scratch memory for Run.
  int64_t scratch() const {
    const int64_t wide = std::max(n_, columns_);
    return k_ + lwork_ + (small() ? 0 : kPanel * (k_ + kPanel + wide));
  }

  // `a`: the matrix, then R in its upper triangle. `q`: room for m x columns.
  void Run(const KernelContext& context, T* a, T* q, T* scratch) const {
    T* tau = scratch;
    T* work = tau + k_;
    if (small()) {
      if (n_ > 0) lapack::geqrf(m_, n_, a, m_, tau, work, lwork_);
      std::copy_n(a, int64_t{m_} * std::min(n_, columns_), q);
      if (columns_ > 0) {
        lapack::orgqr(m_, columns_, k_, q, m_, tau, work, lwork_);
      }
      return;
    }
    T* triangles = work + lwork_;  // one of kPanel x kPanel for each panel
    T* tiles = triangles + int64_t{kPanel} * (k_ + kPanel);
    for (int j = 0; j < k_; j += kPanel) {
      const int width = std::min(kPanel, k_ - j);
      T* panel = a + j + int64_t{j} * m_;
      T* triangle = triangles + int64_t{j} * kPanel;
      lapack::geqrf(m_ - j, width, panel, m_, tau + j, work, lwork_);
      lapack::larft(m_ - j, width, panel, m_, tau + j, triangle, kPanel);
      Reflect(context, 'T', j, width, panel, triangle, j + width, n_, a, tiles);
    }
    std::fill_n(q, int64_t{m_} * columns_, T(0));
    for (int i = 0; i < columns_; ++i) q[i + int64_t{i} * m_] = T(1);
    for (int j = (k_ - 1) / kPanel * kPanel; j >= 0; j -= kPanel) {
      Reflect(context, 'N', j, std::min(kPanel, k_ - j),
              a + j + int64_t{j} * m_, triangles + int64_t{j} * kPanel, j,
              columns_, q, tiles);
    }
  }

  // It is one call of LAPACK's for each factor.
  bool small() const { return k_ <= kSmall; }

 private:
  int kPanelOrAll(int n) const { return small() ? n : kPanel; }

  // Applies a panel's reflections to the columns [begin, end) of c, from row j
  // on.
  void Reflect(const KernelContext& context, char trans, int j, int width,
               const T* panel, const T* triangle, int begin, int end, T* c,
               T* tiles) const {
    ForTiles(context, begin, end, [&](int first, int size) {
      lapack::larfb(trans, m_ - j, size, width, panel, m_, triangle, kPanel,
                    c + j + int64_t{first} * m_, m_,
                    tiles + int64_t{first} * kPanel);
    });
  }

  const int m_, n_, columns_, k_;
  int lwork_ = 0;
};

}  // namespace tiled
}  // namespace holdfast::cpu

#endif  // HOLDFAST_KERNELS_CPU_TILED_LAPACK_H_
