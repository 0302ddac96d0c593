// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/state/saved_tensor.h"

#include <utility>

#include "proto/convert.h"

namespace holdfast {

absl::Status CheckSavedTensor(const state::SavedTensor& tensor,
                              const state::Header& header, TensorSpec* spec) {
  absl::StatusOr<TensorSpec> parsed = SpecFromProto(tensor.spec());
  if (!parsed.ok()) return parsed.status();
  if (tensor.blob() >= static_cast<uint32_t>(header.blobs_size())) {
    return absl::DataLossError("[state] a tensor's blob is missing");
  }
  *spec = *std::move(parsed);
  return CheckFits(*spec,
                   header.blobs(static_cast<int>(tensor.blob())).bytes());
}

}  // namespace holdfast
