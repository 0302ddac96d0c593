// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cuda_recordings.h"

#include <utility>

#include "kernels/cuda/cuda_error.h"

namespace holdfast::cuda {

CudaRecordings::~CudaRecordings() {
  for (auto& [id, recording] : recordings_) {
    cudaGraphExecDestroy(recording.graph);
  }
}

absl::Status CudaRecordings::Begin() {
  ops_.clear();
  plans_dropped_ = libraries_.plans_dropped();
  // Relaxed: the libraries may look after memory of their own meanwhile.
  absl::Status status =
      CudaStatus(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeRelaxed),
                 "cudaStreamBeginCapture");
  noting_ = status.ok();
  return status;
}

absl::StatusOr<CudaRecordings::Id> CudaRecordings::End() {
  noting_ = false;
  cudaGraph_t graph = nullptr;
  cudaError_t error = cudaStreamEndCapture(stream_, &graph);
  cudaGraphExec_t made = nullptr;
  if (error == cudaSuccess) error = cudaGraphInstantiate(&made, graph, 0);
  if (graph != nullptr) cudaGraphDestroy(graph);
  if (error != cudaSuccess) {
    cudaGetLastError();  // told by the status, not by the next launch
    return CudaStatus(error, "recording launches");
  }
  if (plans_dropped_ != libraries_.plans_dropped()) {
    cudaGraphExecDestroy(made);
    return absl::FailedPreconditionError("[cuda] its plans are gone");
  }
  recordings_[next_] = {made, plans_dropped_, std::move(ops_)};
  ops_.clear();
  return next_++;
}

absl::StatusOr<const std::vector<const char*>*> CudaRecordings::Launch(Id id) {
  const auto it = recordings_.find(id);
  if (it == recordings_.end()) {
    return absl::NotFoundError("[cuda] there is no such recording");
  }
  if (it->second.plans_dropped != libraries_.plans_dropped()) {
    return absl::FailedPreconditionError("[cuda] its plans are gone");
  }
  const cudaError_t error = cudaGraphLaunch(it->second.graph, stream_);
  if (error != cudaSuccess) {
    cudaGetLastError();
    return CudaStatus(error, "cudaGraphLaunch");
  }
  return &it->second.ops;
}

void CudaRecordings::Drop(Id id) {
  const auto it = recordings_.find(id);
  if (it == recordings_.end()) return;
  cudaGraphExecDestroy(it->second.graph);
  recordings_.erase(it);
}

}  // namespace holdfast::cuda
