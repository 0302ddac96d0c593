// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// TurnedRows: copies of a layer's rows in which every sample's steps come in
// the opposite order, for a library that knows layers of one direction only.
// Thread-safety: one kernel function at a time.
#ifndef HOLDFAST_KERNELS_CUDA_TURNED_ROWS_H_
#define HOLDFAST_KERNELS_CUDA_TURNED_ROWS_H_

#include "absl/status/status.h"
#include "kernels/kernel.h"
#include "kernels/recurrent_steps.h"

namespace holdfast::cuda {

class TurnedRows {
 public:
  // `packed`: lengths may differ, and a list of rows goes to the device.
  absl::Status Make(KernelContext& context, const RecurrentSteps& steps,
                    bool packed);
  // to = the rows of `from`, turned; both contiguous, and not the same.
  absl::Status Copy(KernelContext& context, const TensorView& from,
                    void* to) const;

 private:
  int64_t count_ = 0, batch_ = 0;
  const int64_t* rows_ = nullptr;  // on the device; null: one length for all
};

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_TURNED_ROWS_H_
