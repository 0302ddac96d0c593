// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// PinnedMemory: host memory that devices copy from and to while the host goes
// on; for a local session memfds, which its client maps. One memory for all of
// a session's devices: what a client fills is allocated before anybody knows
// where it goes. Each device counts its streams and points from 1, so that
// blocks know both by names of their own.
#ifndef HOLDFAST_SERVER_MEMORY_PINNED_MEMORY_H_
#define HOLDFAST_SERVER_MEMORY_PINNED_MEMORY_H_

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "kernels/device.h"
#include "server/memory/host_memory.h"

namespace holdfast {

class PinnedMemory final : public DeviceMemory {
 public:
  // `devices`: by their places, of one library; they must outlive it.
  PinnedMemory(std::vector<Device*> devices, bool shared)
      : devices_(std::move(devices)), memory_(shared) {}

  // A device's stream as blocks of this memory know it (UseOnStream).
  static StreamId NameOf(int place, StreamId stream) {
    return static_cast<StreamId>(place) << kPlaceBit | stream;
  }

  absl::StatusOr<MemorySegment> AllocateSegment(size_t bytes) override;
  void FreeSegment(const MemorySegment& segment) override;

  uint64_t RecordPoint(StreamId stream) override;
  bool PointPassed(uint64_t point) override;
  void WaitPoint(uint64_t point) override;

 private:
  // Streams are counted below it; devices keep no more of them in a point.
  static constexpr int kPlaceBit = 24;

  const std::vector<Device*> devices_;
  HostMemory memory_;
  // Those that were not seen to have passed, as their devices know them.
  std::map<uint64_t, std::pair<Device*, uint64_t>> points_;
  uint64_t last_point_ = 0;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_MEMORY_PINNED_MEMORY_H_
