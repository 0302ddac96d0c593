// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/turned_rows.h"

#include "kernels/cuda/elements.h"
#include "kernels/cuda/launch.h"

namespace holdfast::cuda {
namespace {

template <typename Bits>
absl::Status Turn(KernelContext& context, int64_t count, int64_t batch,
                  const int64_t* rows, int64_t width, int64_t n,
                  const Bits* from, Bits* to) {
  return ForEach(context, n, [=] HOLDFAST_LAMBDA(int64_t i) {
    const int64_t row = i / width;
    const int64_t source =
        rows != nullptr ? rows[row]
                        : (count - 1 - row / batch) * batch + row % batch;
    to[i] = from[source * width + i % width];
  });
}

}  // namespace

absl::Status TurnedRows::Make(KernelContext& context,
                              const RecurrentSteps& steps, bool packed) {
  count_ = steps.count();
  batch_ = steps.batch;
  rows_ = nullptr;
  if (!packed) return absl::OkStatus();
  const std::vector<int64_t> turned = steps.TurnedRows();
  int64_t* const rows = ScratchOf<int64_t>(context, steps.rows());
  if (rows == nullptr) return NoScratch();
  rows_ = rows;
  return Cuda(context).CopyToDevice(rows, turned.data(),
                                    turned.size() * sizeof(int64_t));
}

absl::Status TurnedRows::Copy(KernelContext& context, const TensorView& from,
                              void* to) const {
  const TensorSpec& spec = *from.spec;
  return DispatchBits(spec.dtype, [&](auto tag) -> absl::Status {
    using Bits = typename decltype(tag)::type;
    return Turn<Bits>(context, count_, batch_, rows_, spec.shape.back(),
                      spec.numel(), from.as<Bits>(), static_cast<Bits*>(to));
  });
}

}  // namespace holdfast::cuda
