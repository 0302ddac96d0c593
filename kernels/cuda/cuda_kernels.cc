// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/cuda_kernels.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/cuda_context.h"
#include "kernels/cuda/host_ops.h"
#include "kernels/cuda/offsets.h"
#include "kernels/kernel_table.h"
#include "kernels/widened.h"
#include "ops/op_schema.h"

namespace holdfast::cuda {

// Weak: a row whose function is not there yet links, and reads as null.
// tools/check_symbols.py then tells it, as a symbol that the library lacks.
#define OP(name, signature, infer, flags, since, doc)                  \
  __attribute__((weak))                                                \
  absl::Status Cuda_##name(KernelContext& context, const Attrs& attrs, \
                           absl::Span<const TensorView> inputs,        \
                           absl::Span<const TensorView> outputs);      \
  __attribute__((weak)) absl::Status Cuda_##name##_sizes(              \
      KernelContext& context, const Attrs& attrs,                      \
      absl::Span<const TensorView> inputs, absl::Span<int64_t> sizes);
#include "ops/ops.def"
#undef OP

namespace {

// Refers to the functions that an op needs, and to no others: the lambda's body
// is instantiated only where its function is wanted.
template <bool kWanted, typename Fn, typename F>
constexpr Fn Pick(F pick) {
  if constexpr (kWanted) {
    return pick(0);
  } else {
    return nullptr;
  }
}

}  // namespace

const KernelTable& CudaKernels() {
  static const KernelTable table = {{
#define OP(name, signature, infer, flags, since, doc) \
  Pick<((flags)&kView) == 0, KernelFn>(               \
      [](auto) -> KernelFn { return &Cuda_##name; }),
#include "ops/ops.def"
#undef OP
                                    },
                                    {
#define OP(name, signature, infer, flags, since, doc) \
  Pick<((flags)&kUnknownSizes) != 0, SizesFn>(        \
      [](auto) -> SizesFn { return &Cuda_##name##_sizes; }),
#include "ops/ops.def"
#undef OP
                                    }};
  return table;
}

namespace {

// Rows without kAnyDType whose kernels load and store 16-bit floats themselves.
constexpr OpId kLoads16[] = {OpId::sum,
                             OpId::mean,
                             OpId::nansum,
                             OpId::amax,
                             OpId::amin,
                             OpId::argmax,
                             OpId::argmin,
                             OpId::all,
                             OpId::any,
                             OpId::prod,
                             OpId::var_mean,
                             OpId::vector_norm,
                             OpId::softmax,
                             OpId::log_softmax,
                             OpId::softmax_backward,
                             OpId::matmul,
                             OpId::linear,
                             OpId::log_softmax_backward,
                             OpId::gelu,
                             OpId::silu,
                             OpId::mish,
                             OpId::softplus,
                             OpId::leaky_relu,
                             OpId::elu,
                             OpId::hardswish,
                             OpId::hardsigmoid,
                             OpId::hardtanh,
                             OpId::hardshrink,
                             OpId::softshrink,
                             OpId::threshold,
                             OpId::softsign,
                             OpId::huber,
                             OpId::activation_backward,
                             OpId::conv2d,
                             OpId::conv3d,
                             OpId::conv2d_backward_input,
                             OpId::conv3d_backward_input,
                             OpId::special_function,
                             OpId::count_nonzero,
                             OpId::attention,
                             OpId::attention_backward,
                             OpId::batch_norm,
                             OpId::batch_norm_backward,
                             OpId::group_norm,
                             OpId::group_norm_backward,
                             OpId::max_pool2d,
                             OpId::max_pool2d_backward,
                             OpId::max_pool2d_gather,
                             OpId::adaptive_max_pool2d,
                             OpId::avg_pool2d,
                             OpId::avg_pool2d_backward,
                             OpId::dropout,
                             OpId::nll_loss,
                             OpId::nll_loss_backward,
                             OpId::resample2d,
                             OpId::resample2d_backward,
                             OpId::rnn_layer,
                             OpId::rnn_layer_backward,
                             OpId::sgd,
                             OpId::adam,
                             OpId::optimizer_step};

bool Loads16(OpId op) {
  return std::find(std::begin(kLoads16), std::end(kLoads16), op) !=
         std::end(kLoads16);
}

bool HasNarrowInteger(absl::Span<const TensorView> views) {
  return std::any_of(views.begin(), views.end(), [](const TensorView& view) {
    return view.present() && (view.spec->dtype == DType::kInt8 ||
                              view.spec->dtype == DType::kInt16);
  });
}

bool IsMissing(OpId op, uint32_t flags) {
  if ((flags & kView) != 0) return false;
  const KernelTable& table = CudaKernels();
  const int id = static_cast<int>(op);
  return table.kernels[id] == nullptr ||
         ((flags & kUnknownSizes) != 0 && table.sizes[id] == nullptr);
}

// Of what kernels walk by Offsets.
absl::Status CheckDims(const OpSchema& op, absl::Span<const TensorView> views) {
  for (const TensorView& view : views) {
    if (!view.present() || FitsOffsets(*view.spec)) continue;
    return absl::UnimplementedError(absl::StrCat(
        "[", op.name, "] on a GPU at most ", kOffsetsRank,
        " dimensions may have another size than 1. Got ", view.spec->ToString(),
        ". Merge some of them with reshape() first"));
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<std::string> MissingCudaOps() {
  std::vector<std::string> missing;
#define OP(name, signature, infer, flags, since, doc) \
  if (IsMissing(OpId::name, flags)) missing.push_back(#name);
#include "ops/ops.def"
#undef OP
  return missing;
}

absl::Status RunCudaOp(KernelContext& context, const Attrs& attrs,
                       absl::Span<const TensorView> inputs,
                       absl::Span<const TensorView> outputs) {
  const OpSchema& op = attrs.schema();
  if (IsMissing(op.id, op.flags))
    return RunOnHost(context, attrs, inputs, outputs);
  if (absl::Status s = CheckDims(op, inputs); !s.ok()) return s;
  if (absl::Status s = CheckDims(op, outputs); !s.ok()) return s;
  const KernelFn kernel = CudaKernels().kernels[static_cast<int>(op.id)];
  const bool loads_16 =
      Loads16(op.id) && !HasNarrowInteger(inputs) && !HasNarrowInteger(outputs);
  if (attrs.data_checked()) Cuda(context).data_checked = true;
  absl::Status status =
      op.has(kAnyDType) || loads_16 || !NeedsWidening(inputs, outputs)
          ? kernel(context, attrs, inputs, outputs)
          : RunWidened(kernel, &CudaCopy, context, attrs, inputs, outputs);
  if (attrs.data_checked()) Cuda(context).data_checked = false;
  return status;
}

absl::Status RunCudaSizes(KernelContext& context, const Attrs& attrs,
                          absl::Span<const TensorView> inputs,
                          absl::Span<int64_t> sizes) {
  const OpSchema& op = attrs.schema();
  const SizesFn compute = CudaKernels().sizes[static_cast<int>(op.id)];
  if (compute == nullptr) {
    return absl::UnimplementedError(absl::StrCat(
        "[", op.name,
        "] there is no CUDA kernel for this op yet. Run it on a daemon with "
        "--device=cpu."));
  }
  if (absl::Status s = CheckDims(op, inputs); !s.ok()) return s;
  return compute(context, attrs, inputs, sizes);
}

}  // namespace holdfast::cuda
