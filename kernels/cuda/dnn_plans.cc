// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/dnn_plans.h"

#include <algorithm>
#include <utility>

namespace holdfast::cuda {
namespace {

constexpr int64_t kMostWorkspace = int64_t{1} << 30;  // bytes
// Of a program whose sizes change all the time; then they are made again.
constexpr size_t kMostPlans = 4096;
constexpr size_t kTimedPlans = 10;

// Device time between two places in a stream.
class StreamTimer {
 public:
  StreamTimer() {
    cudaEventCreate(&start_);
    cudaEventCreate(&end_);
  }
  ~StreamTimer() {
    if (start_ != nullptr) cudaEventDestroy(start_);
    if (end_ != nullptr) cudaEventDestroy(end_);
  }
  StreamTimer(const StreamTimer&) = delete;
  StreamTimer& operator=(const StreamTimer&) = delete;

  void Start(cudaStream_t stream) { cudaEventRecord(start_, stream); }
  // Milliseconds since Start; waits for them. Negative after an error.
  float Stop(cudaStream_t stream) {
    float milliseconds = -1;
    if (cudaEventRecord(end_, stream) != cudaSuccess ||
        cudaEventSynchronize(end_) != cudaSuccess ||
        cudaEventElapsedTime(&milliseconds, start_, end_) != cudaSuccess) {
      return -1;
    }
    return milliseconds;
  }

 private:
  cudaEvent_t start_ = nullptr, end_ = nullptr;
};

// Whether launches on the stream are being recorded. If so the recording comes
// to nothing: it would not do what the op does.
bool SpoilRecording(cudaStream_t stream) {
  cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
  cudaStreamIsCapturing(stream, &status);
  if (status == cudaStreamCaptureStatusNone) return false;
  cudaStreamSynchronize(stream);  // which nobody may do meanwhile
  return true;
}

}  // namespace

std::optional<DnnPlan> DnnPlans::Fastest(
    std::vector<DnnPlan> plans, absl::Span<const DnnPointer> tensors,
    cudaStream_t stream, absl::FunctionRef<void*(size_t)> scratch) {
  if (plans.empty()) return std::nullopt;
  int64_t most = 0;
  for (const DnnPlan& plan : plans) most = std::max(most, plan.workspace());
  void* const workspace = most > 0 ? scratch(most) : nullptr;
  StreamTimer timer;
  size_t best = 0;
  float best_time = -1;
  for (size_t i = 0; i < plans.size(); ++i) {
    if (plans[i].workspace() > 0 && workspace == nullptr) continue;
    // The first run loads the kernel.
    bool ran = true;
    for (int run = 0; run < 2 && ran; ++run) {
      timer.Start(stream);
      ran = plans[i].Run(dnn_, dnn_.handle, tensors, workspace) ==
            CUDNN_STATUS_SUCCESS;
    }
    const float time = ran ? timer.Stop(stream) : -1;
    if (time >= 0 && (best_time < 0 || time < best_time)) {
      best_time = time;
      best = i;
    }
  }
  return std::move(plans[best]);
}

bool DnnPlans::Run(const DnnProblem& problem,
                   absl::Span<const DnnPointer> tensors, cudaStream_t stream,
                   absl::FunctionRef<void*(size_t)> scratch) {
  if (dnn_.cudnnSetStream(dnn_.handle, stream) != CUDNN_STATUS_SUCCESS) {
    return false;
  }
  const DnnProblem::Key key = problem.key();
  auto it = plans_.find(key);
  if (it == plans_.end()) {
    if (SpoilRecording(stream)) return false;
    if (plans_.size() >= kMostPlans) {
      cudaDeviceSynchronize();  // plans own kernels that may be running
      plans_.clear();
      ++dropped_;
    }
    const bool benchmark = problem.numerics.benchmark;
    std::vector<DnnPlan> found =
        FindDnnPlans(dnn_, {dnn_.handle, nullptr}, problem,
                     benchmark ? kTimedPlans : 1, kMostWorkspace);
    std::optional<DnnPlan> plan;
    if (found.size() > 1) {
      plan = Fastest(std::move(found), tensors, stream, scratch);
    } else if (!found.empty()) {
      plan = std::move(found.front());
    }
    it = plans_.emplace(key, std::move(plan)).first;
  }
  if (!it->second) return false;
  void* workspace = nullptr;
  if (it->second->workspace() > 0) {
    workspace = scratch(it->second->workspace());
    if (workspace == nullptr) return false;
  }
  if (it->second->Run(dnn_, dnn_.handle, tensors, workspace) ==
      CUDNN_STATUS_SUCCESS) {
    return true;
  }
  if (SpoilRecording(stream)) return false;
  it->second.reset();  // what cuDNN promised and refuses is not asked again
  return false;
}

}  // namespace holdfast::cuda
