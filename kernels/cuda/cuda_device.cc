// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cuda_device.h"

#include <atomic>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "kernels/cuda/cuda_error.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/fused_chain.h"
#include "kernels/cuda/recordable_ops.h"
#include "kernels/cuda/shared_memory.h"
#include "kernels/kernel_table.h"
#include "ops/op_schema.h"

namespace holdfast::cuda {
namespace {

constexpr int kPointBits = 40;  // of a point's number; above it the stream
constexpr uint64_t kPointMask = (uint64_t{1} << kPointBits) - 1;

// The oldest GPUs that the library has code for (third_party/cuda/cuda.bzl).
constexpr int kLeastMajor = 9;

absl::Status NoDriver(cudaError_t error) {
  int driver = 0;
  cudaDriverGetVersion(&driver);
  cudaGetLastError();
  const std::string needs =
      absl::StrCat("a driver for CUDA ", CUDART_VERSION / 1000, ".",
                   CUDART_VERSION % 1000 / 10, " or later");
  if (error == cudaErrorInsufficientDriver && driver > 0) {
    return absl::FailedPreconditionError(absl::StrCat(
        "[device] --device=cuda needs ", needs, ". Got one for CUDA ",
        driver / 1000, ".", driver % 1000 / 10, ". Install a newer driver."));
  }
  if (error == cudaErrorInsufficientDriver) {
    return absl::FailedPreconditionError(absl::StrCat(
        "[device] --device=cuda needs ", needs,
        ", and this machine has none (libcuda.so.1). Install NVIDIA's driver, "
        "or use --device=cpu."));
  }
  if (error == cudaErrorNoDevice) {
    return absl::NotFoundError(
        "[device] --device=cuda: the driver sees no GPU. Look at nvidia-smi "
        "and CUDA_VISIBLE_DEVICES, or use --device=cpu.");
  }
  return CudaStatus(error, "cudaGetDeviceCount");
}

DeviceProperties Tell(int index, const cudaDeviceProp& properties) {
  DeviceProperties told;
  told.name = properties.name;
  told.index = index;
  told.major = properties.major;
  told.minor = properties.minor;
  told.multi_processors = properties.multiProcessorCount;
  told.total_bytes = properties.totalGlobalMem;
  told.bus_id = BusId(index);
  return told;
}

// Segments of one session.
class CudaMemory final : public DeviceMemory {
 public:
  explicit CudaMemory(CudaDevice* device) : device_(device) {}

  absl::StatusOr<MemorySegment> AllocateSegment(size_t bytes) override {
    device_->Use();
    MemorySegment segment;
    const cudaError_t error = cudaMalloc(&segment.base, bytes);
    if (error == cudaErrorMemoryAllocation) {
      cudaGetLastError();
      size_t free = 0, total = 0;
      cudaMemGetInfo(&free, &total);
      return absl::ResourceExhaustedError(
          absl::StrCat("the GPU has ", free >> 20, " of ", total >> 20,
                       " MiB left; ", bytes >> 20, " MiB were asked for"));
    }
    if (error != cudaSuccess) return CudaStatus(error, "cudaMalloc");
    segment.id = next_id_++;
    segment.bytes = bytes;
    return segment;
  }
  // cudaFree waits for the device.
  void FreeSegment(const MemorySegment& segment) override {
    device_->Use();
    cudaFree(segment.base);
  }
  // CUDA gives a process back what it freed, as it was.
  absl::Status Clear(const MemorySegment& segment, StreamId) override {
    return device_->Clear(segment.base, segment.bytes);
  }
  absl::StatusOr<std::string> Export(const MemorySegment& segment) override {
    device_->Use();
    return ExportHandle(segment);
  }
  uint64_t RecordPoint(StreamId stream) override {
    return device_->RecordPoint(stream);
  }
  bool PointPassed(uint64_t point) override {
    return device_->PointPassed(point);
  }
  void WaitPoint(uint64_t point) override { device_->WaitPoint(point); }

 private:
  CudaDevice* const device_;
  std::atomic<uint64_t> next_id_{1};
};

}  // namespace

absl::StatusOr<int> CudaDevice::Count() {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) return NoDriver(error);
  if (count == 0) return NoDriver(cudaErrorNoDevice);
  return count;
}

absl::StatusOr<OpenedDevice> CudaDevice::Open(const DeviceOptions& options) {
  const absl::StatusOr<int> count = Count();
  if (!count.ok()) return count.status();
  if (options.index >= *count) {
    return absl::NotFoundError(
        absl::StrCat("[device] --device=cuda:N must name one of ", *count,
                     " GPUs, counted from 0. Got ", options.index, "."));
  }
  cudaDeviceProp properties;
  cudaError_t error = cudaGetDeviceProperties(&properties, options.index);
  if (error != cudaSuccess) return CudaStatus(error, "cudaGetDeviceProperties");
  const std::string description = absl::StrFormat(
      "cuda:%d, %s, %d MiB, compute capability %d.%d", options.index,
      properties.name, properties.totalGlobalMem >> 20, properties.major,
      properties.minor);
  if (properties.major < kLeastMajor) {
    return absl::FailedPreconditionError(
        absl::StrCat("[device] the CUDA library has code for compute "
                     "capability ",
                     kLeastMajor, ".0 and later. Got ", description,
                     ". Build it for that GPU (third_party/cuda/cuda.bzl)."));
  }
  error = cudaSetDevice(options.index);
  if (error == cudaSuccess) error = cudaFree(nullptr);  // makes the context
  if (error != cudaSuccess) return CudaStatus(error, "taking the GPU");
  // Scratch memory that was freed stays in the pool.
  cudaMemPool_t pool = nullptr;
  uint64_t keep = ~uint64_t{0};
  error = cudaDeviceGetDefaultMemPool(&pool, options.index);
  if (error == cudaSuccess) {
    error =
        cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &keep);
  }
  if (error != cudaSuccess) return CudaStatus(error, "the memory pool");
  std::unique_ptr<CudaDevice> device(
      new CudaDevice(options, description, Tell(options.index, properties)));
  Recorder* const recorder = device.get();
  return OpenedDevice{std::move(device), recorder};
}

uint64_t CudaDevice::FreeBytes() const {
  Use();
  size_t free = 0, total = 0;
  if (cudaMemGetInfo(&free, &total) == cudaSuccess) return free;
  cudaGetLastError();  // told by nothing, and not by the next launch either
  return 0;
}

std::vector<std::string> CudaDevice::missing_ops() const {
  return MissingCudaOps();
}

std::unique_ptr<DeviceMemory> CudaDevice::CreateMemory(bool) {
  return std::make_unique<CudaMemory>(this);
}

absl::Status CudaDevice::PinHost(void* base, size_t bytes) {
  Use();
  return CudaStatus(cudaHostRegister(base, bytes, cudaHostRegisterPortable),
                    "cudaHostRegister");
}

void CudaDevice::UnpinHost(void* base) {
  Use();
  cudaDeviceSynchronize();
  cudaHostUnregister(base);
}

absl::StatusOr<Device::OpenedMemory> CudaDevice::OpenMemory(
    absl::string_view handle) {
  Use();
  return OpenHandle(handle, index_);
}

void CudaDevice::CloseMemory(const OpenedMemory& memory) {
  Use();
  CloseHandle(memory);
}

absl::StatusOr<StreamId> CudaDevice::CreateStream(int priority) {
  Use();
  absl::StatusOr<std::unique_ptr<CudaStream>> made =
      CudaStream::Make(priority, &libraries_, host_.get(), &health_, &clock_);
  if (!made.ok()) return made.status();
  std::lock_guard<std::mutex> lock(mutex_);
  streams_[next_stream_] = *std::move(made);
  return next_stream_++;
}

void CudaDevice::DestroyStream(StreamId stream) {
  Use();
  std::shared_ptr<CudaStream> last;  // destroyed outside the lock
  std::lock_guard<std::mutex> lock(mutex_);
  const auto it = streams_.find(stream);
  if (it == streams_.end()) return;
  last = std::move(it->second);
  streams_.erase(it);
}

void CudaDevice::SetNumerics(StreamId stream, const Numerics& numerics) {
  Find(stream)->numerics = numerics;
}

absl::Status CudaDevice::Clear(void* base, size_t bytes) {
  Use();
  // On no session's stream, and done before anybody has the memory: who uses it
  // first need not be the stream that it was allocated for.
  absl::Status status =
      CudaStatus(cudaMemsetAsync(base, 0, bytes, nullptr), "memset");
  if (!status.ok()) return status;
  return CudaStatus(cudaStreamSynchronize(nullptr), "memset");
}

std::shared_ptr<CudaStream> CudaDevice::Find(StreamId stream) {
  std::lock_guard<std::mutex> lock(mutex_);
  const auto it = streams_.find(stream);
  return it == streams_.end() ? nullptr : it->second;
}

absl::Status CudaDevice::Launch(StreamId stream, PhiloxState philox,
                                const Attrs& attrs,
                                absl::Span<const TensorView> inputs,
                                absl::Span<const TensorView> outputs) {
  Use();
  const std::shared_ptr<CudaStream> on = Find(stream);
  // After a failure nothing runs any more: the first error is the one to tell.
  if (absl::Status s = on->status(); !s.ok()) return s;
  on->philox = philox;
  libraries_.numerics = on->numerics;
  on->NoteOp(attrs.schema().name.c_str());
  const TimedWork timed(on.get(), attrs.schema().name);
  absl::Status status = RunCudaOp(*on, attrs, inputs, outputs);
  on->carried = nullptr;
  on->FreeScratch();
  return status;
}

absl::Status CudaDevice::ComputeSizes(StreamId stream, const Attrs& attrs,
                                      absl::Span<const TensorView> inputs,
                                      absl::Span<int64_t> sizes) {
  Use();
  const std::shared_ptr<CudaStream> on = Find(stream);
  on->FreeScratch();  // the kernel may not have followed
  on->carried = nullptr;
  return RunCudaSizes(*on, attrs, inputs, sizes);
}

bool CudaDevice::CanRecord(const OpSchema& op) const {
  return CanRecordCudaOp(op);
}

size_t CudaDevice::Fusible(absl::Span<const LaunchRequest> requests) const {
  return ChainLength(requests);
}

absl::Status CudaDevice::LaunchFused(StreamId stream,
                                     absl::Span<const LaunchRequest> requests) {
  Use();
  const std::shared_ptr<CudaStream> on = Find(stream);
  if (absl::Status s = on->status(); !s.ok()) return s;
  for (const LaunchRequest& request : requests) {
    on->NoteOp(request.attrs.schema().name.c_str());
  }
  const TimedWork timed(on.get(), "fused");
  return RunChain(*on, requests);
}

absl::Status CudaDevice::BeginRecording(StreamId stream) {
  Use();
  return Find(stream)->BeginRecording();
}

absl::StatusOr<Recorder::RecordingId> CudaDevice::EndRecording(
    StreamId stream) {
  Use();
  return Find(stream)->EndRecording();
}

absl::Status CudaDevice::Replay(StreamId stream, RecordingId recording,
                                std::optional<PhiloxState> first) {
  Use();
  const std::shared_ptr<CudaStream> on = Find(stream);
  if (absl::Status s = on->status(); !s.ok()) return s;
  const TimedWork timed(on.get(), "recording");
  return on->Replay(recording, first);
}

void CudaDevice::DropRecording(StreamId stream, RecordingId recording) {
  Use();
  Find(stream)->recordings().Drop(recording);
}

absl::Status CudaDevice::Copy(StreamId stream, CopyKind kind, void* to,
                              const void* from, size_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  Use();
  const std::shared_ptr<CudaStream> on = Find(stream);
  const bool up = kind == CopyKind::kToDevice;
  const TimedWork timed(on.get(), up ? "upload" : "download");
  return CudaStatus(
      cudaMemcpyAsync(to, from, bytes,
                      up ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost,
                      on->handle()),
      "copy");
}

void CudaDevice::Reach(const CudaDevice& other) {
  if (!reached_.insert(other.index_).second) return;
  int can = 0;
  Use();
  if (cudaDeviceCanAccessPeer(&can, index_, other.index_) != cudaSuccess ||
      can == 0 || cudaDeviceEnablePeerAccess(other.index_, 0) != cudaSuccess) {
    cudaGetLastError();  // the driver copies by way of the host then
  }
}

namespace {

// `later`, a stream of GPU `device`, goes on after what `first`, whose GPU is
// the thread's, has now.
cudaError_t WaitForStream(cudaStream_t first, cudaStream_t later, int device) {
  cudaEvent_t event = nullptr;
  cudaError_t error = cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
  if (error != cudaSuccess) return error;
  error = cudaEventRecord(event, first);
  if (error == cudaSuccess) error = cudaSetDevice(device);
  if (error == cudaSuccess) error = cudaStreamWaitEvent(later, event, 0);
  cudaEventDestroy(event);  // which waits for its use by itself
  return error;
}

}  // namespace

absl::Status CudaDevice::CopyFrom(StreamId stream, void* to, Device* source,
                                  StreamId source_stream, const void* from,
                                  size_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  CudaDevice* const other =
      static_cast<CudaDevice*>(source->Opened(source_stream));
  const std::shared_ptr<CudaStream> reader = Find(stream);
  const std::shared_ptr<CudaStream> writer = other->Find(source_stream);
  if (absl::Status s = writer->status(); !s.ok()) return s;
  if (absl::Status s = reader->status(); !s.ok()) return s;
  Reach(*other);
  other->Use();
  cudaError_t error = WaitForStream(writer->handle(), reader->handle(), index_);
  if (error == cudaSuccess) {
    const TimedWork timed(reader.get(), "copy between devices");
    error = cudaMemcpyPeerAsync(to, index_, from, other->index_, bytes,
                                reader->handle());
  }
  if (error == cudaSuccess) {
    error = WaitForStream(reader->handle(), writer->handle(), other->index_);
  }
  return CudaStatus(error, "copy between GPUs");
}

absl::Status CudaDevice::CopyToHost(StreamId stream, void* host,
                                    const void* device, size_t bytes) {
  Use();
  return Find(stream)->CopyToHost(host, device, bytes);
}

uint64_t CudaDevice::RecordPoint(StreamId stream) {
  Use();
  const std::shared_ptr<CudaStream> on = Find(stream);
  const uint64_t point = on == nullptr ? 0 : on->RecordPoint();
  return point == 0 ? 0 : uint64_t{stream} << kPointBits | point;
}

uint64_t CudaDevice::RecordTimedPoint(StreamId stream) {
  Use();
  const std::shared_ptr<CudaStream> on = Find(stream);
  const uint64_t point = on == nullptr ? 0 : on->RecordPoint(/*timed=*/true);
  return point == 0 ? 0 : uint64_t{stream} << kPointBits | point;
}

std::optional<int64_t> CudaDevice::TakeTime(uint64_t point) {
  Use();
  const std::shared_ptr<CudaStream> on = Find(point >> kPointBits);
  if (on == nullptr) return std::nullopt;
  return on->TakeTime(point & kPointMask);
}

bool CudaDevice::PointPassed(uint64_t point) {
  if (point == 0) return true;
  Use();
  const std::shared_ptr<CudaStream> on = Find(point >> kPointBits);
  return on == nullptr || on->PointPassed(point & kPointMask);
}

void CudaDevice::WaitPoint(uint64_t point) {
  if (point == 0) return;
  Use();
  const std::shared_ptr<CudaStream> on = Find(point >> kPointBits);
  if (on != nullptr) on->WaitPoint(point & kPointMask);
}

absl::Status CudaDevice::StreamStatus(StreamId stream) {
  return Find(stream)->status();
}

absl::Status CudaDevice::Order(StreamId first, StreamId later) {
  const std::shared_ptr<CudaStream> before = Find(first);
  if (before == nullptr) return absl::OkStatus();
  Use();
  return CudaStatus(
      WaitForStream(before->handle(), Find(later)->handle(), index_),
      "ordering streams");
}

void CudaDevice::TimeWork(StreamId stream, std::optional<uint64_t> tag) {
  Use();
  Find(stream)->times().set_tag(tag);
}

std::vector<Device::WorkTime> CudaDevice::TakeWorkTimes(StreamId stream) {
  Use();
  return Find(stream)->times().Take();
}

absl::Status CudaDevice::Synchronize(StreamId stream) {
  Use();
  return Find(stream)->Synchronize();
}

}  // namespace holdfast::cuda
