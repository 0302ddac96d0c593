// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// One launch over many parameters of an optimizer step: the tensors are cut
// into chunks, and the launch's argument says which chunk belongs to which
// tensor. Tensors with gaps, or whose gradient has another type, have a launch
// each. Thread-safety: reentrant.
#ifndef HOLDFAST_KERNELS_CUDA_OPTIM_LISTS_H_
#define HOLDFAST_KERNELS_CUDA_OPTIM_LISTS_H_

#include <algorithm>
#include <cstdint>
#include <limits>

#include "kernels/cuda/elements.h"
#include "kernels/cuda/group.h"
#include "kernels/cuda/offsets.h"

namespace holdfast {

inline constexpr int kOptimLists = 5;  // parameter, gradient, three states
inline constexpr int64_t kOptimChunk = 8192;

template <typename T>
struct OptimTensors {
  T* list[kOptimLists];  // null: a list that the call lacks
};
struct OptimChunk {
  int tensor;
  int64_t begin, end;
};

// Dense tensors of one launch, whose chunks follow each other. It travels as an
// argument of the launch: a table in memory would have to be copied there, and
// a copy that large waits for the stream.
template <typename T>
struct OptimBatch {
  static constexpr int kMost = 72;  // arguments may take 4 kB
  OptimTensors<T> tensors[kMost];
  int64_t sizes[kMost];
  int32_t first_chunks[kMost + 1] = {0};
  int count = 0;

  int32_t chunks() const { return first_chunks[count]; }
  // Whether the tensor is in the batch now.
  bool Add(const OptimTensors<T>& tensor, int64_t size) {
    const int64_t all = chunks() + (size + kOptimChunk - 1) / kOptimChunk;
    if (count == kMost || all > std::numeric_limits<int32_t>::max()) {
      return false;
    }
    tensors[count] = tensor;
    sizes[count] = size;
    first_chunks[++count] = static_cast<int32_t>(all);
    return true;
  }
  // REQUIRES: chunk < chunks().
  HOLDFAST_HD OptimChunk At(int32_t chunk) const {
    int low = 0, high = count;  // the tensor is in [low, high)
    while (high - low > 1) {
      const int middle = (low + high) / 2;
      (first_chunks[middle] <= chunk ? low : high) = middle;
    }
    const int64_t begin = (chunk - first_chunks[low]) * kOptimChunk;
    const int64_t end = begin + kOptimChunk;
    return {low, begin, end < sizes[low] ? end : sizes[low]};
  }
};

// Elements of a tensor's lists, of which a thread has some on their way at
// once.
template <typename T>
struct OptimElement {
  T of[kOptimLists];

  // A list that is the gradients again stays unread, and unwritten.
  static HOLDFAST_HD bool IsState(const OptimTensors<T>& t, int list) {
    return t.list[list] != nullptr && t.list[list] != t.list[1];
  }
  HOLDFAST_HD void Load(const OptimTensors<T>& t, int64_t i) {
    of[0] = t.list[0][i];
    of[1] = t.list[1][i];
    for (int l = 2; l < kOptimLists; ++l) {
      of[l] = IsState(t, l) ? t.list[l][i] : T(0);
    }
  }
  template <typename Update>
  HOLDFAST_HD void Step(const OptimTensors<T>& t, int64_t i,
                        const Update& update) {
    update(&of[0], of[1], &of[2], &of[3], &of[4]);
    t.list[0][i] = of[0];
    for (int l = 2; l < kOptimLists; ++l) {
      if (IsState(t, l)) t.list[l][i] = of[l];
    }
  }
};

template <typename T, typename Update>
absl::Status UpdateDense(KernelContext& context, const OptimBatch<T>& batch,
                         Update update) {
  return ForEachRow(context, batch.chunks(), kBlockThreads,
                    [=] HOLDFAST_LAMBDA(const Group& group, int64_t row) {
                      constexpr int kAhead = 4;
                      const OptimChunk chunk =
                          batch.At(static_cast<int32_t>(row));
                      const OptimTensors<T> t = batch.tensors[chunk.tensor];
                      int64_t i = chunk.begin + group.rank;
                      for (; i + (kAhead - 1) * group.size < chunk.end;
                           i += kAhead * group.size) {
                        OptimElement<T> elements[kAhead];
                        for (int k = 0; k < kAhead; ++k) {
                          elements[k].Load(t, i + k * group.size);
                        }
                        for (int k = 0; k < kAhead; ++k) {
                          elements[k].Step(t, i + k * group.size, update);
                        }
                      }
                      for (; i < chunk.end; i += group.size) {
                        OptimElement<T> element;
                        element.Load(t, i);
                        element.Step(t, i, update);
                      }
                    });
}

template <typename T, typename Update>
absl::Status UpdateStrided(KernelContext& context, const TensorView* views,
                           int lists, Update update) {
  const TensorSpec* specs[kOptimLists];
  Operand operands[kOptimLists];
  for (int l = 0; l < kOptimLists; ++l) {
    const TensorView& view = views[l < lists ? l : 1];
    specs[l] = view.spec;
    operands[l] = Operand(view);
  }
  const Offsets<kOptimLists> offsets = BroadcastOffsets<kOptimLists>(specs);
  const Operand param = operands[0], grad = operands[1];
  const Operand a = operands[2], b = operands[3], c = operands[4];
  return ForEach(context, offsets.numel, [=] HOLDFAST_LAMBDA(int64_t i) {
    int64_t at[kOptimLists];
    offsets.At(i, at);
    T p = param.Load<T>(at[0]);
    T x = a.Load<T>(at[2]), y = b.Load<T>(at[3]), z = c.Load<T>(at[4]);
    update(&p, grad.Load<T>(at[1]), &x, &y, &z);
    param.Store(at[0], p);
    // A list that is the gradients again is not to be written.
    if (lists > 2 && a.data != grad.data) a.Store(at[2], x);
    if (lists > 3 && b.data != grad.data) b.Store(at[3], y);
    if (lists > 4 && c.data != grad.data) c.Store(at[4], z);
  });
}

// update(parameter, gradient, states) for every element of every parameter of
// type T, by way of pointers to copies, which are stored. `inputs`: `lists`
// lists of one length. A state that is the gradients' list again is none.
template <typename T, typename Update>
absl::Status UpdateAllOf(KernelContext& context,
                         absl::Span<const TensorView> inputs, int lists,
                         Update update) {
  const size_t count = inputs.size() / lists;
  OptimBatch<T> batch;
  for (size_t i = 0; i < count; ++i) {
    if (inputs[i].spec->dtype != kDTypeOf<T>) continue;
    TensorView views[kOptimLists];
    bool dense = true;
    OptimTensors<T> t = {};
    for (int l = 0; l < lists; ++l) {
      views[l] = inputs[l * count + i];
      dense = dense && views[l].spec->dtype == kDTypeOf<T> &&
              views[l].spec->contiguous();
      t.list[l] = views[l].as<T>();
    }
    absl::Status s;
    if (!dense) {
      s = UpdateStrided<T>(context, views, lists, update);
    } else if (!batch.Add(t, views[0].spec->numel())) {
      s = UpdateDense<T>(context, batch, update);
      batch = {};
      batch.Add(t, views[0].spec->numel());
    }
    if (!s.ok()) return s;
  }
  return UpdateDense<T>(context, batch, update);
}

}  // namespace holdfast

#endif  // HOLDFAST_KERNELS_CUDA_OPTIM_LISTS_H_
