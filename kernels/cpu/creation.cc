// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "kernels/cpu/copy.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/strided_loop.h"
#include "kernels/dtype_dispatch.h"
#include "kernels/elementwise.h"
#include "kernels/scalar_value.h"

namespace holdfast::cpu {

// What the memory holds is what the caller gets.
HOLDFAST_CPU_KERNEL(empty) { return absl::OkStatus(); }

HOLDFAST_CPU_KERNEL(full) {
  FillStrided(context, attrs.Get(1), outputs[0]);
  return absl::OkStatus();
}

// start + i * step, not a running sum: exact for integers, and rounded once
// for floats, whatever the number of threads.
HOLDFAST_CPU_KERNEL(arange) {
  const AttrValue& start = attrs.Get(0);
  const AttrValue& step = attrs.Get(2);
  const int64_t n = outputs[0].spec->numel();
  return DispatchDType(outputs[0].spec->dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    T* to = outputs[0].as<T>();
    ParallelFor(context, n, kElementwiseGrain, [&](int64_t begin, int64_t end) {
      if constexpr (std::is_floating_point_v<T>) {
        const double first = AttrAsDouble(start);
        const double by = AttrAsDouble(step);
        for (int64_t i = begin; i < end; ++i) {
          to[i] = static_cast<T>(first + static_cast<double>(i) * by);
        }
      } else {
        const int64_t first = AttrAsInt(start);
        const int64_t by = AttrAsInt(step);
        for (int64_t i = begin; i < end; ++i) {
          to[i] = elementwise::Cast<T>(
              elementwise::Add(first, elementwise::Multiply(i, by)));
        }
      }
    });
    return absl::OkStatus();
  });
}

HOLDFAST_CPU_KERNEL(eye) {
  FillStrided(context, AttrValue(false), outputs[0]);
  const TensorSpec& spec = *outputs[0].spec;
  const int64_t diagonal = std::min(spec.shape[0], spec.shape[1]);
  return DispatchWithComplex(spec.dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < diagonal; ++i) {
      outputs[0].as<T>()[i * (spec.shape[1] + 1)] = T(1);
    }
    return absl::OkStatus();
  });
}

}  // namespace holdfast::cpu
