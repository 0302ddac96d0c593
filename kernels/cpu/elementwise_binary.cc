// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <cstring>

#include "absl/strings/string_view.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/elementwise_kernel.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/strided_loop.h"
#include "kernels/elementwise.h"
#include "ops/infer.h"

namespace holdfast::cpu {
namespace {

absl::Status BinaryError(const Attrs& attrs, absl::Span<const TensorView> in,
                         absl::string_view message) {
  const TensorSpec* specs[] = {in[0].spec, in[1].spec};
  return OpError(attrs, specs, message);
}

bool HasZero(const KernelContext& context, const TensorView& view) {
  const StridedLoop walk({view});
  std::atomic<bool> found{false};
  ParallelFor(context, walk.numel(), kElementwiseGrain,
              [&](int64_t begin, int64_t end) {
                for (int64_t i = begin; i < end && !found; i += kBlock) {
                  BlockBuffer nonzero;
                  const int64_t n = std::min(kBlock, end - i);
                  walk.LoadInto(0, DType::kBool, i, n, nonzero.bytes);
                  if (std::memchr(nonzero.bytes, 0, n) != nullptr) {
                    found = true;
                  }
                }
              });
  return found;
}

template <typename Op>
struct BinaryKernel {
  static absl::Status Run(KernelContext& context, const Attrs& attrs,
                          absl::Span<const TensorView> in,
                          absl::Span<const TensorView> out) {
    return RunBinary(kBinaryTable<Op>, context, attrs, in, out);
  }
};

template <typename Op>
struct IntegerDivisionKernel {
  static absl::Status Run(KernelContext& context, const Attrs& attrs,
                          absl::Span<const TensorView> in,
                          absl::Span<const TensorView> out) {
    absl::Status s = RefuseZeroDivisor(context, attrs, in, out);
    if (!s.ok()) return s;
    return RunBinary(kBinaryTable<Op>, context, attrs, in, out);
  }
};
template <>
struct BinaryKernel<elementwise::op::floor_divide>
    : IntegerDivisionKernel<elementwise::op::floor_divide> {};
template <>
struct BinaryKernel<elementwise::op::remainder>
    : IntegerDivisionKernel<elementwise::op::remainder> {};

// As PyTorch's pow(a, 3).
struct Cube {
  using Types = elementwise::FloatTypes;
  template <typename T>
  using Result = T;
  template <typename T>
  static HOLDFAST_INLINE T Apply(T a) {
    return a * a * a;
  }
};

// Frequent exponents have exact, or nearly, and much faster forms.
template <>
struct BinaryKernel<elementwise::op::pow> {
  static absl::Status Run(KernelContext& context, const Attrs& attrs,
                          absl::Span<const TensorView> in,
                          absl::Span<const TensorView> out) {
    const DType type = in[1].spec->dtype;
    if (in[1].spec->rank() == 0 && in[0].spec->dtype == type &&
        out[0].spec->dtype == type && ComputeType(type) == type &&
        !IsComplex(type)) {
      const double exponent = DispatchDType(type, [&](auto tag) -> double {
        using T = typename decltype(tag)::type;
        return static_cast<double>(LoadElement(in[1].as<T>()));
      });
      if (exponent == 2.0 && type != DType::kBool) {
        return RunBinary(kBinaryTable<elementwise::op::mul>, context, attrs,
                         {in[0], in[0]}, out);
      }
      if (IsFloat(type) && exponent == 3.0) {
        return RunUnary(kUnaryTable<Cube>, context, in, out);
      }
      if (IsFloat(type) && exponent == -0.5) {
        return RunUnary(kUnaryTable<elementwise::op::rsqrt>, context, in, out);
      }
      if (IsFloat(type) && exponent == 0.5) {
        return RunUnary(kUnaryTable<elementwise::op::sqrt>, context, in, out);
      }
      if (IsFloat(type) && exponent == -1.0) {
        return RunUnary(kUnaryTable<elementwise::op::reciprocal>, context, in,
                        out);
      }
    }
    return RunBinary(kBinaryTable<elementwise::op::pow>, context, attrs, in,
                     out);
  }
};

}  // namespace

absl::Status RefuseZeroDivisor(const KernelContext& context, const Attrs& attrs,
                               absl::Span<const TensorView> in,
                               absl::Span<const TensorView> out) {
  if (IsIntegral(in[0].spec->dtype) && IsIntegral(in[1].spec->dtype) &&
      out[0].spec->numel() > 0 && HasZero(context, in[1])) {
    return BinaryError(attrs, in,
                       "integer division by zero: ZeroDivisionError");
  }
  return absl::OkStatus();
}

#define HOLDFAST_BINARY_KERNEL(name, types, expression)                     \
  HOLDFAST_CPU_KERNEL(name) {                                               \
    return BinaryKernel<elementwise::op::name>::Run(context, attrs, inputs, \
                                                    outputs);               \
  }
HOLDFAST_BINARY_OPS(HOLDFAST_BINARY_KERNEL)
#undef HOLDFAST_BINARY_KERNEL

}  // namespace holdfast::cpu
