// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/index_loops.h"

#include "absl/strings/str_cat.h"
#include "ops/op_schema.h"

namespace holdfast::cpu {

IndexLoops MakeIndexLoops(absl::Span<const int64_t> shape, int dim,
                          const TensorSpec& data,
                          absl::Span<const int64_t> index,
                          absl::Span<const int64_t> other) {
  IndexLoops loops;
  const bool scalar = data.rank() == 0;
  loops.data_stride = scalar ? 1 : data.strides[dim];
  loops.data_size = scalar ? 1 : data.shape[dim];
  for (int d = 0; d < static_cast<int>(shape.size()); ++d) {
    const int64_t size = shape[d];
    if (size == 1) continue;
    const int last = static_cast<int>(loops.shape.size()) - 1;
    const int64_t data_stride = d == dim || scalar ? 0 : data.strides[d];
    if (last >= 0 && d != dim && last != loops.dim &&
        loops.data.back() == data_stride * size &&
        loops.index.back() == index[d] * size &&
        loops.other.back() == other[d] * size) {
      loops.shape.back() *= size;
      loops.data.back() = data_stride;
      loops.index.back() = index[d];
      loops.other.back() = other[d];
      continue;
    }
    if (d == dim) loops.dim = last + 1;
    loops.shape.push_back(size);
    loops.data.push_back(data_stride);
    loops.index.push_back(index[d]);
    loops.other.push_back(other[d]);
  }
  if (loops.shape.empty()) {
    loops.shape = {1};
    loops.data = loops.index = loops.other = {0};
  }
  return loops;
}

absl::Status FirstBadIndex::ToStatus(const Attrs& attrs, int dim,
                                     int64_t size) const {
  if (!seen()) return absl::OkStatus();
  return absl::OutOfRangeError(absl::StrCat(
      "[", attrs.schema().name, "] index ", value_,
      " is out of bounds for dimension ", dim, " with size ", size, "."));
}

}  // namespace holdfast::cpu
