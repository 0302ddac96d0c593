// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "ops/place_op.h"

#include "absl/strings/str_cat.h"
#include "ops/infer_rule.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"

namespace holdfast {

std::string DeviceText(int device) {
  return device == 0 ? "cpu" : absl::StrCat("cuda:", device - 1);
}

absl::Status PlaceMixedOp(const Attrs& attrs, SpecList inputs, bool inplace,
                          int* device) {
  int found = 0;
  for (const TensorSpec* input : inputs) {
    if (input == nullptr || input->device == 0) continue;
    if (found == 0) found = input->device;
    // copy_ is what moves between them.
    if (input->device == found || attrs.schema().id == OpId::copy) continue;
    return Invalid(attrs, inputs,
                   "Expected all tensors to be on the same device, but found "
                   "at least two devices, ",
                   DeviceText(found), " and ", DeviceText(input->device));
  }
  // What is written stays where it is.
  *device = inplace ? inputs[0]->device : found;
  return absl::OkStatus();
}

}  // namespace holdfast
