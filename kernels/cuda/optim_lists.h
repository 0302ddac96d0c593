// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// One launch over all parameters of an optimizer step: the tensors are cut into
// chunks, and a table on the device says which chunk belongs to which tensor.
// Tensors with gaps, or whose gradient has another type, have a launch each.
// Thread-safety: reentrant.
#ifndef HOLDFAST_KERNELS_CUDA_OPTIM_LISTS_H_
#define HOLDFAST_KERNELS_CUDA_OPTIM_LISTS_H_

#include <algorithm>
#include <cstdint>
#include <vector>

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
  int64_t tensor, begin, end;
};

// Chunks of tensors of these sizes.
inline std::vector<OptimChunk> MakeOptimChunks(
    const std::vector<int64_t>& sizes) {
  std::vector<OptimChunk> chunks;
  for (size_t t = 0; t < sizes.size(); ++t) {
    for (int64_t begin = 0; begin < sizes[t]; begin += kOptimChunk) {
      chunks.push_back({static_cast<int64_t>(t), begin,
                        std::min(sizes[t], begin + kOptimChunk)});
    }
  }
  return chunks;
}

template <typename T, typename Update>
absl::Status UpdateDense(KernelContext& context,
                         const std::vector<OptimTensors<T>>& tensors,
                         const std::vector<int64_t>& sizes, Update update) {
  const std::vector<OptimChunk> chunks = MakeOptimChunks(sizes);
  if (chunks.empty()) return absl::OkStatus();
  auto* const table = ScratchOf<OptimTensors<T>>(context, tensors.size());
  auto* const parts = ScratchOf<OptimChunk>(context, chunks.size());
  if (table == nullptr || parts == nullptr) return NoScratch();
  absl::Status s = Cuda(context).CopyToDevice(
      table, tensors.data(), tensors.size() * sizeof(tensors[0]));
  if (s.ok()) {
    s = Cuda(context).CopyToDevice(parts, chunks.data(),
                                   chunks.size() * sizeof(chunks[0]));
  }
  if (!s.ok()) return s;
  return ForEachRow(context, static_cast<int64_t>(chunks.size()), kBlockThreads,
                    [=] HOLDFAST_LAMBDA(const Group& group, int64_t row) {
                      const OptimChunk chunk = parts[row];
                      const OptimTensors<T> t = table[chunk.tensor];
                      const auto at = [](T* list, int64_t i) {
                        return list == nullptr ? nullptr : list + i;
                      };
                      for (int64_t i = chunk.begin + group.rank; i < chunk.end;
                           i += group.size) {
                        update(t.list[0] + i, t.list[1][i], at(t.list[2], i),
                               at(t.list[3], i), at(t.list[4], i));
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
    update(&p, grad.Load<T>(at[1]), lists > 2 ? &x : nullptr,
           lists > 3 ? &y : nullptr, lists > 4 ? &z : nullptr);
    param.Store(at[0], p);
    // A list that is the gradients again is not to be written.
    if (lists > 2 && a.data != grad.data) a.Store(at[2], x);
    if (lists > 3 && b.data != grad.data) b.Store(at[3], y);
    if (lists > 4 && c.data != grad.data) c.Store(at[4], z);
  });
}

// update(parameter, gradient, state pointers) for every element of every
// parameter of type T. `inputs`: `lists` lists of one length. A state may be
// the gradients' list again: `update` must not write such a one.
template <typename T, typename Update>
absl::Status UpdateAllOf(KernelContext& context,
                         absl::Span<const TensorView> inputs, int lists,
                         Update update) {
  const size_t count = inputs.size() / lists;
  std::vector<OptimTensors<T>> tensors;
  std::vector<int64_t> sizes;
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
    if (dense) {
      tensors.push_back(t);
      sizes.push_back(views[0].spec->numel());
      continue;
    }
    absl::Status s = UpdateStrided<T>(context, views, lists, update);
    if (!s.ok()) return s;
  }
  return UpdateDense<T>(context, tensors, sizes, update);
}

}  // namespace holdfast

#endif  // HOLDFAST_KERNELS_CUDA_OPTIM_LISTS_H_
