// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/cpu_kernels.h"

#include "kernels/cpu/kernel_symbols.h"
#include "kernels/kernel_table.h"
#include "ops/op_schema.h"

namespace holdfast::cpu {

namespace {

// The lambda's body is instantiated, and its kernel referenced, only for ops
// that are not views: those need no kernel.
template <bool kIsView, typename F>
constexpr KernelFn Pick(F pick) {
  if constexpr (kIsView) {
    return nullptr;
  } else {
    return pick(0);
  }
}

// The same for companions, which only ops of unknown sizes have.
template <bool kHasSizes, typename F>
constexpr SizesFn PickSizes(F pick) {
  if constexpr (kHasSizes) {
    return pick(0);
  } else {
    return nullptr;
  }
}

}  // namespace

const KernelTable& CpuKernels() {
  static const KernelTable table = {{
#define OP(name, signature, infer, flags, since, doc) \
  Pick<(((flags)&kView) != 0)>([](auto) -> KernelFn { return &Cpu_##name; }),
#include "ops/ops.def"
#undef OP
                                    },
                                    {
#define OP(name, signature, infer, flags, since, doc) \
  PickSizes<(((flags)&kUnknownSizes) != 0)>(          \
      [](auto) -> SizesFn { return &Cpu_##name##_sizes; }),
#include "ops/ops.def"
#undef OP
                                    }};
  return table;
}

}  // namespace holdfast::cpu
