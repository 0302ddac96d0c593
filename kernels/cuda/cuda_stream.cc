// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cuda_stream.h"

#include <algorithm>

#include "absl/memory/memory.h"
#include "kernels/cuda/cuda_error.h"

namespace holdfast::cuda {

namespace {

// CUDA counts down from `least` (0, which is also the default) to `greatest`
// (-5). The usual priority is in the middle, so that there is room below.
int LevelOf(int priority) {
  int least = 0, greatest = 0;
  if (cudaDeviceGetStreamPriorityRange(&least, &greatest) != cudaSuccess) {
    cudaGetLastError();
    return 0;
  }
  const int usual = (least + greatest) / 2;
  return std::clamp(usual - priority, greatest, least);
}

}  // namespace

absl::StatusOr<std::unique_ptr<CudaStream>> CudaStream::Make(
    int priority, CudaLibraries* libraries, Device* host, DeviceHealth* health,
    EventClock* clock) {
  cudaStream_t stream = nullptr;
  absl::Status s =
      CudaStatus(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking,
                                              LevelOf(priority)),
                 "cudaStreamCreate");
  if (!s.ok()) return s;
  return absl::WrapUnique(
      new CudaStream(libraries, host, health, clock, stream));
}

CudaStream::~CudaStream() {
  FreeScratch();
  if (first_ != nullptr) cudaFreeAsync(first_, stream_);
  cudaStreamSynchronize(stream_);
  for (const Pending& pending : pending_) cudaEventDestroy(pending.event);
  for (const Pending& passed : timed_) cudaEventDestroy(passed.event);
  for (cudaEvent_t event : spare_) cudaEventDestroy(event);
  for (cudaEvent_t event : spare_timed_) cudaEventDestroy(event);
  cudaStreamDestroy(stream_);
}

void* CudaStream::Scratch(size_t bytes) {
  void* data = nullptr;
  if (cudaMallocAsync(&data, bytes, stream_) != cudaSuccess) {
    cudaGetLastError();  // told by the null, not by the next launch
    return nullptr;
  }
  scratch_.push_back(data);
  return data;
}

void CudaStream::FreeScratch() {
  for (void* data : scratch_) cudaFreeAsync(data, stream_);
  scratch_.clear();
}

absl::Status CudaStream::MustRun() const {
  if (!recordings_.noting()) return absl::OkStatus();
  return absl::FailedPreconditionError(
      "[cuda] an op that copies from or to the host cannot be recorded");
}

absl::Status CudaStream::CopyToHost(void* host, const void* device,
                                    size_t bytes) {
  if (absl::Status s = MustRun(); !s.ok()) return s;
  if (bytes > 0) {
    absl::Status s = CudaStatus(
        cudaMemcpyAsync(host, device, bytes, cudaMemcpyDeviceToHost, stream_),
        "copy to the host");
    if (!s.ok()) return s;
  }
  return Synchronize();
}

// From pageable memory: the driver has its own copy when it returns.
absl::Status CudaStream::CopyToDevice(void* device, const void* host,
                                      size_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  if (absl::Status s = MustRun(); !s.ok()) return s;
  return CudaStatus(
      cudaMemcpyAsync(device, host, bytes, cudaMemcpyHostToDevice, stream_),
      "copy to the device");
}

absl::Status CudaStream::CopyOnDevice(void* to, const void* from,
                                      size_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  return CudaStatus(
      cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_),
      "copy on the device");
}

absl::Status CudaStream::FillBytes(void* device, uint8_t value, size_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  return CudaStatus(cudaMemsetAsync(device, value, bytes, stream_), "memset");
}

absl::Status CudaStream::LaunchStatus() {
  return CudaStatus(cudaGetLastError(), "kernel launch");
}

namespace {

__global__ void SetFirst(PhiloxState* first, PhiloxState value) {
  *first = value;
}

}  // namespace

absl::Status CudaStream::BeginRecording() {
  if (first_ == nullptr) {
    absl::Status s = CudaStatus(
        cudaMallocAsync(&first_, sizeof(*first_), stream_), "cudaMallocAsync");
    if (!s.ok()) return s;
  }
  absl::Status s = recordings_.Begin();
  if (s.ok()) first_draw = first_;
  return s;
}

absl::StatusOr<CudaRecordings::Id> CudaStream::EndRecording() {
  first_draw = nullptr;
  return recordings_.End();
}

// The stream's order keeps the state until the recording before is done.
absl::Status CudaStream::Replay(CudaRecordings::Id recording,
                                std::optional<PhiloxState> first) {
  if (first) {
    SetFirst<<<1, 1, 0, stream_>>>(first_, *first);
    if (absl::Status s = LaunchStatus(); !s.ok()) return s;
  }
  absl::StatusOr<const std::vector<const char*>*> ops =
      recordings_.Launch(recording);
  if (!ops.ok()) return ops.status();
  std::lock_guard<std::mutex> lock(mutex_);
  for (const char* op : **ops) trail_.Note(op);
  return absl::OkStatus();
}

// ---- points

void CudaStream::NoteOp(const char* name) {
  if (recordings_.noting()) return recordings_.NoteOp(name);
  std::lock_guard<std::mutex> lock(mutex_);
  trail_.Note(name);
}

void CudaStream::NoteError(cudaError_t error, const char* what) {
  if (error == cudaSuccess || !status_.ok()) return;
  const std::string suspects = trail_.Since(ops_done_);
  status_ = CudaStatus(
      error, suspects.empty() ? what : absl::StrCat("one of ", suspects));
  if (IsSticky(error)) health_->Lose(status_);
}

void CudaStream::PassFirst(cudaError_t error) {
  const Pending first = pending_.front();
  pending_.pop_front();
  NoteError(error, "the work before");
  if (error == cudaSuccess) ops_done_ = first.ops;
  passed_ = first.point;
  if (first.recorded != 0) {
    timed_.push_back(first);
  } else {
    spare_.push_back(first.event);
  }
}

// A device that failed does no more work: its points have passed.
void CudaStream::Poll() {
  while (!pending_.empty()) {
    const cudaError_t error = cudaEventQuery(pending_.front().event);
    if (error == cudaErrorNotReady) return;
    PassFirst(error);
  }
}

cudaError_t CudaStream::RecordEvent(bool timed, cudaEvent_t* event) {
  std::vector<cudaEvent_t>& spare = timed ? spare_timed_ : spare_;
  cudaError_t error = cudaSuccess;
  if (!spare.empty()) {
    *event = spare.back();
    spare.pop_back();
  } else {
    error = cudaEventCreateWithFlags(
        event, timed ? cudaEventDefault : cudaEventDisableTiming);
    if (error != cudaSuccess) return error;
  }
  error = cudaEventRecord(*event, stream_);
  if (error != cudaSuccess) spare.push_back(*event);
  return error;
}

uint64_t CudaStream::RecordPoint(bool timed) {
  std::lock_guard<std::mutex> lock(mutex_);
  Poll();
  cudaEvent_t event = nullptr;
  const int64_t recorded = timed ? EventClock::Now() : 0;
  cudaError_t error = RecordEvent(timed, &event);
  if (error != cudaSuccess) {
    // Without an event there is nothing to ask: wait here.
    NoteError(error, "cudaEventRecord");
    error = cudaStreamSynchronize(stream_);
    NoteError(error, "the work before");
    if (error == cudaSuccess) ops_done_ = trail_.count();
    return 0;
  }
  pending_.push_back({++recorded_, trail_.count(), event, recorded});
  return recorded_;
}

std::optional<int64_t> CudaStream::TakeTime(uint64_t point) {
  std::lock_guard<std::mutex> lock(mutex_);
  std::optional<int64_t> time;
  while (!timed_.empty() && timed_.front().point <= point) {
    Pending passed = timed_.front();
    timed_.pop_front();
    time = clock_->Read(&passed.event, passed.recorded);
    if (passed.event != nullptr) spare_timed_.push_back(passed.event);
  }
  return time;
}

bool CudaStream::PointPassed(uint64_t point) {
  std::lock_guard<std::mutex> lock(mutex_);
  if (passed_ >= point) return true;
  Poll();
  return passed_ >= point;
}

void CudaStream::WaitPoint(uint64_t point) {
  std::lock_guard<std::mutex> lock(mutex_);
  while (passed_ < point && !pending_.empty()) {
    PassFirst(cudaEventSynchronize(pending_.front().event));
  }
}

absl::Status CudaStream::status() {
  std::lock_guard<std::mutex> lock(mutex_);
  return status_;
}

absl::Status CudaStream::Synchronize() {
  const cudaError_t error = cudaStreamSynchronize(stream_);
  std::lock_guard<std::mutex> lock(mutex_);
  NoteError(error, "the work before");
  if (error == cudaSuccess) ops_done_ = trail_.count();
  return status_;
}

}  // namespace holdfast::cuda
