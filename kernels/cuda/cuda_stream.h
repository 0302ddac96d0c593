// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// CudaStream: one session's stream, the context of the kernel functions that
// launch on it, and the points recorded in it.
//
// A point is a number that counts up; behind each is an event until it is
// known to have passed. Scratch memory comes from the device's memory pool in
// the stream's order, so that the next op may have it at once.
// Thread-safety: points from any thread, the rest from the worker thread only.
#ifndef HOLDFAST_KERNELS_CUDA_CUDA_STREAM_H_
#define HOLDFAST_KERNELS_CUDA_CUDA_STREAM_H_

#include <cuda_runtime_api.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/cuda/cuda_context.h"
#include "kernels/cuda/cuda_libraries.h"

namespace holdfast {

class CudaStream final : public CudaContext {
 public:
  // `libraries` must outlive it.
  static absl::StatusOr<std::unique_ptr<CudaStream>> Make(
      CudaLibraries* libraries);
  // Waits for what is enqueued.
  ~CudaStream() override;

  cudaStream_t handle() const { return stream_; }

  // ---- KernelContext, CudaContext
  void* Scratch(size_t bytes) override;
  void* stream() const override { return stream_; }
  CudaLibraries& libraries() override { return *libraries_; }
  absl::Status CopyToHost(void* host, const void* device,
                          size_t bytes) override;
  absl::Status CopyToDevice(void* device, const void* host,
                            size_t bytes) override;
  absl::Status CopyOnDevice(void* to, const void* from, size_t bytes) override;
  absl::Status FillBytes(void* device, uint8_t value, size_t bytes) override;
  absl::Status LaunchStatus() override;

  // Ends a kernel function: its scratch memory is free for the next one.
  void FreeScratch();

  // ---- points
  // Of what is enqueued so far; 0 if that is done.
  uint64_t RecordPoint();
  bool PointPassed(uint64_t point);
  void WaitPoint(uint64_t point);
  // The error that ended the stream's work, if one did.
  absl::Status status();
  absl::Status Synchronize();

 private:
  CudaStream(CudaLibraries* libraries, cudaStream_t stream)
      : libraries_(libraries), stream_(stream) {}
  // REQUIRES: mutex_ held. Drops events that have passed.
  void Poll();
  void NoteError(cudaError_t error, const char* what);

  CudaLibraries* const libraries_;
  const cudaStream_t stream_;
  std::vector<void*> scratch_;  // of the kernel function that runs

  std::mutex mutex_;  // guards what follows
  std::deque<std::pair<uint64_t, cudaEvent_t>> pending_;
  std::vector<cudaEvent_t> spare_;
  uint64_t recorded_ = 0, passed_ = 0;
  absl::Status status_;
};

}  // namespace holdfast

#endif  // HOLDFAST_KERNELS_CUDA_CUDA_STREAM_H_
