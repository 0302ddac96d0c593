// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// CudaRecordings: what Device says of recordings, as CUDA graphs of one stream.
// A kernel function's launches, memory operations and scratch memory are
// captured from the stream; what reads host memory or waits cannot be.
// Thread-safety: worker thread only.
#ifndef HOLDFAST_KERNELS_CUDA_CUDA_RECORDINGS_H_
#define HOLDFAST_KERNELS_CUDA_CUDA_RECORDINGS_H_

#include <cuda_runtime_api.h>

#include <cstdint>
#include <map>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernels/cuda/cuda_libraries.h"

namespace holdfast::cuda {

class CudaRecordings {
 public:
  using Id = uint64_t;

  // `libraries` must outlive it.
  CudaRecordings(cudaStream_t stream, const CudaLibraries& libraries)
      : stream_(stream), libraries_(libraries) {}
  ~CudaRecordings();
  CudaRecordings(const CudaRecordings&) = delete;
  CudaRecordings& operator=(const CudaRecordings&) = delete;

  // Between Begin and End launches on the stream are noted.
  absl::Status Begin();
  absl::StatusOr<Id> End();
  bool noting() const { return noting_; }
  // `name` must live for ever: the op table's.
  void NoteOp(const char* name) { ops_.push_back(name); }

  // Enqueues it; its ops, until it is dropped. An error: nothing was enqueued.
  absl::StatusOr<const std::vector<const char*>*> Launch(Id id);
  // Launches of it that are enqueued are done all the same.
  void Drop(Id id);

 private:
  struct Recording {
    cudaGraphExec_t graph;
    uint64_t plans_dropped;  // of the libraries, when it was made
    std::vector<const char*> ops;
  };

  const cudaStream_t stream_;
  const CudaLibraries& libraries_;
  bool noting_ = false;
  uint64_t plans_dropped_ = 0;  // when noting began
  std::vector<const char*> ops_;
  Id next_ = 1;
  std::map<Id, Recording> recordings_;
};

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_CUDA_RECORDINGS_H_
