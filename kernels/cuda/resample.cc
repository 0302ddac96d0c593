// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// resample2d and its adjoint, one kernel with other tables: a thread per
// element of the result sums the window that both axes' tables give it.
#include <vector>

#include "kernels/cuda/copy.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/elements.h"
#include "kernels/cuda/index_division.h"
#include "kernels/cuda/launch.h"
#include "kernels/resample_axis.h"

namespace holdfast {
namespace {

// ResampleAxis on the device.
template <typename T>
struct DeviceAxis {
  const int32_t* first = nullptr;
  const int64_t* offset = nullptr;
  const T* weight = nullptr;  // null: the identity
  int64_t size = 0;

  HOLDFAST_HD int64_t First(int64_t i) const {
    return weight == nullptr ? i : first[i];
  }
  HOLDFAST_HD int64_t Taps(int64_t i) const {
    return weight == nullptr ? 1 : offset[i + 1] - offset[i];
  }
  HOLDFAST_HD T Weight(int64_t i, int64_t k) const {
    return weight == nullptr ? T(1) : weight[offset[i] + k];
  }
};

template <typename E>
absl::Status Upload(KernelContext& context, const std::vector<E>& from,
                    const E** to) {
  E* const table = ScratchOf<E>(context, from.size());
  if (table == nullptr) return NoScratch();
  *to = table;
  return Cuda(context).CopyToDevice(table, from.data(),
                                    from.size() * sizeof(E));
}

template <typename T>
absl::Status UploadAxis(KernelContext& context, const ResampleAxis<T>& axis,
                        DeviceAxis<T>* to) {
  to->size = axis.size();
  if (axis.identity > 0) return absl::OkStatus();
  absl::Status s = Upload(context, axis.first, &to->first);
  if (s.ok()) s = Upload(context, axis.offset, &to->offset);
  if (s.ok()) s = Upload(context, axis.weight, &to->weight);
  return s;
}

template <typename S, typename Index>
struct Resampled {
  using T = ComputeOf<S>;

  DeviceAxis<T> h, w;
  Division<Index> by_h, by_w;
  int64_t in_h, in_w;
  const S* in;
  S* out;

  HOLDFAST_HD void operator()(int64_t n) const {
    const auto column = by_w.Split(static_cast<Index>(n));
    const auto row = by_h.Split(column.quotient);
    const int64_t x = column.rest, y = row.rest, plane = row.quotient;
    const S* from = in + (plane * in_h + h.First(y)) * in_w + w.First(x);
    const int64_t rows = h.Taps(y), columns = w.Taps(x);
    T sum = 0;
    for (int64_t i = 0; i < rows; ++i, from += in_w) {
      T of_row = 0;
      for (int64_t j = 0; j < columns; ++j) {
        of_row += w.Weight(x, j) * Convert<T>(from[j]);
      }
      sum += h.Weight(y, i) * of_row;
    }
    out[n] = Convert<S>(sum);
  }
};

template <typename S>
absl::Status ResampleAs(KernelContext& context, const Attrs& attrs,
                        const Dims& in, const S* from, const TensorView& output,
                        bool adjoint) {
  using T = ComputeOf<S>;
  const Dims& out = output.spec->shape;
  const size_t d = in.size() - 2;
  DeviceAxis<T> axes[2];
  for (int i = 0; i < 2; ++i) {
    absl::Status made = UploadAxis(
        context, ResampleAxisOf<T>(attrs, i, in[d + i], out[d + i], adjoint),
        &axes[i]);
    if (!made.ok()) return made;
  }
  const int64_t numel = output.spec->numel();
  return DispatchIndex(numel, [&](auto tag) -> absl::Status {
    using Index = typename decltype(tag)::type;
    return ForEach(
        context, numel,
        Resampled<S, Index>{axes[0], axes[1], Division<Index>(axes[0].size),
                            Division<Index>(axes[1].size), in[d], in[d + 1],
                            from, output.as<S>()});
  });
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

}  // namespace holdfast
