// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "server/exec/data_checks.h"

#include "ops/infer.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"
#include "server/exec/bounds_of_op.h"

namespace holdfast {
namespace {

using Inputs = absl::Span<const Value>;

// Whether the elements of the tensor in `slot` are in [low, size).
bool Below(const Attrs& attrs, Inputs inputs, int slot, int64_t size,
           int64_t low = 0) {
  const KnownBounds known = BoundsOfInput(attrs, inputs, slot);
  return known && known->Within(low, size - 1);
}

// An index of input 0 along `dim`.
bool IndexOfDim(const Attrs& attrs, Inputs inputs) {
  constexpr int kIndex = 1;
  const TensorSpec& data = inputs[0]->spec();
  if (data.rank() == 0) return Below(attrs, inputs, kIndex, 1);
  const absl::StatusOr<int> dim = NormalizeDim(attrs.Int("dim"), data.rank());
  return dim.ok() && Below(attrs, inputs, kIndex, data.shape[*dim]);
}

// Indices of input 0's dims, counted from either end.
bool IndicesOfDims(const Attrs& attrs, Inputs inputs, int first) {
  const Dims& dims = attrs.Ints("dims");
  const TensorSpec& data = inputs[0]->spec();
  if (inputs.size() != first + dims.size()) return false;
  for (size_t k = 0; k < dims.size(); ++k) {
    const int64_t size = data.shape[dims[k]];
    if (!Below(attrs, inputs, first + static_cast<int>(k), size, -size)) {
      return false;
    }
  }
  return true;
}

bool TargetsOfClasses(const Attrs& attrs, Inputs inputs, int64_t classes) {
  constexpr int kTarget = 1;
  const KnownBounds known = BoundsOfInput(attrs, inputs, kTarget);
  return known && known->WithinBut(attrs.Int("ignore_index"), 0, classes - 1);
}

int64_t PlaneSize(absl::Span<const int64_t> shape) {
  return shape[shape.size() - 2] * shape[shape.size() - 1];
}

bool IsFloat(const Value& value) {
  return value && !IsIntegral(value->spec().dtype);
}

// Integers alone are not divided by zero.
bool DividesByNoZero(const Attrs& attrs, Inputs inputs) {
  constexpr int kDivisor = 1;
  if (IsFloat(inputs[0]) || IsFloat(inputs[kDivisor])) return true;
  const KnownBounds divisor = BoundsOfInput(attrs, inputs, kDivisor);
  return divisor && divisor->NonZero();
}

}  // namespace

bool DataKnownRight(const Attrs& attrs, Inputs inputs) {
  constexpr int kBatchSizes = 1, kBatchSizesBackward = 4;
  switch (attrs.schema().id) {
    case OpId::gather:
    case OpId::scatter:
    case OpId::scatter_add:
    case OpId::scatter_reduce:
    case OpId::index_select:
    case OpId::index_add:
      return IndexOfDim(attrs, inputs);
    case OpId::index:
      return IndicesOfDims(attrs, inputs, 1);
    case OpId::index_put:
      return IndicesOfDims(attrs, inputs, 2);
    case OpId::nll_loss:
      return TargetsOfClasses(attrs, inputs, inputs[0]->spec().shape.back());
    case OpId::nll_loss_backward:
      return TargetsOfClasses(attrs, inputs, attrs.Ints("input_size").back());
    case OpId::max_pool2d_backward:
      return Below(attrs, inputs, 1, PlaneSize(attrs.Ints("input_size")));
    case OpId::max_pool2d_gather:
      return Below(attrs, inputs, 1, PlaneSize(inputs[0]->spec().shape));
    case OpId::floor_divide:
    case OpId::remainder:
    case OpId::fmod:
      return DividesByNoZero(attrs, inputs);
    case OpId::rnn_layer:
      return !inputs[kBatchSizes];
    case OpId::rnn_layer_backward:
      return !inputs[kBatchSizesBackward];
    default:
      return false;
  }
}

}  // namespace holdfast
