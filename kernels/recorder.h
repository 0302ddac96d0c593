// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Recorder: what a device offers beside Device (device.h) that can note a
// sequence of launches once and do it in one go, as often as wanted
// (server/replay/replaying_device.h).
// Thread-safety: worker thread only, but for Fusible.
#ifndef HOLDFAST_KERNELS_RECORDER_H_
#define HOLDFAST_KERNELS_RECORDER_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "kernels/device_memory.h"
#include "kernels/kernel.h"
#include "ops/op_schema.h"

namespace holdfast {

// What Device::Launch is given.
struct LaunchRequest {
  const Attrs& attrs;
  absl::Span<const TensorView> inputs;
  absl::Span<const TensorView> outputs;
  PhiloxState philox = {};
};

class Recorder {
 public:
  using RecordingId = uint64_t;

  virtual ~Recorder() = default;

  // Whether launches of the op can be noted; any thread.
  virtual bool CanRecord(const OpSchema& op) const = 0;

  // What is launched on the stream from now on is noted and not done; copies,
  // points and waits are not asked for meanwhile. The random numbers of noted
  // launches begin at an offset from where each replay's begin.
  virtual absl::Status BeginRecording(StreamId stream) = 0;
  // An error: something that was launched cannot be noted.
  virtual absl::StatusOr<RecordingId> EndRecording(StreamId stream) = 0;
  // Enqueues a recording of this stream. `first`: where its random numbers
  // begin, if it draws some. An error: nothing was enqueued, and it serves no
  // more.
  virtual absl::Status Replay(StreamId stream, RecordingId recording,
                              std::optional<PhiloxState> first) = 0;
  // Recordings also end with their stream. What is enqueued of it is done.
  virtual void DropRecording(StreamId stream, RecordingId recording) = 0;

  // How many of the requests, from the first on, LaunchFused does in one go,
  // with the very results that they have one by one; 1 or less: none. Any
  // thread.
  virtual size_t Fusible(absl::Span<const LaunchRequest> requests) const = 0;
  // REQUIRES: all of them are fusible.
  virtual absl::Status LaunchFused(
      StreamId stream, absl::Span<const LaunchRequest> requests) = 0;
};

}  // namespace holdfast

#endif  // HOLDFAST_KERNELS_RECORDER_H_
