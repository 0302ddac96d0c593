// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// torch.autocast("holdfast"): which operators run in the lower type, which in
// float32 and which in the widest of their operands'. The lists are PyTorch's,
// the same as for its other accelerators. Thread-safety: PyTorch's; autocast's
// state is each thread's own.
#include <ATen/autocast_mode.h>
#include <torch/library.h>

#include <optional>

namespace {

// The lists' macros name what they use without its namespace.
using namespace at::autocast;  // NOLINT(build/namespaces)
using at::IntArrayRef;
using at::Scalar;
using at::ScalarType;
using at::Tensor;

Tensor RefuseBinaryCrossEntropy(const Tensor&, const Tensor&,
                                const std::optional<Tensor>&, int64_t) {
  TORCH_CHECK(false,
              "holdfast: binary_cross_entropy and BCELoss are unsafe to "
              "autocast: numbers near 0 and 1 lose their logarithms in 16 "
              "bits. Give logits to binary_cross_entropy_with_logits or "
              "BCEWithLogitsLoss, or leave autocast for this call.");
}

TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFallthrough());
}

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
#define LOWER(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define FP32(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define FP32_BY_ARGUMENT(...) \
  KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define WIDEST(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)
  AT_FORALL_LOWER_PRECISION_FP(LOWER)
  AT_FORALL_FP32(FP32)
  AT_FORALL_FP32_SET_OPT_DTYPE(FP32_BY_ARGUMENT)
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(
      KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)
  AT_FORALL_PROMOTE(WIDEST)
#undef LOWER
#undef FP32
#undef FP32_BY_ARGUMENT
#undef WIDEST
  m.impl("binary_cross_entropy", TORCH_FN(RefuseBinaryCrossEntropy));
}

}  // namespace
