// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// A batch of matrix products as matmul and linear describe it, and how its
// operands lie for BLAS. Thread-safety: pure functions.
#ifndef HOLDFAST_KERNELS_PRODUCTS_H_
#define HOLDFAST_KERNELS_PRODUCTS_H_

#include <algorithm>
#include <cstdint>
#include <utility>

#include "ops/tensor_spec.h"

namespace holdfast {

// C[m,n] = A[m,k] B[k,n] for each place of `batch`; the results follow each
// other without gaps.
struct Products {
  int64_t m = 1, n = 1, k = 0;
  int64_t a_row = 0, a_col = 0, b_row = 0, b_col = 0;
  Dims batch, a_batch, b_batch;  // sizes, and the operands' strides

  int64_t count() const { return NumElements(batch); }
};

// A batch dimension of an operand; 0 for missing and for broadcast ones.
inline int64_t ProductBatchStride(const TensorSpec& spec, int matrix_rank,
                                  int from_last) {
  const int d = spec.rank() - matrix_rank - 1 - from_last;
  return d < 0 || spec.shape[d] == 1 ? 0 : spec.strides[d];
}

// Merges batch dimensions that both operands step through as one, and takes a
// batch of left operands under one right operand as a single taller one.
inline void SimplifyProducts(Products* p) {
  Dims sizes, a, b;
  for (size_t d = 0; d < p->batch.size(); ++d) {
    const int64_t size = p->batch[d];
    if (size == 1) continue;
    if (!sizes.empty() && a.back() == p->a_batch[d] * size &&
        b.back() == p->b_batch[d] * size) {
      sizes.back() *= size;
      a.back() = p->a_batch[d];
      b.back() = p->b_batch[d];
      continue;
    }
    sizes.push_back(size);
    a.push_back(p->a_batch[d]);
    b.push_back(p->b_batch[d]);
  }
  while (!sizes.empty() && b.back() == 0 &&
         (p->m == 1 || a.back() == p->m * p->a_row)) {
    if (p->m == 1) p->a_row = a.back();
    p->m *= sizes.back();
    sizes.pop_back();
    a.pop_back();
    b.pop_back();
  }
  p->batch = std::move(sizes);
  p->a_batch = std::move(a);
  p->b_batch = std::move(b);
}

inline Products MatmulProducts(const TensorSpec& a, const TensorSpec& b,
                               const TensorSpec& out) {
  Products p;
  const int ra = a.rank(), rb = b.rank();
  p.k = a.shape[ra - 1];
  p.a_col = a.strides[ra - 1];
  if (ra >= 2) {
    p.m = a.shape[ra - 2];
    p.a_row = a.strides[ra - 2];
  }
  if (rb >= 2) {
    p.n = b.shape[rb - 1];
    p.b_col = b.strides[rb - 1];
    p.b_row = b.strides[rb - 2];
  } else {
    p.b_row = b.strides[0];
  }
  const int batch = out.rank() - (ra >= 2) - (rb >= 2);
  for (int d = 0; d < batch; ++d) {
    p.batch.push_back(out.shape[d]);
    p.a_batch.push_back(ProductBatchStride(a, std::min(ra, 2), batch - 1 - d));
    p.b_batch.push_back(ProductBatchStride(b, std::min(rb, 2), batch - 1 - d));
  }
  SimplifyProducts(&p);
  return p;
}

// input @ weight.T: the leading dimensions of the input are rows.
inline Products LinearProducts(const TensorSpec& input,
                               const TensorSpec& weight) {
  Products p;
  const int r = input.rank();
  p.k = weight.shape[1];
  p.n = weight.shape[0];
  p.a_col = input.strides[r - 1];
  p.b_row = weight.strides[1];
  p.b_col = weight.strides[0];
  for (int d = 0; d + 1 < r; ++d) {
    p.batch.push_back(input.shape[d]);
    p.a_batch.push_back(input.strides[d]);
    p.b_batch.push_back(0);
  }
  SimplifyProducts(&p);
  return p;
}

// How a matrix lies for BLAS: its rows (or, transposed, its columns) are
// adjacent elements, `ld` apart. BLAS calls the transpose of a row-major matrix
// column-major: a product of such is that of the operands exchanged.
struct BlasLayout {
  bool transposed = false;
  int64_t ld = 1;

  char letter() const { return transposed ? 'T' : 'N'; }
};

// The layout of a rows x cols matrix of steps (row, col); false if it lies in
// neither way.
inline bool FindBlasLayout(int64_t rows, int64_t cols, int64_t row, int64_t col,
                           BlasLayout* layout) {
  if (col == 1 || cols == 1) {
    layout->transposed = false;
    layout->ld = rows == 1 ? std::max<int64_t>(cols, 1) : row;
    if (layout->ld >= cols) return true;
  }
  if (row == 1 || rows == 1) {
    layout->transposed = true;
    layout->ld = cols == 1 ? std::max<int64_t>(rows, 1) : col;
    return layout->ld >= rows;
  }
  return false;
}

}  // namespace holdfast

#endif  // HOLDFAST_KERNELS_PRODUCTS_H_
