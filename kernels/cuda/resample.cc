// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// resample2d and its adjoint, one kernel with other tables: a thread for some
// neighbours in a row of the result sums the windows that both axes' tables
// give them. Windows of up to four taps are loaded at once.
#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "kernels/cuda/copy.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/elements.h"
#include "kernels/cuda/index_division.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/packs.h"
#include "kernels/resample_axis.h"

namespace holdfast::cuda {
namespace {

template <typename E>
absl::Status Upload(KernelContext& context, const std::vector<E>& from,
                    const E** to) {
  E* const table = ScratchOf<E>(context, from.size());
  if (table == nullptr) return NoScratch();
  *to = table;
  return Cuda(context).CopyToDevice(table, from.data(),
                                    from.size() * sizeof(E));
}

// The window of one output along an axis: inputs first .. first + taps - 1. The
// others are not read: they may be infinite.
template <typename T, int kTaps>
struct alignas(kPackBytes) FewTaps {
  int32_t first, taps;
  T weight[kTaps];
};

template <typename T, int kTaps>
absl::Status UploadFew(KernelContext& context, const ResampleAxis<T>& axis,
                       const FewTaps<T, kTaps>** to) {
  std::vector<FewTaps<T, kTaps>> table(axis.size());
  for (size_t i = 0; i < table.size(); ++i) {
    FewTaps<T, kTaps>& one = table[i];
    one = {};
    if (axis.identity > 0) {
      one.first = static_cast<int32_t>(i);
      one.taps = 1;
      one.weight[0] = 1;
      continue;
    }
    one.first = axis.first[i];
    one.taps = static_cast<int32_t>(axis.taps(i));
    const T* const weights = axis.weight.data() + axis.offset[i];
    std::copy_n(weights, one.taps, one.weight);
  }
  return Upload(context, table, to);
}

// What both forms know: planes of in_h x in_w.
template <typename S>
struct Planes {
  int64_t in_h, in_w;
  const S* in;
  S* out;
};

// kWidth neighbours by a thread.
template <typename S, int kTaps, int kWidth>
struct ResampleFew {
  using T = ComputeOf<S>;
  using Taps = FewTaps<T, kTaps>;

  Planes<S> planes;
  const Taps *h, *w;
  Division<uint32_t> by_h, by_packs;

  HOLDFAST_HD void operator()(int64_t pack) const {
    const auto column = by_packs.Split(static_cast<uint32_t>(pack));
    const auto row = by_h.Split(column.quotient);
    Taps down, along[kWidth];
    LoadWords<sizeof(Taps)>(&down, h + row.rest);
    LoadWords<kWidth * sizeof(Taps)>(along, w + column.rest * kWidth);
    const S* const from =
        planes.in +
        (static_cast<int64_t>(row.quotient) * planes.in_h + down.first) *
            planes.in_w;
    T v[kWidth][kTaps][kTaps];
    HOLDFAST_UNROLL
    for (int e = 0; e < kWidth; ++e) {
      const S* corner = from + along[e].first;
      HOLDFAST_UNROLL
      for (int i = 0; i < kTaps; ++i, corner += planes.in_w) {
        HOLDFAST_UNROLL
        for (int j = 0; j < kTaps; ++j) {
          v[e][i][j] = 0;
          if (i < down.taps && j < along[e].taps) {
            v[e][i][j] = Convert<T>(corner[j]);
          }
        }
      }
    }
    T sums[kWidth];
    HOLDFAST_UNROLL
    for (int e = 0; e < kWidth; ++e) {
      sums[e] = 0;
      HOLDFAST_UNROLL
      for (int i = 0; i < kTaps; ++i) {
        T of_row = 0;
        HOLDFAST_UNROLL
        for (int j = 0; j < kTaps; ++j) {
          of_row += along[e].weight[j] * v[e][i][j];
        }
        sums[e] += down.weight[i] * of_row;
      }
    }
    StorePack<kWidth>(planes.out + pack * kWidth, sums);
  }
};

template <typename S, int kTaps>
absl::Status ResampleFewAs(KernelContext& context, const Planes<S>& planes,
                           const ResampleAxis<ComputeOf<S>>& down,
                           const ResampleAxis<ComputeOf<S>>& along,
                           int64_t numel) {
  using T = ComputeOf<S>;
  constexpr int kFull = std::min(kTaps == 4 ? 2 : 4, kPackWidth<S>);
  const FewTaps<T, kTaps>*h, *w;
  absl::Status s = UploadFew<T, kTaps>(context, down, &h);
  if (s.ok()) s = UploadFew<T, kTaps>(context, along, &w);
  if (!s.ok()) return s;
  const Division<uint32_t> by_h(down.size());
  if (PacksFit<S>(kFull, along.size(), {planes.out})) {
    return ForEach(
        context, numel / kFull,
        ResampleFew<S, kTaps, kFull>{planes, h, w, by_h,
                                     Division<uint32_t>(along.size() / kFull)});
  }
  return ForEach(context, numel,
                 ResampleFew<S, kTaps, 1>{planes, h, w, by_h,
                                          Division<uint32_t>(along.size())});
}

// ResampleAxis on the device.
template <typename T>
struct DeviceAxis {
  const int32_t* first = nullptr;
  const int64_t* offset = nullptr;
  const T* weight = nullptr;  // null: the identity

  struct Window {
    int64_t first;
    int64_t taps;
    const T* weight;  // null: 1
  };
  HOLDFAST_HD Window At(int64_t i) const {
    if (weight == nullptr) return {i, 1, nullptr};
    return {first[i], offset[i + 1] - offset[i], weight + offset[i]};
  }
};

template <typename T>
absl::Status UploadAxis(KernelContext& context, const ResampleAxis<T>& axis,
                        DeviceAxis<T>* to) {
  if (axis.identity > 0) return absl::OkStatus();
  absl::Status s = Upload(context, axis.first, &to->first);
  if (s.ok()) s = Upload(context, axis.offset, &to->offset);
  if (s.ok()) s = Upload(context, axis.weight, &to->weight);
  return s;
}

// Windows of any number of taps.
template <typename S, typename Index>
struct ResampleMany {
  using T = ComputeOf<S>;

  Planes<S> planes;
  DeviceAxis<T> h, w;
  Division<Index> by_h, by_w;

  HOLDFAST_HD void operator()(int64_t n) const {
    const auto column = by_w.Split(static_cast<Index>(n));
    const auto row = by_h.Split(column.quotient);
    const auto down = h.At(row.rest), along = w.At(column.rest);
    const S* from =
        planes.in +
        (static_cast<int64_t>(row.quotient) * planes.in_h + down.first) *
            planes.in_w +
        along.first;
    T sum = 0;
    for (int64_t i = 0; i < down.taps; ++i, from += planes.in_w) {
      T of_row = 0;
      for (int64_t j = 0; j < along.taps; ++j) {
        const T v = Convert<T>(from[j]);
        of_row += along.weight == nullptr ? v : along.weight[j] * v;
      }
      sum += down.weight == nullptr ? of_row : down.weight[i] * of_row;
    }
    planes.out[n] = Convert<S>(sum);
  }
};

template <typename S>
absl::Status ResampleManyAs(KernelContext& context, const Planes<S>& planes,
                            const ResampleAxis<ComputeOf<S>>& down,
                            const ResampleAxis<ComputeOf<S>>& along,
                            int64_t numel) {
  DeviceAxis<ComputeOf<S>> h, w;
  absl::Status s = UploadAxis(context, down, &h);
  if (s.ok()) s = UploadAxis(context, along, &w);
  if (!s.ok()) return s;
  return DispatchIndex(numel, [&](auto tag) -> absl::Status {
    using Index = typename decltype(tag)::type;
    return ForEach(
        context, numel,
        ResampleMany<S, Index>{planes, h, w, Division<Index>(down.size()),
                               Division<Index>(along.size())});
  });
}

template <typename S>
absl::Status ResampleAs(KernelContext& context, const Attrs& attrs,
                        const Dims& in, const S* from, const TensorView& output,
                        bool adjoint) {
  using T = ComputeOf<S>;
  const Dims& out = output.spec->shape;
  const size_t d = in.size() - 2;
  const auto axis = [&](int i) {
    return ResampleAxisOf<T>(attrs, i, in[d + i], out[d + i], adjoint);
  };
  const ResampleAxis<T> down = axis(0), along = axis(1);
  const Planes<S> planes = {in[d], in[d + 1], from, output.as<S>()};
  const int64_t numel = output.spec->numel();
  const int64_t most = std::max(down.max_taps, along.max_taps);
  if (numel > std::numeric_limits<int32_t>::max() || most > 4) {
    return ResampleManyAs<S>(context, planes, down, along, numel);
  }
  if (most <= 1) {
    return ResampleFewAs<S, 1>(context, planes, down, along, numel);
  }
  return most == 2 ? ResampleFewAs<S, 2>(context, planes, down, along, numel)
                   : ResampleFewAs<S, 4>(context, planes, down, along, numel);
}

absl::Status Resample(KernelContext& context, const Attrs& attrs,
                      const TensorView& input, const TensorView& output,
                      bool adjoint) {
  if (output.spec->numel() == 0) return absl::OkStatus();
  ContiguousOperands<1> operand;
  absl::Status s = operand.MakeOne(context, 0, input, output.spec->dtype);
  if (!s.ok()) return s;
  return DispatchStoredFloat(output.spec->dtype, [&](auto tag) -> absl::Status {
    using S = typename decltype(tag)::type;
    return ResampleAs<S>(context, attrs, input.spec->shape, operand.as<S>(0),
                         output, adjoint);
  });
}

}  // namespace

HOLDFAST_CUDA_KERNEL(resample2d) {
  return Resample(context, attrs, inputs[0], outputs[0], /*adjoint=*/false);
}

HOLDFAST_CUDA_KERNEL(resample2d_backward) {
  return Resample(context, attrs, inputs[0], outputs[0], /*adjoint=*/true);
}

}  // namespace holdfast::cuda
