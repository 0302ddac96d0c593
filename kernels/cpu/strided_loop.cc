// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/strided_loop.h"

#include <algorithm>

#include "kernels/cpu/element_transfer.h"

namespace holdfast::cpu {

StridedLoop::StridedLoop(absl::Span<const TensorView> views, Order order) {
  const int count = static_cast<int>(views.size());
  const TensorSpec& out = *views[0].spec;
  for (int k = 0; k < count; ++k) {
    operands_[k].data = static_cast<char*>(views[k].data);
    operands_[k].dtype = views[k].spec->dtype;
  }
  // Outermost first, without the dimensions of size 1.
  for (int d = 0; d < out.rank(); ++d) {
    const int64_t size = out.shape[d];
    numel_ *= size;
    if (size == 1) continue;
    sizes_[rank_] = size;
    for (int k = 0; k < count; ++k) {
      const TensorSpec& spec = *views[k].spec;
      const int own = d - (out.rank() - spec.rank());
      operands_[k].strides[rank_] =
          own < 0 || spec.shape[own] == 1 ? 0 : spec.strides[own];
    }
    ++rank_;
  }
  // Walk operand 0 in the order of its memory (insertion sort: few
  // dimensions, mostly in order already).
  int64_t* out_strides = operands_[0].strides;
  for (int i = 1; i < rank_ && order == Order::kMemory; ++i) {
    for (int j = i; j > 0 && out_strides[j - 1] < out_strides[j]; --j) {
      std::swap(sizes_[j - 1], sizes_[j]);
      for (int k = 0; k < count; ++k) {
        std::swap(operands_[k].strides[j - 1], operands_[k].strides[j]);
      }
    }
  }
  // Merge each dimension into the one outside it where every operand steps
  // evenly across the border.
  int kept = 0;
  for (int d = 1; d < rank_; ++d) {
    bool merge = true;
    for (int k = 0; k < count && merge; ++k) {
      merge = operands_[k].strides[kept] == operands_[k].strides[d] * sizes_[d];
    }
    if (merge) {
      sizes_[kept] *= sizes_[d];
    } else {
      sizes_[++kept] = sizes_[d];
    }
    for (int k = 0; k < count; ++k) {
      operands_[k].strides[kept] = operands_[k].strides[d];
    }
  }
  if (rank_ > 0) {
    rank_ = kept + 1;
    row_ = sizes_[kept];
  }
  for (int k = 0; k < count; ++k) {
    int64_t expected = 1;
    operands_[k].linear = true;
    operands_[k].period = 1;
    for (int d = rank_ - 1; d >= 0; --d) {
      if (operands_[k].strides[d] != expected) operands_[k].linear = false;
      expected *= sizes_[d];
      if (operands_[k].strides[d] != 0) operands_[k].period = expected;
    }
  }
}

char* StridedLoop::Address(const Operand& operand, int64_t position) const {
  return operand.data +
         position * static_cast<int64_t>(ItemSize(operand.dtype));
}

int64_t StridedLoop::Offset(const Operand& operand, int64_t position) const {
  int64_t offset = 0;
  for (int d = rank_ - 1; d > 0; --d) {
    const int64_t rest = Quotient(position, sizes_[d]);
    offset += (position - rest * sizes_[d]) * operand.strides[d];
    position = rest;
  }
  return rank_ == 0 ? 0 : offset + position * operand.strides[0];
}

void* StridedLoop::At(int k, int64_t position) const {
  const Operand& operand = operands_[k];
  return Address(operand, Offset(operand, position));
}

void StridedLoop::LoadInto(int k, DType dtype, int64_t begin, int64_t n,
                           void* out) const {
  const Operand& operand = operands_[k];
  if (operand.linear) {
    // One long run, however the other operands cut the dimensions.
    const int64_t stride = 1;
    GatherElements(operand.dtype, Address(operand, begin), {1, &n, &stride}, 0,
                   n, dtype, out);
  } else if (InLongRow(begin, n)) {
    GatherElements(operand.dtype, Address(operand, Offset(operand, begin)),
                   {1, &n, &operand.strides[rank_ - 1]}, 0, n, dtype, out);
  } else {
    GatherElements(operand.dtype, operand.data,
                   {rank_, sizes_, operand.strides}, begin, n, dtype, out);
  }
}

const void* StridedLoop::Load(int k, DType dtype, int64_t begin, int64_t n,
                              BlockBuffer* buffer) const {
  const Operand& operand = operands_[k];
  if (operand.dtype == dtype) {
    if (operand.linear) return Address(operand, begin);
    if (InLongRow(begin, n) && operand.strides[rank_ - 1] == 1) {
      return Address(operand, Offset(operand, begin));
    }
  }
  LoadInto(k, dtype, begin, n, buffer->bytes);
  return buffer->bytes;
}

const void* StridedLoop::Load(int k, DType dtype, int64_t begin, int64_t n,
                              LoadedBlock* block) const {
  const int64_t period = operands_[k].period;
  if (period == numel_) return Load(k, dtype, begin, n, &block->buffer);
  const int64_t first = Remainder(begin, period);
  if (first == block->begin && n <= block->count) return block->buffer.bytes;
  const void* loaded = Load(k, dtype, begin, n, &block->buffer);
  if (loaded == block->buffer.bytes) {
    block->begin = first;
    block->count = n;
  }
  return loaded;
}

void* StridedLoop::Target(int k, DType dtype, int64_t begin,
                          BlockBuffer* buffer) const {
  const Operand& operand = operands_[k];
  if (operand.linear && operand.dtype == dtype) return Address(operand, begin);
  return buffer->bytes;
}

void StridedLoop::Store(int k, DType dtype, int64_t begin, int64_t n,
                        const void* from) const {
  const Operand& operand = operands_[k];
  if (operand.linear) {
    char* to = Address(operand, begin);
    if (to == from) return;
    const int64_t stride = 1;
    ScatterElements(dtype, from, operand.dtype, to, {1, &n, &stride}, 0, n);
  } else {
    ScatterElements(dtype, from, operand.dtype, operand.data,
                    {rank_, sizes_, operand.strides}, begin, n);
  }
}

}  // namespace holdfast::cpu
