// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The activations of kernels/elementwise_activation.h and their gradients.
#include "kernels/elementwise_activation.h"

#include <string>

#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/elements.h"
#include "kernels/cuda/launch.h"
#include "kernels/cuda/offsets.h"
#include "kernels/cuda/typed_map.h"

namespace holdfast::cuda {
namespace {

struct Numbers {
  double a = 0, b = 0, c = 0;
};

// An activation, or its gradient times the slope that comes to it.
template <typename Op, typename T>
struct Activation {
  T a, b, c;

  explicit Activation(const Numbers& numbers)
      : a(static_cast<T>(numbers.a)),
        b(static_cast<T>(numbers.b)),
        c(static_cast<T>(numbers.c)) {}

  HOLDFAST_HD T operator()(T x) const {
    return Op::template Apply<T>(T(1), x, a, b, c);
  }
  HOLDFAST_HD T operator()(T slope, T x) const {
    return Op::template Apply<T>(slope, x, a, b, c);
  }
};

// False if the operands are not stored as S each.
template <typename Op, typename S>
bool TryActivate(KernelContext& context, const TensorView& grad,
                 const TensorView& input, const TensorView& output,
                 const Numbers& numbers, absl::Status* status) {
  using T = ComputeOf<S>;
  const Activation<Op, T> f(numbers);
  if constexpr (Op::kGrad) {
    if (!HasTypedMap<S, S, S>(output, grad, input)) return false;
    *status = RunTypedMap<T, S, S, S>(context, f, output, grad, input);
  } else {
    if (!HasTypedMap<S, S>(output, input)) return false;
    *status = RunTypedMap<T, S, S>(context, f, output, input);
  }
  return true;
}

// Operands of several types: an element at a time.
template <typename Op, typename T>
absl::Status ActivateMixed(KernelContext& context, const TensorView& grad,
                           const TensorView& input, const TensorView& output,
                           const Numbers& numbers) {
  const TensorSpec* const specs[3] = {output.spec, input.spec, grad.spec};
  const Offsets<3> offsets = BroadcastOffsets<3>(specs);
  const Activation<Op, T> f(numbers);
  const Operand in(input), g(grad), out(output);
  return ForEach(context, offsets.numel, [=] HOLDFAST_LAMBDA(int64_t i) {
    int64_t at[3];
    offsets.At(i, at);
    const T slope = Op::kGrad ? g.Load<T>(at[2]) : T(1);
    out.Store(at[0], f(slope, in.Load<T>(at[1])));
  });
}

// `grad`: the input again for a forward op.
template <typename Op>
absl::Status Activate(KernelContext& context, const TensorView& grad,
                      const TensorView& in, const TensorView& out,
                      const Numbers& numbers) {
  if (out.spec->numel() == 0) return absl::OkStatus();
  absl::Status status;
  const bool typed =
      DispatchStoredFloat(out.spec->dtype, [&](auto tag) -> bool {
        using S = typename decltype(tag)::type;
        return TryActivate<Op, S>(context, grad, in, out, numbers, &status);
      });
  if (typed) return status;
  return DispatchFloat(ComputeType(out.spec->dtype),
                       [&](auto tag) -> absl::Status {
                         return ActivateMixed<Op, typename decltype(tag)::type>(
                             context, grad, in, out, numbers);
                       });
}

}  // namespace

#define HOLDFAST_ACTIVATION_KERNEL(op, functor, ...)                    \
  HOLDFAST_CUDA_KERNEL(op) {                                            \
    return Activate<activation::functor>(context, inputs[0], inputs[0], \
                                         outputs[0], {__VA_ARGS__});    \
  }
HOLDFAST_ACTIVATION_KERNEL(silu, silu)
HOLDFAST_ACTIVATION_KERNEL(mish, mish)
HOLDFAST_ACTIVATION_KERNEL(softplus, softplus, attrs.Float("beta"),
                           attrs.Float("threshold"))
HOLDFAST_ACTIVATION_KERNEL(leaky_relu, leaky_relu,
                           attrs.Float("negative_slope"))
HOLDFAST_ACTIVATION_KERNEL(elu, elu, attrs.Float("alpha"), attrs.Float("scale"),
                           attrs.Float("input_scale"))
HOLDFAST_ACTIVATION_KERNEL(hardswish, hardswish)
HOLDFAST_ACTIVATION_KERNEL(hardsigmoid, hardsigmoid)
HOLDFAST_ACTIVATION_KERNEL(hardtanh, hardtanh, attrs.Float("min_val"),
                           attrs.Float("max_val"))
HOLDFAST_ACTIVATION_KERNEL(hardshrink, hardshrink, attrs.Float("lambd"))
HOLDFAST_ACTIVATION_KERNEL(softshrink, softshrink, attrs.Float("lambd"))
HOLDFAST_ACTIVATION_KERNEL(threshold, threshold, attrs.Float("threshold"),
                           attrs.Float("value"))
HOLDFAST_ACTIVATION_KERNEL(softsign, softsign)
HOLDFAST_ACTIVATION_KERNEL(huber, huber, attrs.Float("delta"))
#undef HOLDFAST_ACTIVATION_KERNEL

HOLDFAST_CUDA_KERNEL(gelu) {
  const bool tanh = attrs.Str("approximate") == "tanh";
  const auto run =
      tanh ? &Activate<activation::gelu_tanh> : &Activate<activation::gelu>;
  return run(context, inputs[0], inputs[0], outputs[0], {});
}

HOLDFAST_CUDA_KERNEL(activation_backward) {
  const std::string& op = attrs.Str("op");
  const Numbers numbers = {attrs.Float("a"), attrs.Float("b"),
                           attrs.Float("c")};
#define HOLDFAST_SLOPE(name, derivative)                                    \
  if (op == #name) {                                                        \
    return Activate<activation::name##_grad>(context, inputs[0], inputs[1], \
                                             outputs[0], numbers);          \
  }
#define HOLDFAST_ACTIVATION_SLOPE(name, value, derivative) \
  HOLDFAST_SLOPE(name, derivative)
  HOLDFAST_ACTIVATIONS(HOLDFAST_ACTIVATION_SLOPE)
  HOLDFAST_SLOPES(HOLDFAST_SLOPE)
#undef HOLDFAST_ACTIVATION_SLOPE
#undef HOLDFAST_SLOPE
  return absl::InternalError("activation_backward of an unknown op");
}

}  // namespace holdfast::cuda
