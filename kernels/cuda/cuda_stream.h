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
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "kernels/cuda/cuda_context.h"
#include "kernels/cuda/cuda_libraries.h"
#include "kernels/cuda/cuda_recordings.h"
#include "kernels/cuda/event_clock.h"
#include "kernels/cuda/op_trail.h"
#include "kernels/cuda/work_times.h"
#include "kernels/device_health.h"

namespace holdfast::cuda {

class CudaStream final : public CudaContext {
 public:
  // All must outlive it. `health` hears of errors that end the device.
  // `priority`: see Device::CreateStream.
  static absl::StatusOr<std::unique_ptr<CudaStream>> Make(
      int priority, CudaLibraries* libraries, Device* host,
      DeviceHealth* health, EventClock* clock);
  // Waits for what is enqueued.
  ~CudaStream() override;

  cudaStream_t handle() const { return stream_; }

  // ---- KernelContext, CudaContext
  void* Scratch(size_t bytes) override;
  void* stream() const override { return stream_; }
  CudaLibraries& libraries() override { return *libraries_; }
  Device* host() override { return host_; }
  absl::Status CopyToHost(void* host, const void* device,
                          size_t bytes) override;
  absl::Status CopyToDevice(void* device, const void* host,
                            size_t bytes) override;
  absl::Status CopyOnDevice(void* to, const void* from, size_t bytes) override;
  absl::Status FillBytes(void* device, uint8_t value, size_t bytes) override;
  absl::Status LaunchStatus() override;

  // Begins an op, which an error may then be said to come from.
  void NoteOp(const char* name);
  // Ends a kernel function: its scratch memory is free for the next one.
  void FreeScratch();

  CudaRecordings& recordings() { return recordings_; }
  WorkTimes& times() { return times_; }
  absl::Status BeginRecording();
  absl::StatusOr<CudaRecordings::Id> EndRecording();
  absl::Status Replay(CudaRecordings::Id recording,
                      std::optional<PhiloxState> first);

  // ---- points
  // Of what is enqueued so far; 0 if that is done. `timed`: TakeTime will ask
  // for it.
  uint64_t RecordPoint(bool timed = false);
  // See Device::TakeTime.
  std::optional<int64_t> TakeTime(uint64_t point);
  bool PointPassed(uint64_t point);
  void WaitPoint(uint64_t point);
  // The error that ended the stream's work, if one did.
  absl::Status status();
  absl::Status Synchronize();

 private:
  CudaStream(CudaLibraries* libraries, Device* host, DeviceHealth* health,
             EventClock* clock, cudaStream_t stream)
      : libraries_(libraries),
        host_(host),
        health_(health),
        clock_(clock),
        stream_(stream),
        recordings_(stream, *libraries),
        times_(stream) {}
  // An error while launches are noted: what needs the stream's work cannot be.
  absl::Status MustRun() const;
  // REQUIRES: mutex_ held. Drops events that have passed.
  void Poll();
  void NoteError(cudaError_t error, const char* what);

  CudaLibraries* const libraries_;
  Device* const host_;
  DeviceHealth* const health_;
  EventClock* const clock_;
  const cudaStream_t stream_;
  CudaRecordings recordings_;
  WorkTimes times_;
  std::vector<void*> scratch_;  // of the kernel function that runs
  // On the device: what Replay was given last; null before any recording.
  PhiloxState* first_ = nullptr;

  std::mutex mutex_;  // guards what follows
  struct Pending {
    uint64_t point;
    uint64_t ops;  // noted before it
    cudaEvent_t event;
    int64_t recorded;  // when, by EventClock::Now; 0: not timed
  };
  // REQUIRES: mutex_ held. An event that is recorded; an error: none.
  cudaError_t RecordEvent(bool timed, cudaEvent_t* event);
  // REQUIRES: mutex_ held, pending_ not empty. The first is over.
  void PassFirst(cudaError_t error);

  std::deque<Pending> pending_;
  std::vector<cudaEvent_t> spare_, spare_timed_;
  // Those that have passed and were not asked for.
  std::deque<Pending> timed_;
  uint64_t recorded_ = 0, passed_ = 0;
  OpTrail trail_;
  uint64_t ops_done_ = 0;  // of the trail's, without an error
  absl::Status status_;
};

// Times what its scope enqueues, where the stream is timed: outside recordings,
// whose events would be the recording's.
class TimedWork {
 public:
  TimedWork(CudaStream* stream, const std::string& name)
      : stream_(stream->times().on() && !stream->recordings().noting()
                    ? stream
                    : nullptr) {
    if (stream_ != nullptr) stream_->times().Begin(name);
  }
  ~TimedWork() {
    if (stream_ != nullptr) stream_->times().End();
  }
  TimedWork(const TimedWork&) = delete;
  TimedWork& operator=(const TimedWork&) = delete;

 private:
  CudaStream* const stream_;
};

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_CUDA_STREAM_H_
