// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// HostClock: a device's clock beside the host's. Each moment that the device
// tells lay between two of the host's: after its event was recorded, before it
// was seen to have passed. So neither the drift of two clocks nor a late look
// adds up.
// Thread-safety: none.
#ifndef HOLDFAST_KERNELS_CUDA_HOST_CLOCK_H_
#define HOLDFAST_KERNELS_CUDA_HOST_CLOCK_H_

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace holdfast::cuda {

class HostClock {
 public:
  // `seconds` of the device's clock lay between two nanoseconds of the host's.
  void Narrow(double seconds, int64_t after, int64_t before) {
    const int64_t ns = Nanoseconds(seconds);
    // The first time the later one: streams are mostly looked at at once.
    zero_ = known_ ? std::clamp(zero_, after - ns, std::max(before, after) - ns)
                   : before - ns;
    known_ = true;
  }
  // REQUIRES: Narrow was called.
  int64_t ToHost(double seconds) const { return zero_ + Nanoseconds(seconds); }

 private:
  static int64_t Nanoseconds(double seconds) {
    return std::llround(seconds * 1e9);
  }

  bool known_ = false;
  int64_t zero_ = 0;  // the device's 0, by the host's clock
};

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_HOST_CLOCK_H_
