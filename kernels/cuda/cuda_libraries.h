// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// CudaLibraries: cuBLASLt, cuDNN, cuFFT, cuSOLVER and cuBLAS, opened when an op
// first asks for them, so that a daemon starts where they are missing and only
// the ops that need them fail, with what is missing and how to get it. They are
// looked for as any shared library, in the toolkit, and in NVIDIA's Python
// packages. Thread-safety: worker thread only.
#ifndef HOLDFAST_KERNELS_CUDA_CUDA_LIBRARIES_H_
#define HOLDFAST_KERNELS_CUDA_CUDA_LIBRARIES_H_

#include <cublasLt.h>
#include <cudnn_adv.h>
#include <cudnn_graph.h>

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/cuda/dense_library.h"
#include "kernels/cuda/fft_plans.h"
#include "kernels/numerics.h"

namespace holdfast::cuda {

// X(function): what is called of each library.
#define HOLDFAST_BLAS_FUNCTIONS(X)        \
  X(cublasLtCreate)                       \
  X(cublasLtDestroy)                      \
  X(cublasLtGetStatusString)              \
  X(cublasLtMatmul)                       \
  X(cublasLtMatmulAlgoGetHeuristic)       \
  X(cublasLtMatmulDescCreate)             \
  X(cublasLtMatmulDescDestroy)            \
  X(cublasLtMatmulDescSetAttribute)       \
  X(cublasLtMatmulPreferenceCreate)       \
  X(cublasLtMatmulPreferenceDestroy)      \
  X(cublasLtMatmulPreferenceSetAttribute) \
  X(cublasLtMatrixLayoutCreate)           \
  X(cublasLtMatrixLayoutDestroy)          \
  X(cublasLtMatrixLayoutSetAttribute)
#define HOLDFAST_DNN_FUNCTIONS(X)  \
  X(cudnnCreate)                   \
  X(cudnnDestroy)                  \
  X(cudnnGetErrorString)           \
  X(cudnnGetVersion)               \
  X(cudnnSetStream)                \
  X(cudnnBackendCreateDescriptor)  \
  X(cudnnBackendDestroyDescriptor) \
  X(cudnnBackendSetAttribute)      \
  X(cudnnBackendGetAttribute)      \
  X(cudnnBackendFinalize)          \
  X(cudnnBackendExecute)

// Of recurrent layers, which are not in the graph API.
#define HOLDFAST_DNN_RNN_FUNCTIONS(X) \
  X(cudnnCreateDropoutDescriptor)     \
  X(cudnnCreateRNNDataDescriptor)     \
  X(cudnnCreateRNNDescriptor)         \
  X(cudnnCreateTensorDescriptor)      \
  X(cudnnDestroyDropoutDescriptor)    \
  X(cudnnDestroyRNNDataDescriptor)    \
  X(cudnnDestroyRNNDescriptor)        \
  X(cudnnDestroyTensorDescriptor)     \
  X(cudnnGetRNNTempSpaceSizes)        \
  X(cudnnGetRNNWeightParams)          \
  X(cudnnGetRNNWeightSpaceSize)       \
  X(cudnnGetTensorNdDescriptor)       \
  X(cudnnRNNBackwardData_v8)          \
  X(cudnnRNNBackwardWeights_v8)       \
  X(cudnnRNNForward)                  \
  X(cudnnSetDropoutDescriptor)        \
  X(cudnnSetRNNDataDescriptor)        \
  X(cudnnSetRNNDescriptor_v8)         \
  X(cudnnSetTensorNdDescriptor)

struct BlasLibrary {
#define X(function) decltype(&::function) function = nullptr;
  HOLDFAST_BLAS_FUNCTIONS(X)
#undef X
  cublasLtHandle_t handle = nullptr;
};

struct DnnLibrary {
#define X(function) decltype(&::function) function = nullptr;
  HOLDFAST_DNN_FUNCTIONS(X)
#undef X
  cudnnHandle_t handle = nullptr;
};

struct DnnRnnLibrary {
#define X(function) decltype(&::function) function = nullptr;
  HOLDFAST_DNN_RNN_FUNCTIONS(X)
#undef X
};

class DnnPlans;          // kernels/cuda/dnn_plans.h
class DnnRecurrent;      // kernels/cuda/dnn_rnn.h
struct DnnDeviceTraits;  // kernels/cuda/dnn_rnn.h

// What cuBLASLt chooses a product's algorithm by, and its choices so far:
// choosing takes longer than a small product.
using BlasKey = std::array<int64_t, 16>;
using BlasChoices = std::map<BlasKey, cublasLtMatmulAlgo_t>;

class CudaLibraries {
 public:
  CudaLibraries();
  ~CudaLibraries();
  CudaLibraries(const CudaLibraries&) = delete;
  CudaLibraries& operator=(const CudaLibraries&) = delete;

  // The library, opened; the same answer every time.
  absl::StatusOr<const BlasLibrary*> blas();
  BlasChoices& blas_choices() { return blas_choices_; }
  absl::StatusOr<const DnnLibrary*> dnn();
  // cuDNN's plans; null where it is missing or switched off
  // (HOLDFAST_CUDNN=off, Numerics::cudnn): own kernels take its place.
  DnnPlans* dnn_plans();
  // cuDNN's recurrent layers; null where it is missing, lacks one of their
  // functions or is switched off for good. Numerics::cudnn is the caller's: a
  // layer's gradient is computed by who computed the layer.
  DnnRecurrent* dnn_recurrent(const DnnDeviceTraits& device);

  // cuFFT's plans.
  absl::StatusOr<FftPlans*> ffts();
  // cuSOLVER and cuBLAS.
  absl::StatusOr<const DenseLibrary*> dense();

  // What they may do to the results of the op that runs.
  Numerics numerics;
  // Counts the times that plans were thrown away, with the kernels that a
  // recording may have of them.
  uint64_t plans_dropped() const;

 private:
  bool blas_tried_ = false, dnn_tried_ = false, fft_tried_ = false;
  bool dense_tried_ = false;
  absl::Status blas_status_, dnn_status_, fft_status_, dense_status_;
  BlasLibrary blas_;
  BlasChoices blas_choices_;
  DnnLibrary dnn_;
  std::unique_ptr<DnnPlans> dnn_plans_;
  bool dnn_rnn_tried_ = false;
  DnnRnnLibrary dnn_rnn_;
  std::unique_ptr<DnnRecurrent> dnn_recurrent_;
  FftLibrary fft_;
  FftPlans fft_plans_{fft_};
  DenseLibrary dense_;
};

// Fills in the functions: no GPU is needed for that.
absl::Status OpenDnn(DnnLibrary* dnn);
absl::Status OpenDnnRnn(DnnRnnLibrary* rnn);
absl::Status OpenDense(DenseLibrary* dense);

// Where a library of that file name may be: as it is (the loader's own search),
// in the toolkit, in Python packages.
std::vector<std::string> CudaLibraryPaths(const std::string& file);

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_CUDA_LIBRARIES_H_
