// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// MeteredScratch: scratch memory is on the account of the session whose
// HeapMeter is the thread's (heap_meter.h). Thread-safety: as ScratchCharge.
#ifndef HOLDFAST_SERVER_EXEC_METERED_SCRATCH_H_
#define HOLDFAST_SERVER_EXEC_METERED_SCRATCH_H_

#include "server/exec/scratch_charge.h"
#include "server/memory/heap_meter.h"
#include "server/memory/memory_ledger.h"

namespace holdfast {

class MeteredScratch final : public ScratchCharge {
 public:
  absl::Status Add(size_t bytes) override {
    if (charge_.bytes() == 0) {
      const HeapMeter* const meter = HeapMeter::Current();
      charge_ = MemoryCharge(meter == nullptr ? nullptr : meter->account());
    }
    return charge_.Add(bytes);
  }
  void Clear() override { charge_ = MemoryCharge(); }

 private:
  MemoryCharge charge_;  // of the kernel that runs
};

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_EXEC_METERED_SCRATCH_H_
