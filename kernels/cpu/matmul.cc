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
#include "kernels/cpu/gemm.h"
#include "kernels/cpu/linear.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/strided_cursor.h"
#include "kernels/cpu/tiled_lapack.h"
#include "kernels/dtype_dispatch.h"
#include "kernels/op_time.h"
#include "kernels/products.h"
#include "ops/op_id.h"

namespace holdfast::cpu {
namespace {

// Of a batch, products of no more multiplications are done on one thread each.
constexpr int64_t kSmallProduct = int64_t{1} << 21;

// Few results of long sums from a transposed b, the shape of a classifier's
// layer: oneDNN's matmul is faster than its sgemm.
bool PrefersMatmulPrimitive(const GemmCall<float>& call, bool transposed_b) {
  return transposed_b && call.bias_stride == 1 && call.k >= 512 &&
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
  BlasLayout a, b;
  const auto pack = [](const T* from, int64_t rows, int64_t cols, int64_t row,
                       int64_t col, T* to) {
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < cols; ++j) {
        to[i * cols + j] = from[i * row + j * col];
      }
    }
  };
  if (!FindBlasLayout(call.m, call.k, call.a_row, call.a_col, &a)) {
    pack(call.a, call.m, call.k, call.a_row, call.a_col, workspace);
    call.a = workspace;
    a = {false, call.k};
  }
  if (!FindBlasLayout(call.k, call.n, call.b_row, call.b_col, &b)) {
    T* packed = workspace + call.m * call.k;
    pack(call.b, call.k, call.n, call.b_row, call.b_col, packed);
    call.b = packed;
    b = {false, call.n};
  }
  if (std::max({call.m, call.n, call.k, a.ld, b.ld, call.c_row}) > kMax) {
    return absl::InvalidArgumentError(absl::StrCat(
        "[matmul] sides of complex matrices must be below 2^31. Got m=", call.m,
        ", n=", call.n, ", k=", call.k));
  }
  const lapack::OneThread one;
  tiled::Gemm(context, b.letter(), a.letter(), static_cast<int>(call.n),
              static_cast<int>(call.m), static_cast<int>(call.k), T(1), call.b,
              static_cast<int>(b.ld), call.a, static_cast<int>(a.ld),
              T(call.bias == nullptr ? 0 : 1), call.c,
              static_cast<int>(call.c_row));
  return absl::OkStatus();
}

// Rows of a product that the library computes at a time, `each` being the
// multiplications of one: nothing stops it. All of them where the whole is not
// much more than a piece may be.
int64_t RowsAtATime(const KernelContext& context, int64_t rows, int64_t each) {
  const int64_t most = OpTime::Multiplications(context.num_threads);
  if (rows <= 4 * most / std::max<int64_t>(each, 1)) return rows;
  // Each piece reads all of the other operand.
  constexpr int64_t kLeastRows = 64;
  return std::max(kLeastRows, most / each / kLeastRows * kLeastRows);
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
    Dot(context, call);
    return absl::OkStatus();
  }
  if constexpr (std::is_same_v<T, float>) {
    BlasLayout a, b;
    if (FindBlasLayout(call.m, call.k, call.a_row, call.a_col, &a) &&
        FindBlasLayout(call.k, call.n, call.b_row, call.b_col, &b)) {
      if (PrefersMatmulPrimitive(call, b.transposed)) {
        return MatmulPrimitive(context, call);
      }
      for (int64_t i = 0; call.bias != nullptr && i < call.m; ++i) {
        for (int64_t j = 0; j < call.n; ++j) {
          call.c[i * call.c_row + j] = call.bias[j * call.bias_stride];
        }
      }
      const float beta = call.bias == nullptr ? 0.0f : 1.0f;
      UseDnnlThreads(context, call.m * call.n * call.k);
      const int64_t rows = RowsAtATime(context, call.m, call.n * call.k);
      for (int64_t i = 0; i < call.m; i += rows) {
        if (i > 0 && context.Stopped()) break;
        const dnnl_status_t status =
            dnnl_sgemm(a.letter(), b.letter(), std::min(rows, call.m - i),
                       call.n, call.k, 1.0f, call.a + i * call.a_row, a.ld,
                       call.b, b.ld, beta, call.c + i * call.c_row, call.c_row);
        if (status != dnnl_success) {
          return absl::InternalError(absl::StrCat("oneDNN: sgemm: ", status));
        }
      }
      return absl::OkStatus();
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
  FirstFailure failure;
  const auto run = [&](KernelContext& inner, int64_t begin, int64_t end) {
    GemmCall<T> mine = call;
    StridedCursor<2> at(p.batch, {p.a_batch.data(), p.b_batch.data()}, begin);
    for (int64_t i = begin; i < end; ++i, at.Next()) {
      if (inner.Stopped()) return;
      mine.a = a + at[0];
      mine.b = b + at[1];
      mine.c = c + i * p.m * p.n;
      absl::Status s = Product<T>(inner, mine, [&]() -> void* {
        return workspaces + omp_get_thread_num() % threads * workspace_bytes;
      });
      if (!s.ok()) {
        failure.Note(i, std::move(s));
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
    return failure.Take();
  }
  UseDnnlThreads(context);
  ParallelFor(context, count, std::max<int64_t>(1, 65536 / cost),
              [&](int64_t begin, int64_t end) {
                SingleThread inner;
                run(inner, begin, end);
              });
  return failure.Take();
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

absl::Status Linear(KernelContext& context, const TensorView& input,
                    const TensorView& weight, const TensorView& bias,
                    const TensorView& output) {
  const Products p = LinearProducts(*input.spec, *weight.spec);
  return DispatchProducts(context, p, input, weight, bias, output);
}

HOLDFAST_CPU_KERNEL(linear) {
  return Linear(context, inputs[0], inputs[1], inputs[2], outputs[0]);
}

}  // namespace holdfast::cpu
