// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Connectionist temporal classification (Graves et al. 2006), equations (6) to
// (16), in logarithms. States are the target with blanks around every label:
// state s has label s/2 where s is odd. Lengths and labels come from clients:
// every one is copied and checked before it is used.
#include <algorithm>
#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/load_once.h"
#include "kernels/cpu/parallel.h"
#include "kernels/ctc_states.h"
#include "kernels/dtype_dispatch.h"
#include "ops/op_schema.h"

namespace holdfast::cpu {
namespace {

// Checks `in` = targets, input_lengths, target_lengths.
absl::Status ReadProblem(KernelContext& context, const Attrs& attrs,
                         const TensorSpec& log_probs,
                         absl::Span<const TensorView> in, CtcProblem* p) {
  p->steps = log_probs.shape[0];
  p->batch = log_probs.shape[1];
  p->classes = log_probs.shape[2];
  p->longest = in[0].spec->shape[1];
  p->blank = attrs.Int("blank");
  const int64_t count = p->batch * (p->longest + 2);
  int64_t* copy = static_cast<int64_t*>(
      context.Scratch(std::max<int64_t>(1, count) * sizeof(int64_t)));
  if (copy == nullptr) {
    return absl::ResourceExhaustedError(absl::StrCat("[", attrs.schema().name,
                                                     "] no memory for ", count,
                                                     " labels and lengths."));
  }
  int64_t* input_lengths = copy + p->batch * p->longest;
  int64_t* target_lengths = input_lengths + p->batch;
  for (int64_t n = 0; n < p->batch; ++n) {
    const int64_t steps =
        LoadOnce(in[1].as<int64_t>() + n * in[1].spec->strides[0]);
    const int64_t length =
        LoadOnce(in[2].as<int64_t>() + n * in[2].spec->strides[0]);
    if (steps < 0 || steps > p->steps) {
      return CtcOutOfRange(attrs, "input_lengths", steps, p->steps, n);
    }
    if (length < 0 || length > p->longest) {
      return CtcOutOfRange(attrs, "target_lengths", length, p->longest, n);
    }
    input_lengths[n] = steps;
    target_lengths[n] = length;
    for (int64_t s = 0; s < length; ++s) {
      const int64_t label =
          LoadOnce(in[0].as<int64_t>() + n * in[0].spec->strides[0] +
                   s * in[0].spec->strides[1]);
      if (label < 0 || label >= p->classes) {
        return CtcOutOfRange(attrs, "targets", label, p->classes - 1, n);
      }
      copy[n * p->longest + s] = label;
    }
  }
  p->labels = copy;
  p->input_lengths = input_lengths;
  p->target_lengths = target_lengths;
  return absl::OkStatus();
}

template <typename T>
CtcLogProbs<T> Sample(const TensorView& view, int64_t n) {
  const TensorSpec& spec = *view.spec;
  return {view.as<T>() + n * spec.strides[1], spec.strides[0], spec.strides[2]};
}

// Steps in time of one sample, which follow each other, between two looks.
int64_t StepsAtATime(const CtcProblem& p) {
  return std::max<int64_t>(1, 65536 / (p.states() + p.classes));
}

// Fills alpha [T, states] of sample n and returns its loss.
template <typename T>
T ForwardPass(const KernelContext& context, const CtcProblem& p, int64_t n,
              const CtcLogProbs<T>& probs, T* alpha) {
  const int64_t steps = p.input_lengths[n], width = p.states();
  const int64_t used = p.used(n);
  std::fill(alpha, alpha + p.steps * width, CtcImpossible<T>());
  if (steps == 0) return used == 1 ? T(0) : -CtcImpossible<T>();
  for (int64_t s = 0; s < std::min<int64_t>(used, 2); ++s) {
    alpha[s] = probs(0, p.Label(n, s));
  }
  const int64_t piece = StepsAtATime(p);
  for (int64_t t = 1; t < steps; ++t) {
    if (t % piece == 0 && context.Stopped()) return T(0);
    const T* before = alpha + (t - 1) * width;
    T* now = alpha + t * width;
    for (int64_t s = 0; s < used; ++s) {
      now[s] = CtcLogAdd(before[s], s >= 1 ? before[s - 1] : CtcImpossible<T>(),
                         p.Skips(n, s) ? before[s - 2] : CtcImpossible<T>()) +
               probs(t, p.Label(n, s));
    }
  }
  const T* last = alpha + (steps - 1) * width;
  return -CtcLogAdd(last[used - 1],
                    used > 1 ? last[used - 2] : CtcImpossible<T>());
}

// Adds sample n's gradient into `out` (elements (t, class) as `step` says),
// which is zero. `beta` and `total`: scratch of states and classes.
template <typename T>
void BackwardPass(const KernelContext& context, const CtcProblem& p, int64_t n,
                  const CtcLogProbs<T>& probs, const T* alpha, T loss, T grad,
                  T* beta, T* total, T* out) {
  const int64_t steps = p.input_lengths[n], width = p.states();
  const int64_t used = p.used(n);
  const int64_t piece = StepsAtATime(p);
  for (int64_t t = steps - 1; t >= 0; --t) {
    if (t % piece == 0 && context.Stopped()) return;
    if (t == steps - 1) {
      for (int64_t s = 0; s < used; ++s) {
        beta[s] = s + 2 >= used ? probs(t, p.Label(n, s)) : CtcImpossible<T>();
      }
    } else {
      // In place from the first state on: each reads later ones only.
      for (int64_t s = 0; s < used; ++s) {
        const bool skip = s + 2 < used && p.Skips(n, s + 2);
        beta[s] =
            CtcLogAdd(beta[s], s + 1 < used ? beta[s + 1] : CtcImpossible<T>(),
                      skip ? beta[s + 2] : CtcImpossible<T>()) +
            probs(t, p.Label(n, s));
      }
    }
    std::fill(total, total + p.classes, CtcImpossible<T>());
    for (int64_t s = 0; s < used; ++s) {
      T* sum = total + p.Label(n, s);
      *sum = CtcLogAdd(*sum, alpha[t * width + s] + beta[s]);
    }
    T* to = out + t * p.batch * p.classes;
    for (int64_t c = 0; c < p.classes; ++c) {
      const T lp = probs(t, c);
      to[c] = (std::exp(lp) - std::exp(total[c] + loss - lp)) * grad;
    }
  }
}

}  // namespace

HOLDFAST_CPU_KERNEL(ctc_loss) {
  CtcProblem p;
  absl::Status status =
      ReadProblem(context, attrs, *inputs[0].spec, inputs.subspan(1, 3), &p);
  if (!status.ok()) return status;
  return DispatchFloat(inputs[0].spec->dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    T* losses = outputs[0].as<T>();
    T* alphas = outputs[1].as<T>();
    ParallelFor(context, p.batch, 1, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        losses[n] = ForwardPass(context, p, n, Sample<T>(inputs[0], n),
                                alphas + n * p.steps * p.states());
      }
    });
    return absl::OkStatus();
  });
}

HOLDFAST_CPU_KERNEL(ctc_loss_backward) {
  CtcProblem p;
  absl::Status status =
      ReadProblem(context, attrs, *inputs[1].spec, inputs.subspan(2, 3), &p);
  if (!status.ok()) return status;
  const DType type = inputs[1].spec->dtype;
  TensorSpec specs[3];
  TensorView grad, loss, alpha;
  status = MakeContiguous(context, inputs[0], type, &specs[0], &grad);
  if (!status.ok()) return status;
  status = MakeContiguous(context, inputs[5], type, &specs[1], &loss);
  if (!status.ok()) return status;
  status = MakeContiguous(context, inputs[6], type, &specs[2], &alpha);
  if (!status.ok()) return status;
  return DispatchFloat(type, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    const int64_t scratch = p.states() + p.classes;
    T* rows = static_cast<T*>(
        context.Scratch(std::max<int64_t>(1, p.batch * scratch) * sizeof(T)));
    if (rows == nullptr) {
      return absl::ResourceExhaustedError(
          "[ctc_loss_backward] no scratch memory.");
    }
    T* out = outputs[0].as<T>();
    std::fill(out, out + p.steps * p.batch * p.classes, T(0));
    ParallelFor(context, p.batch, 1, [&](int64_t begin, int64_t end) {
      for (int64_t n = begin; n < end; ++n) {
        // zero_infinity hands zeros to impossible samples, whose terms are
        // not finite.
        const T g = grad.as<T>()[n];
        if (g == T(0)) continue;
        T* beta = rows + n * scratch;
        BackwardPass(context, p, n, Sample<T>(inputs[1], n),
                     alpha.as<T>() + n * p.steps * p.states(), loss.as<T>()[n],
                     g, beta, beta + p.states(), out + n * p.classes);
      }
    });
    return absl::OkStatus();
  });
}

}  // namespace holdfast::cpu
