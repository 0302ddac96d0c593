// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// RunTypedMap: an elementwise computation over operands whose stored types the
// compiler knows, in two forms. Dense: contiguous operands, packs of up to 16
// bytes. Strided: any strides and broadcasting, several elements a thread.
// Thread-safety: reentrant.
#ifndef HOLDFAST_KERNELS_CUDA_TYPED_MAP_H_
#define HOLDFAST_KERNELS_CUDA_TYPED_MAP_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "kernels/cuda/elements.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/offsets.h"
#include "kernels/cuda/packs.h"
#include "kernels/cuda/tiles.h"
#include "kernels/number_operand.h"

namespace holdfast::cuda {

// A number, or a tensor of n elements in a row.
inline bool IsDense(const TensorView& view, DType stored, int64_t n) {
  return IsNumber(view) || (view.spec->dtype == stored && Aligned(view.data) &&
                            view.spec->numel() == n && view.spec->contiguous());
}

// A tensor's elements, or a number for all of them, as a T each.
template <typename T>
struct MapInput {
  const void* data = nullptr;  // null: `number`
  T number = T(0);

  MapInput() = default;
  explicit MapInput(const TensorView& view) {
    if (IsNumber(view)) {
      number = LoadAs<T>(view.spec->dtype, view.data, 0);
    } else {
      data = view.data;
    }
  }
  template <typename S>
  HOLDFAST_HD T Load(int64_t at) const {
    return data == nullptr ? number : Convert<T>(LoadStored<S>(data, at));
  }
  // kSize elements from `first` on, as input number kInput of `elements`.
  template <typename S, int kSize, size_t kInput, typename Elements>
  HOLDFAST_HD void LoadTogether(int64_t first, Elements* elements) const {
    if (data == nullptr) {
      HOLDFAST_UNROLL
      for (int j = 0; j < kSize; ++j) elements[j].of[kInput] = number;
      return;
    }
    T values[kSize];
    LoadPack<kSize>(static_cast<const S*>(data) + first, values);
    HOLDFAST_UNROLL
    for (int j = 0; j < kSize; ++j) elements[j].of[kInput] = values[j];
  }
};

// One element of each input.
template <typename T, size_t kInputs>
struct MapElements {
  T of[kInputs];
};

template <typename F, typename T, size_t... k>
HOLDFAST_HD auto Apply(const F& f, const MapElements<T, sizeof...(k)>& x,
                       std::index_sequence<k...>) {
  return f(x.of[k]...);
}

template <typename F, typename T, typename Out, typename... In>
struct DenseMap {
  static constexpr size_t kInputs = sizeof...(In);
  static constexpr int kSize =
      kPackBytes / static_cast<int>(std::max({sizeof(Out), sizeof(In)...}));
  using Each = std::index_sequence_for<In...>;
  using Elements = MapElements<T, kInputs>;

  F f;
  int64_t n;
  Out* out;
  MapInput<T> in[kInputs];

  HOLDFAST_HD Out Result(const Elements& x) const {
    return Convert<Out>(Apply(f, x, Each()));
  }
  template <size_t... k>
  HOLDFAST_HD void LoadPacks(int64_t first, Elements* x,
                             std::index_sequence<k...>) const {
    (in[k].template LoadTogether<In, kSize, k>(first, x), ...);
  }
  template <size_t... k>
  HOLDFAST_HD Elements LoadOne(int64_t i, std::index_sequence<k...>) const {
    return {{in[k].template Load<In>(i)...}};
  }
  // The i-th pack; the last one may be short. It is filled up with one of its
  // elements, so that what is computed is there once.
  HOLDFAST_HD void operator()(int64_t i) const {
    const int64_t first = i * kSize, left = n - first;
    Elements x[kSize];
    if (left >= kSize) {
      LoadPacks(first, x, Each());
    } else {
      HOLDFAST_UNROLL
      for (int j = 0; j < kSize; ++j) {
        x[j] = LoadOne(first + (j < left ? j : 0), Each());
      }
    }
    Out results[kSize];
    HOLDFAST_UNROLL
    for (int j = 0; j < kSize; ++j) results[j] = Result(x[j]);
    if (left >= kSize) {
      StorePack<kSize>(out + first, results);
    } else {
      HOLDFAST_UNROLL
      for (int j = 0; j < kSize; ++j) {
        if (j < left) out[first + j] = results[j];
      }
    }
  }
};

template <typename F, typename T, typename Out, typename... In>
struct StridedMap {
  static constexpr size_t kInputs = sizeof...(In);
  using Each = std::index_sequence_for<In...>;
  struct Loaded {
    MapElements<T, kInputs> x;
    int64_t at;  // of the result
  };

  F f;
  Out* out;
  MapInput<T> in[kInputs];
  Offsets<1 + kInputs> offsets;

  template <size_t... k>
  HOLDFAST_HD Loaded LoadAt(const int64_t* at,
                            std::index_sequence<k...>) const {
    return {{{in[k].template Load<In>(at[1 + k])...}}, at[0]};
  }
  HOLDFAST_HD Loaded Load(int64_t i) const {
    int64_t at[1 + kInputs];
    offsets.AtNarrow(i, at);
    return LoadAt(at, Each());
  }
  HOLDFAST_HD void Store(int64_t, const Loaded& loaded) const {
    out[loaded.at] = Convert<Out>(Apply(f, loaded.x, Each()));
  }
};

// Whether the dense form can be had.
template <typename Out, typename... In, typename... Views>
bool HasDenseMap(const TensorView& output, const Views&... inputs) {
  const int64_t n = output.spec->numel();
  return !IsNumber(output) && IsDense(output, kStoredDType<Out>, n) &&
         (IsDense(inputs, kStoredDType<In>, n) && ...);
}

// Whether there is a form for the operands: of any strides unless positions
// take more than 31 bits.
template <typename Out, typename... In, typename... Views>
bool HasTypedMap(const TensorView& output, const Views&... inputs) {
  static_assert(sizeof...(In) == sizeof...(Views));
  const int64_t n = output.spec->numel();
  if (output.spec->dtype != kStoredDType<Out>) return false;
  if (!((IsNumber(inputs) || inputs.spec->dtype == kStoredDType<In>)&&...)) {
    return false;
  }
  return n <= std::numeric_limits<int32_t>::max() ||
         HasDenseMap<Out, In...>(output, inputs...);
}

// output = f(one T of each input). REQUIRES: HasDenseMap.
template <typename T, typename Out, typename... In, typename F,
          typename... Views>
absl::Status RunDenseMap(KernelContext& context, const F& f,
                         const TensorView& output, const Views&... inputs) {
  using Map = DenseMap<F, T, Out, In...>;
  const int64_t n = output.spec->numel();
  const Map map = {f, n, output.as<Out>(), {MapInput<T>(inputs)...}};
  return ForEach(context, (n + Map::kSize - 1) / Map::kSize, map);
}

// The same; inputs broadcast to the output. REQUIRES: HasTypedMap.
template <typename T, typename Out, typename... In, typename F,
          typename... Views>
absl::Status RunTypedMap(KernelContext& context, const F& f,
                         const TensorView& output, const Views&... inputs) {
  if (HasDenseMap<Out, In...>(output, inputs...)) {
    return RunDenseMap<T, Out, In...>(context, f, output, inputs...);
  }
  const TensorSpec* const specs[] = {output.spec, inputs.spec...};
  const StridedMap<F, T, Out, In...> map = {
      f,
      output.as<Out>(),
      {MapInput<T>(inputs)...},
      BroadcastOffsets<1 + sizeof...(In)>(specs)};
  return ForEachTile(context, output.spec->numel(), map);
}

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_TYPED_MAP_H_
