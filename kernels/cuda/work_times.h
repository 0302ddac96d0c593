// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// WorkTimes: when the work of one stream began and ended on the GPU, from pairs
// of events around it, by the host's steady clock. Between the two events of an
// op may lie time in which the GPU did other streams' work.
// Thread-safety: worker thread only.
#ifndef HOLDFAST_KERNELS_CUDA_WORK_TIMES_H_
#define HOLDFAST_KERNELS_CUDA_WORK_TIMES_H_

#include <cuda_runtime_api.h>

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "kernels/device.h"

namespace holdfast::cuda {

class WorkTimes {
 public:
  explicit WorkTimes(cudaStream_t stream) : stream_(stream) {}
  ~WorkTimes();
  WorkTimes(const WorkTimes&) = delete;
  WorkTimes& operator=(const WorkTimes&) = delete;

  // What begins from now on is timed under the tag; nothing: it is not. The
  // first time waits for the stream, to set the GPU's time beside the host's.
  void set_tag(std::optional<uint64_t> tag);
  bool on() const { return tag_.has_value(); }

  // Around the launches of one op. End without Begin does nothing.
  void Begin(std::string name);
  void End();

  // Moves what is done, in the stream's order.
  std::vector<Device::WorkTime> Take();

 private:
  struct Span {
    Device::WorkTime time;  // without the times
    cudaEvent_t begin = nullptr, end = nullptr;
  };
  cudaEvent_t Record();
  void Anchor();

  const cudaStream_t stream_;
  std::optional<uint64_t> tag_;
  cudaEvent_t anchor_ = nullptr;  // passed at anchor_ns_
  double anchor_ns_ = 0;
  std::optional<Span> open_;
  std::deque<Span> spans_;
  std::vector<cudaEvent_t> spare_;
};

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_WORK_TIMES_H_
