// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Rules of indexing with several index tensors, broadcast together.
#include <utility>

#include "ops/infer_rule.h"

namespace holdfast {
namespace {

// The shape of input[..., index, index, ...]: the shape that the index tensors
// broadcast to stands where they are if they are next to each other, else in
// front. `indices` address `dims`, which are ascending.
absl::Status IndexedShape(const Attrs& attrs, SpecList inputs, SpecList indices,
                          Dims* shape) {
  const TensorSpec& input = *inputs[0];
  const Dims& dims = attrs.Ints("dims");
  if (indices.empty() || dims.size() != indices.size()) {
    return Invalid(attrs, inputs, "there must be a dimension per index tensor");
  }
  Dims common;
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] < 0 || dims[i] >= input.rank() ||
        (i > 0 && dims[i] <= dims[i - 1])) {
      return Invalid(attrs, inputs, "dims must be ascending dimensions");
    }
    if (indices[i]->dtype != DType::kInt64 &&
        indices[i]->dtype != DType::kInt32) {
      return BadIndex(attrs, inputs,
                      "tensors used as indices must be long, int, byte or bool "
                      "tensors");
    }
    absl::StatusOr<Dims> both = BroadcastShapes(common, indices[i]->shape);
    if (!both.ok()) {
      return BadIndex(attrs, inputs,
                      "shape mismatch: indexing tensors could not be broadcast "
                      "together");
    }
    common = *std::move(both);
  }
  const int64_t first = dims[0];
  const bool adjacent =
      dims.back() - first + 1 == static_cast<int64_t>(dims.size());
  shape->clear();
  size_t next = 0;
  for (int64_t d = 0; d < input.rank(); ++d) {
    if (next < dims.size() && dims[next] == d) {
      ++next;
    } else {
      shape->push_back(input.shape[d]);
    }
  }
  shape->insert(shape->begin() + (adjacent ? first : 0), common.begin(),
                common.end());
  return absl::OkStatus();
}

}  // namespace

HOLDFAST_INFER(InferIndex) {
  if (inputs.size() < 2) {
    return Invalid(attrs, inputs, "expected a tensor and its index tensors");
  }
  Dims shape;
  absl::Status s = IndexedShape(attrs, inputs, inputs.subspan(1), &shape);
  if (!s.ok()) return s;
  AddOutput(out, inputs[0]->dtype, shape);
  return absl::OkStatus();
}

HOLDFAST_INFER(InferIndexPut) {
  if (inputs.size() < 3) {
    return Invalid(attrs, inputs,
                   "expected a tensor, its values and its index tensors");
  }
  const TensorSpec& input = *inputs[0];
  const TensorSpec& values = *inputs[1];
  Dims shape;
  absl::Status s = IndexedShape(attrs, inputs, inputs.subspan(2), &shape);
  if (!s.ok()) return s;
  if (values.dtype != input.dtype) {
    return Invalid(attrs, inputs,
                   "Index put requires the source and destination dtypes "
                   "match, got ",
                   TorchTypeName(input.dtype), " for the destination and ",
                   TorchTypeName(values.dtype), " for the source.");
  }
  absl::StatusOr<Dims> both = BroadcastShapes(shape, values.shape);
  if (!both.ok() || *both != shape) {
    return Invalid(attrs, inputs, "shape mismatch: value tensor of shape ",
                   TorchShape(values.shape),
                   " cannot be broadcast to indexing result of shape ",
                   TorchShape(shape));
  }
  if (s = CheckShape(input.dtype, shape); !s.ok()) {
    return WithContext(s, attrs, inputs);
  }
  AddOutputLike(out, input.dtype, input);
  return absl::OkStatus();
}

}  // namespace holdfast
