// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The functions of kernels/bessel.h, in double.
#include <string>

#include "kernels/bessel.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/elements.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/offsets.h"

namespace holdfast::cuda {
namespace {

#define HOLDFAST_NAMED_FUNCTOR(function, expression) \
  struct Call_##function {                           \
    static HOLDFAST_HD double Of(double x) {         \
      return elementwise::named::function(x);        \
    }                                                \
  };
HOLDFAST_SPECIAL_FUNCTIONS(HOLDFAST_NAMED_FUNCTOR)
#undef HOLDFAST_NAMED_FUNCTOR

template <typename Function>
absl::Status Map(KernelContext& context, const TensorView& input,
                 const TensorView& output) {
  const TensorSpec* const specs[2] = {output.spec, input.spec};
  const Offsets<2> offsets = BroadcastOffsets<2>(specs);
  const Operand in(input), out(output);
  return ForEach(context, offsets.numel, [=] HOLDFAST_LAMBDA(int64_t i) {
    int64_t at[2];
    offsets.At(i, at);
    out.Store(at[0], Function::Of(in.Load<double>(at[1])));
  });
}

}  // namespace

HOLDFAST_CUDA_KERNEL(special_function) {
  const std::string& name = attrs.Str("function");
#define HOLDFAST_RUN_NAMED(function, expression)                 \
  if (name == #function) {                                       \
    return Map<Call_##function>(context, inputs[0], outputs[0]); \
  }
  HOLDFAST_SPECIAL_FUNCTIONS(HOLDFAST_RUN_NAMED)
#undef HOLDFAST_RUN_NAMED
  return absl::InternalError("unknown function");
}

}  // namespace holdfast::cuda
