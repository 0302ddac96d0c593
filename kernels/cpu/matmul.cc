// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// matmul and linear. float32 goes to oneDNN, which takes row- and column-major
// operands as they lie, complex numbers to BLAS; everything else to gemm.h.
#include <omp.h>

#include <algorithm>
#include <limits>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/dnnl_engine.h"
#include "kernels/cpu/dtype_dispatch.h"
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/strided_cursor.h"
#include "kernels/cpu/tiled_lapack.h"
#include "ops/op_id.h"

namespace holdfast {
namespace {

// A batch of products. The results follow each other without gaps.
struct Products {
  int64_t m = 1, n = 1, k = 0;
  int64_t a_row = 0, a_col = 0, b_row = 0, b_col = 0;
  Dims batch, a_batch, b_batch;  // sizes, and the operands' strides

  int64_t count() const { return NumElements(batch); }
};

// A batch dimension of a; 0 for missing and for size-1 (broadcast) ones.
int64_t BatchStride(const TensorSpec& spec, int matrix_rank, int from_last) {
  const int d = spec.rank() - matrix_rank - 1 - from_last;
  return d < 0 || spec.shape[d] == 1 ? 0 : spec.strides[d];
}

// Merges batch dimensions that both operands step through as one, and takes a
// batch of left operands under one right operand as a single taller one.
void Simplify(Products* p) {
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

Products MatmulProducts(const TensorSpec& a, const TensorSpec& b,
                        const TensorSpec& out) {
  Products p;
  const int ra = a.rank(), rb = b.rank();
  const int a_rank = std::min(ra, 2), b_rank = std::min(rb, 2);
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
    p.a_batch.push_back(BatchStride(a, a_rank, batch - 1 - d));
    p.b_batch.push_back(BatchStride(b, b_rank, batch - 1 - d));
  }
  Simplify(&p);
  return p;
}

// input @ weight.T: the leading dimensions of the input are rows.
Products LinearProducts(const TensorSpec& input, const TensorSpec& weight) {
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
  Simplify(&p);
  return p;
}

// BLAS takes a matrix whose rows or whose columns are adjacent elements.
// Returns false for any other. REQUIRES: rows and cols are not 0.
bool BlasLayout(int64_t rows, int64_t cols, int64_t row, int64_t col,
                char* trans, dnnl_dim_t* ld) {
  if (col == 1 || cols == 1) {
    *trans = 'N';
    *ld = rows == 1 ? cols : row;
    if (*ld >= cols) return true;
  }
  if (row == 1 || rows == 1) {
    *trans = 'T';
    *ld = cols == 1 ? rows : col;
    return *ld >= rows;
  }
  return false;
}

// Of a batch, products of no more multiplications are done on one thread each.
constexpr int64_t kSmallProduct = int64_t{1} << 21;

// Few results of long sums from a transposed b, the shape of a classifier's
// layer: oneDNN's matmul is faster than its sgemm.
bool PrefersMatmulPrimitive(const GemmCall<float>& call, char trans_b) {
  return trans_b == 'T' && call.bias_stride == 1 && call.k >= 512 &&
         call.m * call.n <= 65536 && call.m * call.n * call.k > kSmallProduct;
}

absl::Status MatmulPrimitive(KernelContext& context,
                             const GemmCall<float>& call) {
  UseDnnlThreads(context);
  const DnnlKey key = {static_cast<int64_t>(OpId::matmul),
                       context.num_threads,
                       call.m,
                       call.n,
                       call.k,
                       call.a_row,
                       call.a_col,
                       call.b_row,
                       call.b_col,
                       call.bias != nullptr};
  absl::StatusOr<DnnlOp*> op = CachedDnnlOp(key, [&] {
    using dnnl::memory;
    const auto matrix = [](int64_t rows, int64_t cols, int64_t row,
                           int64_t col) {
      return memory::desc({rows, cols}, memory::data_type::f32,
                          memory::dims{row, col});
    };
    const memory::desc a = matrix(call.m, call.k, call.a_row, call.a_col);
    const memory::desc b = matrix(call.k, call.n, call.b_row, call.b_col);
    const memory::desc c = matrix(call.m, call.n, call.c_row, 1);
    const memory::desc bias = matrix(1, call.n, call.n, 1);
    const dnnl::matmul::primitive_desc pd(
        call.bias == nullptr ? dnnl::matmul::desc(a, b, c)
                             : dnnl::matmul::desc(a, b, bias, c),
        UserScratchpad(), DnnlEngine());
    std::vector<DnnlOp::Operand> operands = {{DNNL_ARG_SRC, a, a},
                                             {DNNL_ARG_WEIGHTS, b, b},
                                             {DNNL_ARG_DST, c, c, true}};
    if (call.bias != nullptr) operands.push_back({DNNL_ARG_BIAS, bias, bias});
    return std::make_unique<DnnlOp>(dnnl::matmul(pd), pd.scratchpad_desc(),
                                    std::move(operands));
  });
  if (!op.ok()) return op.status();
  return (*op)->Run(
      context, {const_cast<float*>(call.a), const_cast<float*>(call.b), call.c,
                const_cast<float*>(call.bias)});
}

// Room for operands that BLAS does not take as they lie.
template <typename T>
size_t WorkspaceBytes(const Products& p) {
  if constexpr (kIsComplex<T>) {
    return (p.m * p.k + p.k * p.n) * sizeof(T);
  } else {
    return GemmWorkspaceBytes<T>(p.n, p.k);
  }
}

// A row-major product is the column-major one of the operands exchanged.
template <typename T>
absl::Status ComplexProduct(KernelContext& context, GemmCall<T> call,
                            T* workspace) {
  constexpr int64_t kMax = std::numeric_limits<int>::max();
  for (int64_t i = 0; call.bias != nullptr && i < call.m; ++i) {
    for (int64_t j = 0; j < call.n; ++j) {
      call.c[i * call.c_row + j] = call.bias[j * call.bias_stride];
    }
  }
  char ta, tb;
  dnnl_dim_t lda, ldb;
  const auto pack = [](const T* from, int64_t rows, int64_t cols, int64_t row,
                       int64_t col, T* to) {
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < cols; ++j) {
        to[i * cols + j] = from[i * row + j * col];
      }
    }
  };
  if (!BlasLayout(call.m, call.k, call.a_row, call.a_col, &ta, &lda)) {
    pack(call.a, call.m, call.k, call.a_row, call.a_col, workspace);
    call.a = workspace;
    ta = 'N';
    lda = call.k;
  }
  if (!BlasLayout(call.k, call.n, call.b_row, call.b_col, &tb, &ldb)) {
    T* packed = workspace + call.m * call.k;
    pack(call.b, call.k, call.n, call.b_row, call.b_col, packed);
    call.b = packed;
    tb = 'N';
    ldb = call.n;
  }
  if (std::max({call.m, call.n, call.k, lda, ldb, call.c_row}) > kMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        "[matmul] sides of complex matrices must be below 2^31. Got m=", call.m,
        ", n=", call.n, ", k=", call.k));
  }
  const lapack::OneThread one;
  tiled::Gemm(context, tb, ta, static_cast<int>(call.n),
              static_cast<int>(call.m), static_cast<int>(call.k), T(1), call.b,
              static_cast<int>(ldb), call.a, static_cast<int>(lda),
              T(call.bias == nullptr ? 0 : 1), call.c,
              static_cast<int>(call.c_row));
  return absl::OkStatus();
}

// `workspace` is asked for only where gemm.h does the work.
template <typename T, typename Workspace>
absl::Status RealProduct(KernelContext& context, const GemmCall<T>& call,
                         Workspace workspace) {
  if (call.k == 0 || call.m * call.n <= kTinyGemm / call.k) {
    TinyGemm(call);
    return absl::OkStatus();
  }
  if (call.m * call.n == 1 && call.bias == nullptr) {
    Dot(call);
    return absl::OkStatus();
  }
  if constexpr (std::is_same_v<T, float>) {
    char ta, tb;
    dnnl_dim_t lda, ldb;
    if (BlasLayout(call.m, call.k, call.a_row, call.a_col, &ta, &lda) &&
        BlasLayout(call.k, call.n, call.b_row, call.b_col, &tb, &ldb)) {
      if (PrefersMatmulPrimitive(call, tb)) {
        return MatmulPrimitive(context, call);
      }
      for (int64_t i = 0; call.bias != nullptr && i < call.m; ++i) {
        for (int64_t j = 0; j < call.n; ++j) {
          call.c[i * call.c_row + j] = call.bias[j * call.bias_stride];
        }
      }
      const float beta = call.bias == nullptr ? 0.0f : 1.0f;
      UseDnnlThreads(context, call.m * call.n * call.k);
      const dnnl_status_t status =
          dnnl_sgemm(ta, tb, call.m, call.n, call.k, 1.0f, call.a, lda, call.b,
                     ldb, beta, call.c, call.c_row);
      if (status == dnnl_success) return absl::OkStatus();
      return absl::InternalError(absl::StrCat("oneDNN: sgemm: ", status));
    }
  }
  void* memory = workspace();
  if (memory == nullptr) {
    return absl::ResourceExhaustedError("no scratch memory for a product");
  }
  Gemm(context, call, memory);
  return absl::OkStatus();
}

// One product.
template <typename T, typename Workspace>
absl::Status Product(KernelContext& context, const GemmCall<T>& call,
                     Workspace workspace) {
  if (call.m == 0 || call.n == 0) return absl::OkStatus();
  if constexpr (kIsComplex<T>) {
    if (call.k == 0) {
      for (int64_t i = 0; i < call.m; ++i) {
        for (int64_t j = 0; j < call.n; ++j) {
          call.c[i * call.c_row + j] =
              call.bias == nullptr ? T(0) : call.bias[j * call.bias_stride];
        }
      }
      return absl::OkStatus();
    }
    T* memory = static_cast<T*>(workspace());
    if (memory == nullptr) {
      return absl::ResourceExhaustedError("no scratch memory for a product");
    }
    return ComplexProduct(context, call, memory);
  } else {
    return RealProduct(context, call, workspace);
  }
}

class SingleThread : public KernelContext {
 public:
  void* Scratch(size_t) override { return nullptr; }
};

template <typename T>
absl::Status RunProducts(KernelContext& context, const Products& p, const T* a,
                         const T* b, T* c, const T* bias, int64_t bias_stride) {
  GemmCall<T> call;
  call.m = p.m;
  call.n = p.n;
  call.k = p.k;
  call.a_row = p.a_row;
  call.a_col = p.a_col;
  call.b_row = p.b_row;
  call.b_col = p.b_col;
  call.c_row = p.n;
  call.bias = bias;
  call.bias_stride = bias_stride;
  const int64_t count = p.count();
  const size_t workspace_bytes = (WorkspaceBytes<T>(p) + 63) / 64 * 64;
  if (p.batch.empty()) {
    call.a = a;
    call.b = b;
    call.c = c;
    return Product<T>(context, call,
                      [&] { return context.Scratch(workspace_bytes); });
  }
  if (count == 0 || p.m * p.n == 0) return absl::OkStatus();
  // Small products: each on one thread. Large ones: one after the other.
  const int64_t cost = p.m * p.n * std::max<int64_t>(p.k, 1);
  const bool small = count > 1 && cost <= kSmallProduct;
  const int threads = small ? context.num_threads : 1;
  char* workspaces = nullptr;  // one per thread, when first asked for
  absl::Status status;
  const auto run = [&](KernelContext& inner, int64_t begin, int64_t end) {
    GemmCall<T> mine = call;
    StridedCursor<2> at(p.batch, {p.a_batch.data(), p.b_batch.data()}, begin);
    for (int64_t i = begin; i < end; ++i, at.Next()) {
      mine.a = a + at[0];
      mine.b = b + at[1];
      mine.c = c + i * p.m * p.n;
      absl::Status s = Product<T>(inner, mine, [&]() -> void* {
        return workspaces + omp_get_thread_num() % threads * workspace_bytes;
      });
      if (!s.ok()) {
#pragma omp critical(holdfast_matmul_status)
        status.Update(s);
        return;
      }
    }
  };
  const bool tiny = !kIsComplex<T> && cost <= kTinyGemm;
  if (!tiny) {
    workspaces =
        static_cast<char*>(context.Scratch(workspace_bytes * threads + 64));
    if (workspaces == nullptr) {
      return absl::ResourceExhaustedError("no scratch memory for products");
    }
  }
  if (!small) {
    run(context, 0, count);
    return status;
  }
  UseDnnlThreads(context);
  ParallelFor(context, count, std::max<int64_t>(1, 65536 / cost),
              [&](int64_t begin, int64_t end) {
                SingleThread inner;
                run(inner, begin, end);
              });
  return status;
}

// Integers multiply as unsigned ones: the same bits, and no overflow that the
// language leaves undefined.
template <typename T>
using Arithmetic = typename std::conditional_t<
    std::is_same_v<T, int32_t> || std::is_same_v<T, int64_t>,
    std::make_unsigned<std::conditional_t<std::is_integral_v<T>, T, int>>,
    TypeTag<T>>::type;

absl::Status DispatchProducts(KernelContext& context, const Products& p,
                              const TensorView& a, const TensorView& b,
                              const TensorView& bias, const TensorView& out) {
  return DispatchWithComplex(out.spec->dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, bool>) {
      return UnsupportedDType<absl::Status>();
    } else {
      using U = Arithmetic<T>;
      return RunProducts<U>(context, p, a.as<U>(), b.as<U>(), out.as<U>(),
                            bias.as<U>(),
                            bias.present() ? bias.spec->strides[0] : 0);
    }
  });
}

}  // namespace

HOLDFAST_CPU_KERNEL(matmul) {
  const Products p =
      MatmulProducts(*inputs[0].spec, *inputs[1].spec, *outputs[0].spec);
  return DispatchProducts(context, p, inputs[0], inputs[1], {}, outputs[0]);
}

HOLDFAST_CPU_KERNEL(linear) {
  const Products p = LinearProducts(*inputs[0].spec, *inputs[1].spec);
  return DispatchProducts(context, p, inputs[0], inputs[1], inputs[2],
                          outputs[0]);
}

}  // namespace holdfast
