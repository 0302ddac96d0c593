// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// LaunchCall: one Device::Launch with all that it depends on but the elements:
// op, attributes, addresses, layouts, numbers. Two that are equal do the same.
// Thread-safety: const methods may be shared.
#ifndef HOLDFAST_SERVER_REPLAY_LAUNCH_CALL_H_
#define HOLDFAST_SERVER_REPLAY_LAUNCH_CALL_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "kernels/device.h"
#include "kernels/owned_views.h"
#include "kernels/recorder.h"
#include "ops/attrs.h"

namespace holdfast {

uint64_t HashOf(const LaunchRequest& call);

class LaunchCall {
 public:
  // `hash` is that of `call`.
  LaunchCall(uint64_t hash, const LaunchRequest& call)
      : hash_(hash),
        attrs_(call.attrs),
        inputs_(call.inputs),
        outputs_(call.outputs),
        philox_(call.philox) {}
  LaunchCall(LaunchCall&&) = default;

  uint64_t hash() const { return hash_; }
  LaunchRequest request() const {
    return {attrs_, inputs_.get(), outputs_.get(), philox_};
  }
  bool Is(uint64_t hash, const LaunchRequest& call) const;
  // Its random numbers are as far from `first` as the call's state says.
  absl::Status LaunchOn(Device* device, StreamId stream,
                        PhiloxState first) const {
    first.offset += philox_.offset;
    return device->Launch(stream, first, attrs_, inputs_.get(), outputs_.get());
  }

 private:
  uint64_t hash_;
  Attrs attrs_;
  OwnedViews inputs_, outputs_;
  PhiloxState philox_;
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_REPLAY_LAUNCH_CALL_H_
