// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cuda_libraries.h"

#include <dlfcn.h>
#include <glob.h>
#include <stdlib.h>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/dnn_plans.h"
#include "kernels/cuda/dnn_rnn.h"

namespace holdfast::cuda {
namespace {

struct Wanted {
  const char* function;
  void** place;
};

// Opens `file` wherever it is; null where it is nowhere, and *error then says
// what the loader said first.
void* Load(const std::string& file, std::string* error) {
  for (const std::string& path : CudaLibraryPaths(file)) {
    void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library != nullptr) return library;
    if (error != nullptr && error->empty()) *error = dlerror();
  }
  return nullptr;
}

// Opens `file` and finds every function in it.
absl::Status Open(const std::string& file, const char* name,
                  const char* package, const std::vector<Wanted>& wanted) {
  std::string first_error;
  void* const library = Load(file, &first_error);
  if (library == nullptr) {
    return absl::FailedPreconditionError(
        absl::StrCat("[cuda] this op needs ", name, ", and ", file,
                     " cannot be loaded: ", first_error,
                     ". Install it with the CUDA toolkit "
                     "or `pip install ",
                     package, "`, or add its folder to LD_LIBRARY_PATH."));
  }
  for (const Wanted& one : wanted) {
    *one.place = dlsym(library, one.function);
    if (*one.place == nullptr) {
      return absl::FailedPreconditionError(
          absl::StrCat("[cuda] ", file, " lacks ", one.function,
                       ": another version of ", name, " is needed."));
    }
  }
  return absl::OkStatus();
}

bool DnnIsOff() {
  static const bool off = [] {
    const char* wish = getenv("HOLDFAST_CUDNN");
    return wish != nullptr && absl::string_view(wish) == "off";
  }();
  return off;
}

}  // namespace

std::vector<std::string> CudaLibraryPaths(const std::string& file) {
  std::vector<std::string> paths = {file};
  const char* home = getenv("CUDA_HOME");
  paths.push_back(absl::StrCat(home == nullptr ? "/usr/local/cuda" : home,
                               "/lib64/", file));
  // Of every Python on the machine: their users chose the packages.
  for (const char* pattern :
       {"/usr/local/lib/python3*/dist-packages/nvidia/*/lib/",
        "/usr/local/lib/python3*/site-packages/nvidia/*/lib/",
        "/usr/lib/python3*/site-packages/nvidia/*/lib/",
        "/opt/*/lib/python3*/site-packages/nvidia/*/lib/"}) {
    glob_t found;
    if (glob(absl::StrCat(pattern, file).c_str(), 0, nullptr, &found) == 0) {
      for (size_t i = 0; i < found.gl_pathc; ++i) {
        paths.push_back(found.gl_pathv[i]);
      }
    }
    globfree(&found);
  }
  return paths;
}

absl::Status OpenDnn(DnnLibrary* dnn) {
  return Open("libcudnn.so.9", "cuDNN 9", "nvidia-cudnn-cu13",
              {
#define X(function) {#function, reinterpret_cast<void**>(&dnn->function)},
                  HOLDFAST_DNN_FUNCTIONS(X)
#undef X
              });
}

absl::Status OpenDnnRnn(DnnRnnLibrary* rnn) {
  return Open("libcudnn.so.9", "cuDNN 9", "nvidia-cudnn-cu13",
              {
#define X(function) {#function, reinterpret_cast<void**>(&rnn->function)},
                  HOLDFAST_DNN_RNN_FUNCTIONS(X)
#undef X
              });
}

absl::Status OpenDense(DenseLibrary* dense) {
  absl::Status s = Open(absl::StrCat("libcublas.so.", CUBLAS_VER_MAJOR),
                        "cuBLAS", "nvidia-cublas",
                        {
#define X(function) {#function, reinterpret_cast<void**>(&dense->function)},
                            HOLDFAST_TRIANGULAR_FUNCTIONS(X)
#undef X
                        });
  if (!s.ok()) return s;
  // cuSOLVER names these as libraries it needs, and Python packages may keep
  // them in other folders than its own: the loader takes what it has by name.
  Load(absl::StrCat("libnvJitLink.so.", CUBLAS_VER_MAJOR), nullptr);
  Load("libcusparse.so.12", nullptr);
  return Open(absl::StrCat("libcusolver.so.", CUSOLVER_VER_MAJOR), "cuSOLVER",
              "nvidia-cusolver",
              {
#define X(function) {#function, reinterpret_cast<void**>(&dense->function)},
                  HOLDFAST_SOLVER_FUNCTIONS(X)
#undef X
              });
}

CudaLibraries::CudaLibraries() = default;

CudaLibraries::~CudaLibraries() {
  dnn_plans_.reset();  // before the handle that they use
  dnn_recurrent_.reset();
  if (blas_.handle != nullptr) blas_.cublasLtDestroy(blas_.handle);
  if (dnn_.handle != nullptr) dnn_.cudnnDestroy(dnn_.handle);
}

absl::StatusOr<const BlasLibrary*> CudaLibraries::blas() {
  if (!blas_tried_) {
    blas_tried_ = true;
    blas_status_ = Open(absl::StrCat("libcublasLt.so.", CUBLAS_VER_MAJOR),
                        "cuBLASLt", "nvidia-cublas",
                        {
#define X(function) {#function, reinterpret_cast<void**>(&blas_.function)},
                            HOLDFAST_BLAS_FUNCTIONS(X)
#undef X
                        });
    if (blas_status_.ok()) {
      const cublasStatus_t status = blas_.cublasLtCreate(&blas_.handle);
      if (status != CUBLAS_STATUS_SUCCESS) {
        blas_.handle = nullptr;
        blas_status_ = absl::InternalError(absl::StrCat(
            "[cuda] cublasLtCreate: ", blas_.cublasLtGetStatusString(status)));
      }
    }
  }
  if (!blas_status_.ok()) return blas_status_;
  return &blas_;
}

absl::StatusOr<const DnnLibrary*> CudaLibraries::dnn() {
  if (!dnn_tried_) {
    dnn_tried_ = true;
    dnn_status_ = OpenDnn(&dnn_);
    if (dnn_status_.ok()) {
      const cudnnStatus_t status = dnn_.cudnnCreate(&dnn_.handle);
      if (status != CUDNN_STATUS_SUCCESS) {
        dnn_.handle = nullptr;
        dnn_status_ = absl::InternalError(absl::StrCat(
            "[cuda] cudnnCreate: ", dnn_.cudnnGetErrorString(status)));
      }
    }
  }
  if (!dnn_status_.ok()) return dnn_status_;
  return &dnn_;
}

absl::StatusOr<FftPlans*> CudaLibraries::ffts() {
  if (!fft_tried_) {
    fft_tried_ = true;
    fft_status_ = Open(absl::StrCat("libcufft.so.", CUFFT_VER_MAJOR), "cuFFT",
                       "nvidia-cufft",
                       {
#define X(function) {#function, reinterpret_cast<void**>(&fft_.function)},
                           HOLDFAST_FFT_FUNCTIONS(X)
#undef X
                       });
  }
  if (!fft_status_.ok()) return fft_status_;
  return &fft_plans_;
}

absl::StatusOr<const DenseLibrary*> CudaLibraries::dense() {
  if (!dense_tried_) {
    dense_tried_ = true;
    dense_status_ = OpenDense(&dense_);
    if (dense_status_.ok()) dense_status_ = dense_.MakeHandles();
  }
  if (!dense_status_.ok()) return dense_status_;
  return &dense_;
}

DnnPlans* CudaLibraries::dnn_plans() {
  if (DnnIsOff() || !numerics.cudnn || !dnn().ok()) return nullptr;
  if (dnn_plans_ == nullptr) {
    dnn_plans_ = std::make_unique<DnnPlans>(dnn_);
  }
  return dnn_plans_.get();
}

DnnRecurrent* CudaLibraries::dnn_recurrent(const DnnDeviceTraits& device) {
  if (!dnn_rnn_tried_) {
    dnn_rnn_tried_ = true;
    if (!DnnIsOff() && dnn().ok() && OpenDnnRnn(&dnn_rnn_).ok()) {
      dnn_recurrent_ = std::make_unique<DnnRecurrent>(dnn_, dnn_rnn_, device);
    }
  }
  return dnn_recurrent_.get();
}

uint64_t CudaLibraries::plans_dropped() const {
  return fft_plans_.dropped() +
         (dnn_plans_ == nullptr ? 0 : dnn_plans_->dropped());
}

}  // namespace holdfast::cuda
