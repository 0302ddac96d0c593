// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/attention_by_dnn.h"

#include <utility>
#include <vector>

#include "kernels/cuda/copy.h"
#include "kernels/cuda/cuda_libraries.h"
#include "kernels/cuda/dnn_attention.h"
#include "kernels/cuda/dnn_plans.h"
#include "kernels/cuda/launch.h"

namespace holdfast::cuda {
namespace {

bool IsAligned(const void* data) {
  return reinterpret_cast<uintptr_t>(data) % 16 == 0;
}

// An operand as cuDNN takes it: rows of adjacent elements that begin at
// multiples of 16 bytes.
struct DnnOperand {
  TensorSpec spec;
  const void* data = nullptr;
  AttentionProblem::Steps steps;

  // False where it cannot be had.
  bool Make(KernelContext& context, const TensorView& view,
            const AttentionProblem& problem) {
    const TensorSpec& from = *view.spec;
    const int rank = from.rank();
    const auto fits = [&](int d) {
      return from.strides[d] > 0 && from.strides[d] % 8 == 0;
    };
    data = view.data;
    if (rank == 4 && from.strides[3] == 1 && fits(0) && fits(1) && fits(2) &&
        IsAligned(data)) {
      steps = {from.strides[0], from.strides[1], from.strides[2]};
      return true;
    }
    TensorView copy;
    if (!MakeContiguous(context, view, from.dtype, &spec, &copy).ok()) {
      return false;
    }
    const int64_t rows = from.shape[rank - 2], columns = from.shape[rank - 1];
    data = copy.data;
    steps = {problem.h * rows * columns, rows * columns, columns};
    return IsAligned(data);
  }
};

// What cuDNN may compute; null where it may not.
DnnPlans* PlansFor(KernelContext& context, const AttentionShape& a,
                   const TensorSpec& query, AttentionProblem* problem) {
  CudaLibraries& libraries = Cuda(context).libraries();
  DnnPlans* const plans = libraries.dnn_plans();
  const bool narrow =
      query.dtype == DType::kFloat16 || query.dtype == DType::kBFloat16;
  if (plans == nullptr || !narrow || a.heads == 0) return nullptr;
  for (int64_t width : {a.e, a.v}) {
    if (width == 0 || width > 128 || width % 8 != 0) return nullptr;
  }
  problem->dtype = query.dtype;
  problem->causal = a.causal;
  problem->numerics = libraries.numerics;
  problem->numerics.benchmark = false;  // PyTorch's is for convolutions
  problem->n = query.rank() == 4 ? query.shape[0] : a.heads;
  problem->h = a.heads / problem->n;
  problem->l = a.l;
  problem->s = a.s;
  problem->e = a.e;
  problem->v = a.v;
  return problem->IsSound(plans->dnn().cudnnGetVersion()) ? plans : nullptr;
}

bool RunDnn(KernelContext& context, DnnPlans* plans,
            const AttentionProblem& problem, const AttentionShape& a,
            std::vector<DnnPointer> tensors) {
  const float scale = static_cast<float>(a.scale), one = 1;
  const float hidden =
      AttentionProblem::HiddenScore(plans->dnn().cudnnGetVersion());
  tensors.push_back({AttentionProblem::kScale, &scale});
  if (a.causal) tensors.push_back({AttentionProblem::kHidden, &hidden});
  if (problem.backward) tensors.push_back({AttentionProblem::kOne, &one});
  return plans->Run(problem, tensors, StreamOf(context),
                    [&](size_t bytes) { return context.Scratch(bytes); });
}

}  // namespace

bool AttentionByDnn(KernelContext& context, const AttentionShape& a,
                    absl::Span<const TensorView> inputs,
                    absl::Span<const TensorView> outputs) {
  using P = AttentionProblem;
  P problem;
  DnnPlans* const plans = PlansFor(context, a, *inputs[0].spec, &problem);
  if (plans == nullptr || !IsAligned(outputs[0].data)) return false;
  DnnOperand q, k, v;
  if (!q.Make(context, inputs[0], problem) ||
      !k.Make(context, inputs[1], problem) ||
      !v.Make(context, inputs[2], problem)) {
    return false;
  }
  problem.query = q.steps;
  problem.key_steps = k.steps;
  problem.value = v.steps;
  return RunDnn(context, plans, problem, a,
                {{P::kQuery, q.data},
                 {P::kKey, k.data},
                 {P::kValue, v.data},
                 {P::kOutput, outputs[0].data},
                 {P::kLogSumExp, outputs[1].data}});
}

bool AttentionBackwardByDnn(KernelContext& context, const AttentionShape& a,
                            absl::Span<const TensorView> inputs,
                            absl::Span<const TensorView> outputs) {
  using P = AttentionProblem;
  P problem;
  problem.backward = true;
  DnnPlans* const plans = PlansFor(context, a, *inputs[1].spec, &problem);
  if (plans == nullptr) return false;
  for (const TensorView& output : outputs) {
    if (!IsAligned(output.data)) return false;
  }
  DnnOperand d, q, k, v;
  ContiguousOperands<2> saved;
  if (!d.Make(context, inputs[0], problem) ||
      !q.Make(context, inputs[1], problem) ||
      !k.Make(context, inputs[2], problem) ||
      !v.Make(context, inputs[3], problem) ||
      !saved.MakeOne(context, 0, inputs[4], inputs[4].spec->dtype).ok() ||
      !saved.MakeOne(context, 1, inputs[5], DType::kFloat32).ok() ||
      !IsAligned(saved.views[0].data) || !IsAligned(saved.views[1].data)) {
    return false;
  }
  problem.output_grad = d.steps;
  problem.query = q.steps;
  problem.key_steps = k.steps;
  problem.value = v.steps;
  const int64_t rows = a.heads * a.l;
  float* const row_sums = ScratchOf<float>(context, rows);
  float* const query_sums = ScratchOf<float>(context, rows * a.e);
  if (row_sums == nullptr || query_sums == nullptr) return false;
  // Older ones add to what they find.
  if (plans->dnn().cudnnGetVersion() < 90600 &&
      !Cuda(context)
           .FillBytes(query_sums, 0, rows * a.e * sizeof(float))
           .ok()) {
    return false;
  }
  return RunDnn(context, plans, problem, a,
                {{P::kOutputGrad, d.data},
                 {P::kQuery, q.data},
                 {P::kKey, k.data},
                 {P::kValue, v.data},
                 {P::kOutput, saved.views[0].data},
                 {P::kLogSumExp, saved.views[1].data},
                 {P::kQueryGrad, outputs[0].data},
                 {P::kKeyGrad, outputs[1].data},
                 {P::kValueGrad, outputs[2].data},
                 {P::kRowSums, row_sums},
                 {P::kQuerySums, query_sums}});
}

}  // namespace holdfast::cuda
