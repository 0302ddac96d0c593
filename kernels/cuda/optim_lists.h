// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// One launch over many parameters of an optimizer step: the tensors are cut
// into chunks, and the launch's argument says which chunk belongs to which
// tensor. Tensors with gaps, or whose gradient has another type, have a launch
// each. 16-bit floats are stored; what is computed is float32.
// Thread-safety: reentrant.
#ifndef HOLDFAST_KERNELS_CUDA_OPTIM_LISTS_H_
#define HOLDFAST_KERNELS_CUDA_OPTIM_LISTS_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "kernels/cuda/elements.h"
#include "kernels/cuda/group.h"
#include "kernels/cuda/offsets.h"
#include "kernels/cuda/packs.h"

namespace holdfast::cuda {

inline constexpr int kOptimLists = 5;  // parameter, gradient, three states
inline constexpr int64_t kOptimChunk = 8192;

// S: as elements are stored.
template <typename S>
struct OptimTensors {
  S* list[kOptimLists];  // null: a list that the call lacks

  HOLDFAST_HD bool aligned() const {
    bool all = true;
    for (int l = 0; l < kOptimLists; ++l) all = all && Aligned(list[l]);
    return all;
  }
  // A list that is the gradients again stays unread, and unwritten.
  HOLDFAST_HD bool IsState(int l) const {
    return list[l] != nullptr && list[l] != list[1];
  }
};
struct OptimChunk {
  int tensor;
  int64_t begin, end;
};

// Dense tensors of one launch, whose chunks follow each other. It travels as an
// argument of the launch: a table in memory would have to be copied there, and
// a copy that large waits for the stream.
template <typename S>
struct OptimBatch {
  static constexpr int kMost = 72;  // arguments may take 4 kB
  OptimTensors<S> tensors[kMost];
  int64_t sizes[kMost];
  int32_t first_chunks[kMost + 1] = {0};
  int count = 0;

  int32_t chunks() const { return first_chunks[count]; }
  // Whether the tensor is in the batch now.
  bool Add(const OptimTensors<S>& tensor, int64_t size) {
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

// kWidth neighbours in a tensor's lists.
template <typename S, int kWidth>
struct OptimElements {
  using T = ComputeOf<S>;
  T of[kOptimLists][kWidth];

  HOLDFAST_HD void Load(const OptimTensors<S>& t, int64_t i) {
    HOLDFAST_UNROLL
    for (int l = 0; l < kOptimLists; ++l) {
      if (l < 2 || t.IsState(l)) {
        LoadPack<kWidth>(t.list[l] + i, of[l]);
      } else {
        for (T& v : of[l]) v = T(0);
      }
    }
  }
  template <typename Update>
  HOLDFAST_HD void Step(const OptimTensors<S>& t, int64_t i,
                        const Update& update) {
    HOLDFAST_UNROLL
    for (int e = 0; e < kWidth; ++e) {
      update(&of[0][e], of[1][e], &of[2][e], &of[3][e], &of[4][e]);
    }
    HOLDFAST_UNROLL
    for (int l = 0; l < kOptimLists; ++l) {
      if (l == 0 || (l > 1 && t.IsState(l))) {
        StorePack<kWidth>(t.list[l] + i, of[l]);
      }
    }
  }
};

// Packs from *i on while whole ones end before `end`, those of a thread.
template <int kWidth, typename S, typename Update>
HOLDFAST_HD void StepPacks(const Group& group, const OptimTensors<S>& t,
                           int64_t* i, int64_t end, const Update& update) {
  const int64_t packs = (end - *i) / kWidth;
  for (int64_t p = group.rank; p < packs; p += group.size) {
    OptimElements<S, kWidth> elements;
    elements.Load(t, *i + p * kWidth);
    elements.Step(t, *i + p * kWidth, update);
  }
  *i += packs * kWidth;
}

template <typename S, typename Update>
absl::Status UpdateDense(KernelContext& context, const OptimBatch<S>& batch,
                         Update update) {
  return ForEachRow(
      context, batch.chunks(), kBlockThreads,
      [=] HOLDFAST_LAMBDA(const Group& group, int64_t row) {
        const OptimChunk chunk = batch.At(static_cast<int32_t>(row));
        const OptimTensors<S> t = batch.tensors[chunk.tensor];
        int64_t i = chunk.begin;
        if (t.aligned()) {
          StepPacks<kPackWidth<S>>(group, t, &i, chunk.end, update);
        }
        StepPacks<1>(group, t, &i, chunk.end, update);
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

// update(parameter, gradient, states) for every element of every parameter
// stored as S.
template <typename S, typename Update>
absl::Status UpdateStoredAs(KernelContext& context,
                            absl::Span<const TensorView> inputs, int lists,
                            Update update) {
  const size_t count = inputs.size() / lists;
  OptimBatch<S> batch;
  for (size_t i = 0; i < count; ++i) {
    if (inputs[i].spec->dtype != kStoredDType<S>) continue;
    TensorView views[kOptimLists];
    bool dense = true;
    OptimTensors<S> t = {};
    for (int l = 0; l < lists; ++l) {
      views[l] = inputs[l * count + i];
      dense = dense && views[l].spec->dtype == kStoredDType<S> &&
              views[l].spec->contiguous();
      t.list[l] = views[l].template as<S>();
    }
    absl::Status s;
    if (!dense) {
      s = UpdateStrided<ComputeOf<S>>(context, views, lists, update);
    } else if (!batch.Add(t, views[0].spec->numel())) {
      s = UpdateDense<S>(context, batch, update);
      batch = {};
      batch.Add(t, views[0].spec->numel());
    }
    if (!s.ok()) return s;
  }
  return UpdateDense<S>(context, batch, update);
}

// The same of every parameter that is computed with as T, by way of pointers to
// copies, which are stored. `inputs`: `lists` lists of one length. A state that
// is the gradients' list again is none.
template <typename T, typename Update>
absl::Status UpdateAllOf(KernelContext& context,
                         absl::Span<const TensorView> inputs, int lists,
                         Update update) {
  absl::Status s = UpdateStoredAs<T>(context, inputs, lists, update);
  if constexpr (std::is_same_v<T, float>) {
    if (s.ok()) s = UpdateStoredAs<Float16>(context, inputs, lists, update);
    if (s.ok()) s = UpdateStoredAs<BFloat16>(context, inputs, lists, update);
  }
  return s;
}

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_OPTIM_LISTS_H_
