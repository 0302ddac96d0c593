// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The functions of kernels/bessel.h. Each element takes 10 to 500 ns, so that a
// call per element costs little, and vector forms of them would only take the
// compiler minutes.
#include <algorithm>
#include <string>

#include "kernels/bessel.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/strided_loop.h"
#include "kernels/dtype_dispatch.h"

namespace holdfast::cpu {
namespace {

using Function = double (*)(double);

Function FindFunction(const std::string& name) {
#define HOLDFAST_FIND_NAMED(function, expression) \
  if (name == #function) return elementwise::named::function;
  HOLDFAST_SPECIAL_FUNCTIONS(HOLDFAST_FIND_NAMED)
#undef HOLDFAST_FIND_NAMED
  return nullptr;
}

}  // namespace

HOLDFAST_CPU_KERNEL(special_function) {
  const Function function = FindFunction(attrs.Str("function"));
  if (function == nullptr) return absl::InternalError("unknown function");
  constexpr int64_t kGrain = 1024;
  const StridedLoop walk({outputs[0], inputs[0]});
  const DType type = ComputeType(outputs[0].spec->dtype);
  return DispatchFloat(type, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    ParallelFor(context, walk.numel(), kGrain, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin, n; i < end; i += n) {
        BlockBuffer from, buffer;
        n = walk.BlockSize(i, end);
        const T* in = static_cast<const T*>(walk.Load(1, type, i, n, &from));
        T* to = static_cast<T*>(walk.Target(0, type, i, &buffer));
        for (int64_t j = 0; j < n; ++j) {
          to[j] = static_cast<T>(function(static_cast<double>(in[j])));
        }
        walk.Store(0, type, i, n, to);
      }
    });
    return absl::OkStatus();
  });
}

}  // namespace holdfast::cpu
