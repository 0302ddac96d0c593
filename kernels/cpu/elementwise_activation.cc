// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// The activations of kernels/elementwise_activation.h and their gradients.
#include "kernels/elementwise_activation.h"

#include <cstring>
#include <string>

#include "absl/status/status.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/strided_loop.h"
#include "kernels/cpu/vector_math.h"
#include "kernels/cpu/vectorised.h"
#include "kernels/dtype_dispatch.h"

namespace holdfast::cpu {
namespace {

struct Numbers {
  double a = 0, b = 0, c = 0;
};

// Only ever runs over whole vectors, the last one filled up: the vector forms
// of exp and its like differ from the scalar ones in the last bits, and a
// result must not depend on its position (see elementwise_kernel.h).
template <typename Op, typename T>
struct ActivationBody {
  static constexpr int64_t kLanes = 64 / sizeof(T);

  static HOLDFAST_INLINE void Run(const void* g, const void* x, void* y,
                                  int64_t n, Numbers numbers) {
    const T* grad = static_cast<const T*>(g);
    const T* in = static_cast<const T*>(x);
    T* out = static_cast<T*>(y);
    alignas(64) T padded_grad[kLanes];
    alignas(64) T padded[kLanes];
    int64_t count = n / kLanes * kLanes;
    const int64_t rest = n - count;
    T* last = out + count;
    for (int64_t j = 0; j < kLanes && rest > 0; ++j) {
      padded[j] = j < rest ? in[count + j] : T(1);
      padded_grad[j] = Op::kGrad && j < rest ? grad[count + j] : T(1);
    }
    while (true) {
      if (count > 0) Loop(grad, in, out, count, numbers);
      if (out == padded || rest == 0) break;
      grad = padded_grad;
      in = padded;
      out = padded;
      count = kLanes;
    }
    if (rest > 0) std::memcpy(last, padded, rest * sizeof(T));
  }

  static HOLDFAST_INLINE void Loop(const T* grad, const T* in, T* out,
                                   int64_t n, Numbers numbers) {
    const T a = static_cast<T>(numbers.a);
    const T b = static_cast<T>(numbers.b);
    const T c = static_cast<T>(numbers.c);
#pragma GCC ivdep
    for (int64_t i = 0; i < n; ++i) {
      out[i] =
          Op::template Apply<T>(Op::kGrad ? grad[i] : T(1), in[i], a, b, c);
    }
  }
};

// `grad` is null for a forward op.
template <typename Op>
absl::Status Activate(const KernelContext& context, const TensorView* grad,
                      const TensorView& in, const TensorView& out,
                      const Numbers& numbers) {
  const DType type = out.spec->dtype;
  const StridedLoop walk({out, in, grad == nullptr ? in : *grad});
  return DispatchFloat(type, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    ParallelFor(
        context, walk.numel(), kElementwiseGrain,
        [&](int64_t begin, int64_t end) {
          for (int64_t i = begin, n; i < end; i += n) {
            BlockBuffer from, from_grad, buffer;
            n = walk.BlockSize(i, end);
            void* to = walk.Target(0, type, i, &buffer);
            const void* x = walk.Load(1, type, i, n, &from);
            const void* g =
                Op::kGrad ? walk.Load(2, type, i, n, &from_grad) : x;
            Vectorised<ActivationBody<Op, T>>(g, x, to, n, numbers);
            walk.Store(0, type, i, n, to);
          }
        },
        kBlock);
    return absl::OkStatus();
  });
}

}  // namespace

HOLDFAST_CPU_KERNEL(gelu) {
  if (attrs.Str("approximate") == "tanh") {
    return Activate<activation::gelu_tanh>(context, nullptr, inputs[0],
                                           outputs[0], {});
  }
  return Activate<activation::gelu>(context, nullptr, inputs[0], outputs[0],
                                    {});
}
HOLDFAST_CPU_KERNEL(silu) {
  return Activate<activation::silu>(context, nullptr, inputs[0], outputs[0],
                                    {});
}
HOLDFAST_CPU_KERNEL(mish) {
  return Activate<activation::mish>(context, nullptr, inputs[0], outputs[0],
                                    {});
}
HOLDFAST_CPU_KERNEL(softplus) {
  return Activate<activation::softplus>(
      context, nullptr, inputs[0], outputs[0],
      {attrs.Float("beta"), attrs.Float("threshold")});
}
HOLDFAST_CPU_KERNEL(leaky_relu) {
  return Activate<activation::leaky_relu>(
      context, nullptr, inputs[0], outputs[0], {attrs.Float("negative_slope")});
}
HOLDFAST_CPU_KERNEL(elu) {
  return Activate<activation::elu>(
      context, nullptr, inputs[0], outputs[0],
      {attrs.Float("alpha"), attrs.Float("scale"), attrs.Float("input_scale")});
}
HOLDFAST_CPU_KERNEL(hardswish) {
  return Activate<activation::hardswish>(context, nullptr, inputs[0],
                                         outputs[0], {});
}
HOLDFAST_CPU_KERNEL(hardsigmoid) {
  return Activate<activation::hardsigmoid>(context, nullptr, inputs[0],
                                           outputs[0], {});
}

HOLDFAST_CPU_KERNEL(hardtanh) {
  return Activate<activation::hardtanh>(
      context, nullptr, inputs[0], outputs[0],
      {attrs.Float("min_val"), attrs.Float("max_val")});
}
HOLDFAST_CPU_KERNEL(hardshrink) {
  return Activate<activation::hardshrink>(context, nullptr, inputs[0],
                                          outputs[0], {attrs.Float("lambd")});
}
HOLDFAST_CPU_KERNEL(softshrink) {
  return Activate<activation::softshrink>(context, nullptr, inputs[0],
                                          outputs[0], {attrs.Float("lambd")});
}
HOLDFAST_CPU_KERNEL(threshold) {
  return Activate<activation::threshold>(
      context, nullptr, inputs[0], outputs[0],
      {attrs.Float("threshold"), attrs.Float("value")});
}
HOLDFAST_CPU_KERNEL(softsign) {
  return Activate<activation::softsign>(context, nullptr, inputs[0], outputs[0],
                                        {});
}

HOLDFAST_CPU_KERNEL(huber) {
  return Activate<activation::huber>(context, nullptr, inputs[0], outputs[0],
                                     {attrs.Float("delta")});
}

HOLDFAST_CPU_KERNEL(activation_backward) {
  const std::string& op = attrs.Str("op");
  const Numbers numbers = {attrs.Float("a"), attrs.Float("b"),
                           attrs.Float("c")};
#define HOLDFAST_SLOPE(name, derivative)                                     \
  if (op == #name) {                                                         \
    return Activate<activation::name##_grad>(context, &inputs[0], inputs[1], \
                                             outputs[0], numbers);           \
  }
#define HOLDFAST_ACTIVATION_SLOPE(name, value, derivative) \
  HOLDFAST_SLOPE(name, derivative)
  HOLDFAST_ACTIVATIONS(HOLDFAST_ACTIVATION_SLOPE)
  HOLDFAST_SLOPES(HOLDFAST_SLOPE)
#undef HOLDFAST_ACTIVATION_SLOPE
#undef HOLDFAST_SLOPE
  return absl::InternalError("activation_backward of an unknown op");
}

}  // namespace holdfast::cpu
