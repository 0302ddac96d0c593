// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// CudaDevice: one GPU. Thread-safety: as Device.
#ifndef HOLDFAST_KERNELS_CUDA_CUDA_DEVICE_H_
#define HOLDFAST_KERNELS_CUDA_CUDA_DEVICE_H_

#include <cuda_runtime_api.h>

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kernels/cuda/cuda_stream.h"
#include "kernels/device.h"
#include "kernels/device_plugin.h"
#include "kernels/recorder.h"

namespace holdfast::cuda {

class CudaDevice final : public Device, public Recorder {
 public:
  // The error says what is missing: a driver, a GPU of that index, a GPU that
  // is new enough.
  static absl::StatusOr<OpenedDevice> Open(const DeviceOptions& options);
  // GPUs that the driver shows; at least one.
  static absl::StatusOr<int> Count();

  absl::string_view name() const override { return "cuda"; }
  std::string description() const override { return description_; }
  DeviceProperties properties() const override { return properties_; }
  uint64_t FreeBytes() const override;
  std::vector<std::string> missing_ops() const override;
  bool host_memory() const override { return false; }
  absl::Status health() const override { return health_.status(); }

  std::unique_ptr<DeviceMemory> CreateMemory(bool shared) override;
  absl::Status PinHost(void* base, size_t bytes) override;
  void UnpinHost(void* base) override;

  MemoryHandleKind handle_kind() const override {
    return MemoryHandleKind::kCudaIpc;
  }
  absl::StatusOr<OpenedMemory> OpenMemory(absl::string_view handle) override;
  void CloseMemory(const OpenedMemory& memory) override;

  absl::StatusOr<StreamId> CreateStream(int priority) override;
  void DestroyStream(StreamId stream) override;
  void SetNumerics(StreamId stream, const Numerics& numerics) override;

  absl::Status Launch(StreamId stream, PhiloxState philox, const Attrs& attrs,
                      absl::Span<const TensorView> inputs,
                      absl::Span<const TensorView> outputs) override;
  absl::Status ComputeSizes(StreamId stream, const Attrs& attrs,
                            absl::Span<const TensorView> inputs,
                            absl::Span<int64_t> sizes) override;
  // ---- Recorder
  bool CanRecord(const OpSchema& op) const override;
  size_t Fusible(absl::Span<const LaunchRequest> requests) const override;
  absl::Status LaunchFused(StreamId stream,
                           absl::Span<const LaunchRequest> requests) override;
  absl::Status BeginRecording(StreamId stream) override;
  absl::StatusOr<RecordingId> EndRecording(StreamId stream) override;
  absl::Status Replay(StreamId stream, RecordingId recording,
                      std::optional<PhiloxState> first) override;
  void DropRecording(StreamId stream, RecordingId recording) override;

  absl::Status Copy(StreamId stream, CopyKind kind, void* to, const void* from,
                    size_t bytes) override;
  // Directly where the GPUs reach each other, else through the driver's own
  // memory on the host.
  absl::Status CopyFrom(StreamId stream, void* to, Device* source,
                        StreamId source_stream, const void* from,
                        size_t bytes) override;
  absl::Status CopyToHost(StreamId stream, void* host, const void* device,
                          size_t bytes) override;

  uint64_t RecordPoint(StreamId stream) override;
  uint64_t RecordTimedPoint(StreamId stream) override;
  std::optional<int64_t> TakeTime(uint64_t point) override;
  bool PointPassed(uint64_t point) override;
  void WaitPoint(uint64_t point) override;
  absl::Status StreamStatus(StreamId stream) override;
  absl::Status Order(StreamId first, StreamId later) override;
  void TimeWork(StreamId stream, std::optional<uint64_t> tag) override;
  std::vector<WorkTime> TakeWorkTimes(StreamId stream) override;
  absl::Status Synchronize(StreamId stream) override;

  // Makes the device the calling thread's. CUDA keeps one per thread.
  void Use() const { cudaSetDevice(index_); }
  // Zeros, before it returns; any thread.
  absl::Status Clear(void* base, size_t bytes);

 private:
  CudaDevice(const DeviceOptions& options, std::string description,
             DeviceProperties properties)
      : index_(options.index),
        description_(std::move(description)),
        properties_(std::move(properties)),
        health_(options.on_lost),
        host_(options.make_host(options.threads)) {}
  // Null where the stream was destroyed.
  std::shared_ptr<CudaStream> Find(StreamId stream);
  // Lets this GPU read the other's memory, where the machine can; once.
  void Reach(const CudaDevice& other);

  const int index_;
  const std::string description_;
  const DeviceProperties properties_;
  DeviceHealth health_;  // these outlive the streams
  EventClock clock_;
  const std::unique_ptr<Device> host_;
  CudaLibraries libraries_;
  std::set<int> reached_;  // GPUs that Reach has seen; worker thread
  std::mutex mutex_;       // guards what follows
  StreamId next_stream_ = 1;
  std::map<StreamId, std::shared_ptr<CudaStream>> streams_;
};

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_CUDA_DEVICE_H_
