// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Row-major C = A B is column-major C' = B' A': the library gets B first.
#include "kernels/cuda/blas_product.h"

#include <library_types.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/cuda_libraries.h"
#include "kernels/cuda/launch.h"
#include "ops/complex.h"

namespace holdfast::cuda {
namespace {

constexpr size_t kWorkspaceBytes = size_t{32} << 20;  // as cuBLAS on Hopper

// Types of elements, of the sum, and of the factors alpha and beta.
struct Types {
  cudaDataType_t element, scale;
  cublasComputeType_t compute;
};

// `tf32`: float32 factors may be rounded.
absl::StatusOr<Types> TypesOf(DType dtype, bool tf32) {
  switch (dtype) {
    case DType::kFloat16:
      return Types{CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F};
    case DType::kBFloat16:
      return Types{CUDA_R_16BF, CUDA_R_32F, CUBLAS_COMPUTE_32F};
    case DType::kFloat32:
      return Types{CUDA_R_32F, CUDA_R_32F,
                   tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F};
    case DType::kFloat64:
      return Types{CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F};
    case DType::kComplex64:
      return Types{CUDA_C_32F, CUDA_C_32F,
                   tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F};
    case DType::kComplex128:
      return Types{CUDA_C_64F, CUDA_C_64F, CUBLAS_COMPUTE_64F};
    default:
      return absl::InternalError("no cuBLASLt product of this dtype");
  }
}

// Descriptors that end with the call.
class Descriptors {
 public:
  explicit Descriptors(const BlasLibrary* blas) : blas_(blas) {}
  ~Descriptors() {
    for (cublasLtMatrixLayout_t layout : layouts_) {
      blas_->cublasLtMatrixLayoutDestroy(layout);
    }
    if (operation != nullptr) blas_->cublasLtMatmulDescDestroy(operation);
    if (preference != nullptr) {
      blas_->cublasLtMatmulPreferenceDestroy(preference);
    }
  }

  // A column-major matrix, `count` of them `stride` elements apart.
  cublasStatus_t Layout(cudaDataType_t type, int64_t rows, int64_t cols,
                        int64_t ld, int64_t count, int64_t stride,
                        cublasLtMatrixLayout_t* layout) {
    cublasStatus_t s =
        blas_->cublasLtMatrixLayoutCreate(layout, type, rows, cols, ld);
    if (s != CUBLAS_STATUS_SUCCESS) return s;
    layouts_.push_back(*layout);
    const int32_t batch = static_cast<int32_t>(count);
    s = blas_->cublasLtMatrixLayoutSetAttribute(
        *layout, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &batch, sizeof(batch));
    if (s != CUBLAS_STATUS_SUCCESS) return s;
    return blas_->cublasLtMatrixLayoutSetAttribute(
        *layout, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &stride,
        sizeof(stride));
  }

  cublasLtMatmulDesc_t operation = nullptr;
  cublasLtMatmulPreference_t preference = nullptr;

 private:
  const BlasLibrary* const blas_;
  std::vector<cublasLtMatrixLayout_t> layouts_;
};

absl::Status Told(const BlasLibrary& blas, cublasStatus_t status,
                  const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return absl::OkStatus();
  return absl::InternalError(absl::StrCat(
      "[cuda] ", what, ": ", blas.cublasLtGetStatusString(status), "."));
}

// The factors 1 and `add`, in the scale type.
struct Factors {
  alignas(16) char alpha[16] = {};
  alignas(16) char beta[16] = {};

  Factors(cudaDataType_t type, bool add) {
    if (type == CUDA_R_64F || type == CUDA_C_64F) {
      *reinterpret_cast<double*>(alpha) = 1;
      *reinterpret_cast<double*>(beta) = add ? 1 : 0;
    } else {
      *reinterpret_cast<float*>(alpha) = 1;
      *reinterpret_cast<float*>(beta) = add ? 1 : 0;
    }
  }
};

// What products are added to.
struct Addend {
  bool output = false;         // what is there
  const void* bias = nullptr;  // or this, each row
};

// One strided batch. Elements are `item` bytes.
struct Batch {
  int64_t count = 1, a_step = 0, b_step = 0, item = 4;
  const char* a;
  const char* b;
  char* c;
  Addend addend;
};

// What all matrices of a batch are aligned to; the library would take 256 bytes
// for granted.
uint32_t AlignmentOf(const char* first, int64_t step_bytes) {
  const uint64_t bits = reinterpret_cast<uintptr_t>(first) |
                        static_cast<uint64_t>(step_bytes) | 256;
  return static_cast<uint32_t>(bits & (~bits + 1));
}

// Of the three matrices of a batch, and of what is written beside the bias.
struct Alignments {
  uint32_t a, b, c, d;
};

Alignments AlignmentsOf(const Products& p, const Batch& batch) {
  const uint32_t c = AlignmentOf(batch.c, p.m * p.n * batch.item);
  const char* const bias = static_cast<const char*>(batch.addend.bias);
  return {AlignmentOf(batch.a, batch.a_step * batch.item),
          AlignmentOf(batch.b, batch.b_step * batch.item), c,
          bias == nullptr ? c : std::min(c, AlignmentOf(bias, 0))};
}

cublasStatus_t SetAlignment(const BlasLibrary& blas, const Alignments& of,
                            cublasLtMatmulPreference_t preference) {
  const struct {
    cublasLtMatmulPreferenceAttributes_t attribute;
    uint32_t value;
  } settings[] = {
      {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, of.b},  // B comes first
      {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, of.a},
      {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, of.c},
      {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, of.d},
  };
  for (const auto& setting : settings) {
    const cublasStatus_t status = blas.cublasLtMatmulPreferenceSetAttribute(
        preference, setting.attribute, &setting.value, sizeof(setting.value));
    if (status != CUBLAS_STATUS_SUCCESS) return status;
  }
  return CUBLAS_STATUS_SUCCESS;
}

struct Layouts {
  cublasLtMatrixLayout_t a = nullptr, b = nullptr, c = nullptr;
};

// The library's choice for matrices of these layouts.
absl::Status Choose(const BlasLibrary& blas, Descriptors* d,
                    const Layouts& layouts, const Alignments& alignments,
                    cublasLtMatmulAlgo_t* algorithm) {
  cublasStatus_t status = blas.cublasLtMatmulPreferenceCreate(&d->preference);
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = blas.cublasLtMatmulPreferenceSetAttribute(
        d->preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
        &kWorkspaceBytes, sizeof(kWorkspaceBytes));
  }
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = SetAlignment(blas, alignments, d->preference);
  }
  cublasLtMatmulHeuristicResult_t found;
  int count = 0;
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = blas.cublasLtMatmulAlgoGetHeuristic(
        blas.handle, d->operation, layouts.b, layouts.a, layouts.c, layouts.c,
        d->preference, 1, &found, &count);
  }
  if (status == CUBLAS_STATUS_NOT_SUPPORTED ||
      (status == CUBLAS_STATUS_SUCCESS && count == 0)) {
    return absl::UnimplementedError(
        "[cuda] cublasLtMatmulAlgoGetHeuristic: no algorithm.");
  }
  if (status == CUBLAS_STATUS_SUCCESS) *algorithm = found.algo;
  return Told(blas, status, "cublasLtMatmulAlgoGetHeuristic");
}

// The choice, the former one where there is one.
absl::Status ChooseOnce(const BlasLibrary& blas, BlasChoices* choices,
                        const Types& types, const Products& p,
                        const BlasLayout& la, const BlasLayout& lb,
                        const Batch& batch, Descriptors* d,
                        const Layouts& layouts,
                        cublasLtMatmulAlgo_t* algorithm) {
  constexpr size_t kMostChoices = 4096;
  const Alignments of = AlignmentsOf(p, batch);
  const BlasKey key = {types.element, types.compute,
                       la.transposed, lb.transposed,
                       p.m,           p.n,
                       p.k,           la.ld,
                       lb.ld,         batch.count,
                       batch.a_step,  batch.b_step,
                       of.a,          of.b,
                       of.c,          batch.addend.bias == nullptr ? 0 : of.d};
  const auto it = choices->find(key);
  if (it != choices->end()) {
    *algorithm = it->second;
    return absl::OkStatus();
  }
  absl::Status s = Choose(blas, d, layouts, of, algorithm);
  if (!s.ok()) return s;
  if (choices->size() >= kMostChoices) choices->clear();
  choices->emplace(key, *algorithm);
  return absl::OkStatus();
}

// Adding the bias is the operation's last step. Rows are the library's columns.
cublasStatus_t SetBias(const BlasLibrary& blas, const void* bias,
                       cublasLtMatmulDesc_t operation) {
  const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
  const cublasStatus_t status = blas.cublasLtMatmulDescSetAttribute(
      operation, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof(epilogue));
  if (status != CUBLAS_STATUS_SUCCESS) return status;
  return blas.cublasLtMatmulDescSetAttribute(
      operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias, sizeof(bias));
}

absl::Status RunBatch(KernelContext& context, const BlasLibrary& blas,
                      BlasChoices* choices, const Types& types,
                      const Products& p, const BlasLayout& la,
                      const BlasLayout& lb, const Batch& batch,
                      void* workspace) {
  Descriptors d(&blas);
  absl::Status s = Told(
      blas,
      blas.cublasLtMatmulDescCreate(&d.operation, types.compute, types.scale),
      "cublasLtMatmulDescCreate");
  if (!s.ok()) return s;
  // The first operand is B': as it lies it is that, or its transpose.
  const cublasOperation_t first = lb.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  const cublasOperation_t second = la.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
  cublasStatus_t status = blas.cublasLtMatmulDescSetAttribute(
      d.operation, CUBLASLT_MATMUL_DESC_TRANSA, &first, sizeof(first));
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = blas.cublasLtMatmulDescSetAttribute(
        d.operation, CUBLASLT_MATMUL_DESC_TRANSB, &second, sizeof(second));
  }
  if (status == CUBLAS_STATUS_SUCCESS && batch.addend.bias != nullptr) {
    status = SetBias(blas, batch.addend.bias, d.operation);
  }
  Layouts layouts;
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = d.Layout(types.element, lb.transposed ? p.k : p.n,
                      lb.transposed ? p.n : p.k, lb.ld, batch.count,
                      batch.b_step, &layouts.b);
  }
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = d.Layout(types.element, la.transposed ? p.m : p.k,
                      la.transposed ? p.k : p.m, la.ld, batch.count,
                      batch.a_step, &layouts.a);
  }
  if (status == CUBLAS_STATUS_SUCCESS) {
    status = d.Layout(types.element, p.n, p.m, p.n, batch.count, p.m * p.n,
                      &layouts.c);
  }
  if (s = Told(blas, status, "a product's descriptors"); !s.ok()) return s;
  cublasLtMatmulAlgo_t algorithm;
  s = ChooseOnce(blas, choices, types, p, la, lb, batch, &d, layouts,
                 &algorithm);
  if (!s.ok()) return s;
  const Factors factors(types.scale, batch.addend.output);
  return Told(
      blas,
      blas.cublasLtMatmul(blas.handle, d.operation, factors.alpha, batch.b,
                          layouts.b, batch.a, layouts.a, factors.beta, batch.c,
                          layouts.c, batch.c, layouts.c, &algorithm, workspace,
                          kWorkspaceBytes, StreamOf(context)),
      "cublasLtMatmul");
}

// An operand as it lies, or a contiguous copy of it.
struct LaidOut {
  BlasLayout layout;
  const char* data = nullptr;
  Dims batch;  // strides
  TensorSpec spec;
};

absl::Status LayOut(KernelContext& context, const Products& p,
                    const TensorView& view, int64_t rows, int64_t cols,
                    int64_t row, int64_t col, const Dims& batch,
                    LaidOut* result) {
  result->data = view.as<char>();
  result->batch = batch;
  if (FindBlasLayout(rows, cols, row, col, &result->layout)) {
    return absl::OkStatus();
  }
  TensorSpec from;
  from.dtype = view.spec->dtype;
  from.shape = p.batch;
  from.strides = batch;
  from.shape.push_back(rows);
  from.shape.push_back(cols);
  from.strides.push_back(row);
  from.strides.push_back(col);
  TensorView copy;
  absl::Status s = MakeContiguous(context, {view.data, &from}, from.dtype,
                                  &result->spec, &copy);
  if (!s.ok()) return s;
  result->data = copy.as<char>();
  result->layout = {false, std::max<int64_t>(cols, 1)};
  const Dims& strides = copy.spec->strides;
  result->batch.assign(strides.begin(), strides.end() - 2);
  return absl::OkStatus();
}

absl::Status RunBatches(KernelContext& context, const Products& p,
                        const TensorView& a, const TensorView& b,
                        const Addend& addend, const TensorView& out) {
  CudaLibraries& libraries = Cuda(context).libraries();
  absl::StatusOr<const BlasLibrary*> blas = libraries.blas();
  if (!blas.ok()) return blas.status();
  absl::StatusOr<Types> types =
      TypesOf(out.spec->dtype, libraries.numerics.matmul_tf32);
  if (!types.ok()) return types.status();
  LaidOut la, lb;
  absl::Status s =
      LayOut(context, p, a, p.m, p.k, p.a_row, p.a_col, p.a_batch, &la);
  if (s.ok()) {
    s = LayOut(context, p, b, p.k, p.n, p.b_row, p.b_col, p.b_batch, &lb);
  }
  if (!s.ok()) return s;
  void* const workspace = context.Scratch(kWorkspaceBytes);
  if (workspace == nullptr) return NoScratch();
  // The last batch dimension is the library's, the others are ours.
  const int64_t item = static_cast<int64_t>(ItemSize(out.spec->dtype));
  Batch batch;
  batch.item = item;
  batch.addend = addend;
  const int outer = static_cast<int>(p.batch.size()) - 1;
  if (outer >= 0) {
    batch.count = p.batch[outer];
    batch.a_step = la.batch[outer];
    batch.b_step = lb.batch[outer];
  }
  for (int64_t i = 0; i < p.count() / batch.count; ++i) {
    int64_t at_a = 0, at_b = 0, rest = i;
    for (int d = outer - 1; d >= 0; --d) {
      at_a += rest % p.batch[d] * la.batch[d];
      at_b += rest % p.batch[d] * lb.batch[d];
      rest /= p.batch[d];
    }
    batch.a = la.data + at_a * item;
    batch.b = lb.data + at_b * item;
    batch.c = out.as<char>() + i * batch.count * p.m * p.n * item;
    s = RunBatch(context, **blas, &libraries.blas_choices(), *types, p,
                 la.layout, lb.layout, batch, workspace);
    if (!s.ok()) return s;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status BlasProducts(KernelContext& context, const Products& p,
                          const TensorView& a, const TensorView& b, bool add,
                          const TensorView& out) {
  return RunBatches(context, p, a, b, {add, nullptr}, out);
}

absl::Status BlasProductWithBias(KernelContext& context, const Products& p,
                                 const TensorView& a, const TensorView& b,
                                 const TensorView& bias,
                                 const TensorView& out) {
  return RunBatches(context, p, a, b, {false, bias.data}, out);
}

}  // namespace holdfast::cuda
