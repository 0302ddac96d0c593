// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Whether a tensor that a state file describes lies in its blob: what is read
// from the disk is believed as little as what a client sends.
// Thread-safety: any thread.
#ifndef HOLDFAST_SERVER_STATE_SAVED_TENSOR_H_
#define HOLDFAST_SERVER_STATE_SAVED_TENSOR_H_

#include "absl/status/status.h"
#include "ops/tensor_spec.h"
#include "server/state.pb.h"

namespace holdfast {

// Brings the tensor's spec. DataLoss: there is no such blob.
absl::Status CheckSavedTensor(const state::SavedTensor& tensor,
                              const state::Header& header, TensorSpec* spec);

}  // namespace holdfast

#endif  // HOLDFAST_SERVER_STATE_SAVED_TENSOR_H_
