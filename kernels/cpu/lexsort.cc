// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// lexsort: the order of a matrix's rows by their first element, then the
// second, and so on.
#include <algorithm>
#include <numeric>

#include "kernels/cpu/copy.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/sort_items.h"

namespace holdfast::cpu {

HOLDFAST_CPU_KERNEL(lexsort) {
  const TensorView& in = inputs[0];
  const int64_t n = in.spec->shape[0], columns = in.spec->shape[1];
  int64_t* order = outputs[0].as<int64_t>();
  std::iota(order, order + n, 0);
  if (n < 2 || columns == 0) return absl::OkStatus();
  TensorSpec spec;
  TensorView view;
  absl::Status s = MakeContiguous(context, in, in.spec->dtype, &spec, &view);
  if (!s.ok()) return s;
  return DispatchDType(view.spec->dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    // Copies: a client that changed elements under the sort, or the order in
    // the output, would lead it out of bounds.
    using K = SortKey<T>;
    const int64_t count = n * columns;
    K* keys = static_cast<K*>(context.Scratch(count * sizeof(K)));
    int64_t* rows = static_cast<int64_t*>(context.Scratch(n * sizeof(int64_t)));
    if (keys == nullptr || rows == nullptr) {
      return absl::ResourceExhaustedError("scratch memory for sorting rows");
    }
    const T* p = view.as<T>();
    ParallelFor(context, count, 16384, [&](int64_t b, int64_t e) {
      for (int64_t i = b; i < e; ++i) keys[i] = EncodeKey(p + i);
    });
    if (context.Stopped()) return absl::AbortedError("stopped");
    std::iota(rows, rows + n, 0);
    const bool sorted = UntilStopped(context, [&](StepCounter& steps) {
      std::sort(rows, rows + n, [&](int64_t a, int64_t b) {
        const K* x = keys + a * columns;
        const K* y = keys + b * columns;
        for (int64_t j = 0; j < columns; ++j) {
          if (x[j] == y[j]) continue;
          steps.Count(j + 1);
          return x[j] < y[j];
        }
        steps.Count(columns);
        return a < b;
      });
    });
    if (!sorted) return absl::AbortedError("stopped");
    std::copy(rows, rows + n, order);
    return absl::OkStatus();
  });
}

}  // namespace holdfast::cpu
