// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Connectionist temporal classification (kernels/ctc_states.h): a group of
// threads for each sample, which take its states side by side and its steps one
// after the other. Lengths and labels come from clients: every one is copied
// and checked before it is used.
#include <algorithm>
#include <cmath>

#include "kernels/ctc_states.h"
#include "kernels/cuda/check.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/elements.h"
#include "kernels/cuda/group.h"
#include "kernels/dtype_dispatch.h"

namespace holdfast::cuda {
namespace {

// [batch, longest + 2] of int64: a sample's input length, target length and
// labels, in that order. The second of the three tells how many labels count.
struct Targets {
  int64_t* rows;
  int64_t width, steps, longest, classes;

  HOLDFAST_HD bool Faulty(int64_t i) const {
    const int64_t n = i / width, k = i % width;
    const int64_t value = rows[i];
    if (k == 0) return !InRange(value, steps + 1);
    if (k == 1) return !InRange(value, longest + 1);
    return k - 2 < rows[n * width + 1] && !InRange(value, classes);
  }
};

// The error of the fault at i. Waits.
absl::Status Fault(KernelContext& context, const Attrs& attrs,
                   const Targets& targets, int64_t i) {
  absl::StatusOr<int64_t> value = ReadElement(context, targets.rows + i);
  if (!value.ok()) return value.status();
  const int64_t n = i / targets.width, k = i % targets.width;
  if (k == 0) {
    return CtcOutOfRange(attrs, "input_lengths", *value, targets.steps, n);
  }
  if (k == 1) {
    return CtcOutOfRange(attrs, "target_lengths", *value, targets.longest, n);
  }
  return CtcOutOfRange(attrs, "targets", *value, targets.classes - 1, n);
}

// Copies `in` = targets, input_lengths, target_lengths, and checks the copy.
absl::Status ReadProblem(KernelContext& context, const Attrs& attrs,
                         const TensorSpec& log_probs,
                         absl::Span<const TensorView> in, CtcProblem* p) {
  p->steps = log_probs.shape[0];
  p->batch = log_probs.shape[1];
  p->classes = log_probs.shape[2];
  p->longest = in[0].spec->shape[1];
  p->blank = attrs.Int("blank");
  const int64_t longest = p->longest, width = longest + 2;
  int64_t* const rows = ScratchOf<int64_t>(context, p->batch * width);
  int64_t* const parts = ScratchOf<int64_t>(context, p->batch * width);
  if (rows == nullptr || parts == nullptr) return NoScratch();
  const Targets all = {rows, width, p->steps, longest, p->classes};
  const int64_t* const labels = in[0].as<int64_t>();
  const int64_t* const steps = in[1].as<int64_t>();
  const int64_t* const lengths = in[2].as<int64_t>();
  const int64_t row_step = in[0].spec->strides[0];
  const int64_t label_step = in[0].spec->strides[1];
  const int64_t steps_step = in[1].spec->strides[0];
  const int64_t lengths_step = in[2].spec->strides[0];
  absl::Status s =
      ForEach(context, p->batch * width, [=] HOLDFAST_LAMBDA(int64_t i) {
        const int64_t n = i / width, k = i % width;
        rows[i] = k == 0   ? steps[n * steps_step]
                  : k == 1 ? lengths[n * lengths_step]
                           : labels[n * row_step + (k - 2) * label_step];
      });
  if (!s.ok()) return s;
  absl::StatusOr<int64_t> fault =
      FirstFault(context, p->batch * width,
                 [=] HOLDFAST_LAMBDA(int64_t i) { return all.Faulty(i); });
  if (!fault.ok()) return fault.status();
  if (*fault >= 0) return Fault(context, attrs, all, *fault);
  int64_t* const of_labels = parts;
  int64_t* const of_steps = parts + p->batch * longest;
  int64_t* const of_lengths = of_steps + p->batch;
  s = ForEach(context, p->batch * width, [=] HOLDFAST_LAMBDA(int64_t i) {
    const int64_t n = i / width, k = i % width;
    int64_t* const place = k == 0   ? of_steps + n
                           : k == 1 ? of_lengths + n
                                    : of_labels + n * longest + k - 2;
    *place = rows[i];
  });
  p->labels = of_labels;
  p->input_lengths = of_steps;
  p->target_lengths = of_lengths;
  return s;
}

template <typename T>
struct Samples {
  const T* data;
  int64_t step, sample, label;

  HOLDFAST_HD CtcLogProbs<T> operator[](int64_t n) const {
    return {data + n * sample, step, label};
  }
};

template <typename T>
Samples<T> SamplesOf(const TensorView& view) {
  const Dims& strides = view.spec->strides;
  return {view.as<T>(), strides[0], strides[1], strides[2]};
}

// A state's forward variable from the row of the step before.
template <typename T>
HOLDFAST_HD T Forward(const CtcProblem& p, int64_t n, const T* before,
                      int64_t s) {
  return CtcLogAdd(before[s], s >= 1 ? before[s - 1] : CtcImpossible<T>(),
                   p.Skips(n, s) ? before[s - 2] : CtcImpossible<T>());
}

// A state's backward variable from the row of the step after.
template <typename T>
HOLDFAST_HD T Backward(const CtcProblem& p, int64_t n, const T* after,
                       int64_t s) {
  const int64_t used = p.used(n);
  const bool skip = s + 2 < used && p.Skips(n, s + 2);
  return CtcLogAdd(after[s], s + 1 < used ? after[s + 1] : CtcImpossible<T>(),
                   skip ? after[s + 2] : CtcImpossible<T>());
}

// Fills alphas [batch, steps, states] and the losses.
template <typename T>
absl::Status ForwardPass(KernelContext& context, const CtcProblem& p,
                         const Samples<T>& samples, T* alphas, T* losses) {
  const int64_t width = p.states();
  return ForEachRow(
      context, p.batch, GroupSize(width),
      [=] HOLDFAST_LAMBDA(const Group& group, int64_t n) {
        const CtcLogProbs<T> probs = samples[n];
        const int64_t steps = p.input_lengths[n], used = p.used(n);
        T* const alpha = alphas + n * p.steps * width;
        for (int64_t i = group.rank; i < p.steps * width; i += group.size) {
          alpha[i] = CtcImpossible<T>();
        }
        group.Sync();
        if (steps == 0) {
          if (group.first()) {
            losses[n] = used == 1 ? T(0) : -CtcImpossible<T>();
          }
          return;
        }
        for (int64_t s = group.rank; s < used && s < 2; s += group.size) {
          alpha[s] = probs(0, p.Label(n, s));
        }
        for (int64_t t = 1; t < steps; ++t) {
          group.Sync();
          const T* const before = alpha + (t - 1) * width;
          T* const now = alpha + t * width;
          for (int64_t s = group.rank; s < used; s += group.size) {
            now[s] = Forward(p, n, before, s) + probs(t, p.Label(n, s));
          }
        }
        group.Sync();
        if (group.first()) {
          const T* const last = alpha + (steps - 1) * width;
          losses[n] = -CtcLogAdd(
              last[used - 1], used > 1 ? last[used - 2] : CtcImpossible<T>());
        }
      });
}

// Fills betas [batch, steps, states] where a sample's gradient is not 0.
template <typename T>
absl::Status BackwardPass(KernelContext& context, const CtcProblem& p,
                          const Samples<T>& samples, const T* grads, T* betas) {
  const int64_t width = p.states();
  return ForEachRow(
      context, p.batch, GroupSize(width),
      [=] HOLDFAST_LAMBDA(const Group& group, int64_t n) {
        if (grads[n] == T(0)) return;
        const CtcLogProbs<T> probs = samples[n];
        const int64_t steps = p.input_lengths[n], used = p.used(n);
        T* const beta = betas + n * p.steps * width;
        for (int64_t t = steps - 1; t >= 0; --t) {
          const T* const after = beta + (t + 1) * width;
          T* const now = beta + t * width;
          for (int64_t s = group.rank; s < used; s += group.size) {
            const bool last = t == steps - 1;
            const T sum = !last          ? Backward(p, n, after, s)
                          : s + 2 < used ? CtcImpossible<T>()
                                         : T(0);
            now[s] = sum + probs(t, p.Label(n, s));
          }
          group.Sync();
        }
      });
}

// For each state of a sample the next one with its label, or -1; and whether it
// is the label's first.
struct Alike {
  int64_t* next;  // [batch, states]
  bool* first;
};

absl::Status FindAlike(KernelContext& context, const CtcProblem& problem,
                       Alike* found) {
  const CtcProblem p = problem;
  const int64_t width = p.states();
  const Alike alike = {ScratchOf<int64_t>(context, p.batch * width),
                       ScratchOf<bool>(context, p.batch * width)};
  if (alike.next == nullptr || alike.first == nullptr) return NoScratch();
  *found = alike;
  return ForEach(context, p.batch * width, [=] HOLDFAST_LAMBDA(int64_t i) {
    const int64_t n = i / width, s = i % width, used = p.used(n);
    alike.next[i] = -1;
    alike.first[i] = s < used;
    if (s >= used) return;
    const int64_t label = p.Label(n, s);
    for (int64_t other = 0; other < s && alike.first[i]; ++other) {
      if (p.Label(n, other) == label) alike.first[i] = false;
    }
    for (int64_t other = s + 1; other < used && alike.next[i] < 0; ++other) {
      if (p.Label(n, other) == label) alike.next[i] = other;
    }
  });
}

// What BackwardPass and forward left of each sample.
template <typename T>
struct Variables {
  const T *alphas, *betas, *losses, *grads;
};

// The gradient, [steps, batch, classes]. Equation (15): each class has the sum
// of its states' alpha beta, which waits in `out` as a logarithm.
template <typename T>
absl::Status Collect(KernelContext& context, const CtcProblem& p,
                     const Samples<T>& samples, const Alike& alike,
                     const Variables<T>& of, T* out) {
  const int64_t width = p.states();
  return ForEachRow(
      context, p.steps * p.batch, GroupSize(std::max(width, p.classes)),
      [=] HOLDFAST_LAMBDA(const Group& group, int64_t row) {
        const int64_t t = row / p.batch, n = row % p.batch;
        T* const to = out + row * p.classes;
        // zero_infinity hands zeros to impossible samples, whose terms are not
        // finite.
        const bool none = of.grads[n] == T(0) || t >= p.input_lengths[n];
        for (int64_t c = group.rank; c < p.classes; c += group.size) {
          to[c] = none ? T(0) : CtcImpossible<T>();
        }
        if (none) return;
        group.Sync();
        const CtcLogProbs<T> probs = samples[n];
        const T* const alpha = of.alphas + (n * p.steps + t) * width;
        const T* const beta = of.betas + (n * p.steps + t) * width;
        const int64_t used = p.used(n);
        for (int64_t s = group.rank; s < used; s += group.size) {
          if (!alike.first[n * width + s]) continue;
          T total = CtcImpossible<T>();
          for (int64_t i = s; i >= 0; i = alike.next[n * width + i]) {
            total = CtcLogAdd(total, alpha[i] + beta[i]);
          }
          to[p.Label(n, s)] = total;
        }
        group.Sync();
        for (int64_t c = group.rank; c < p.classes; c += group.size) {
          const T lp = probs(t, c);
          to[c] = (std::exp(lp) - std::exp(to[c] + of.losses[n] - lp)) *
                  of.grads[n];
        }
      });
}

// `views`: grad, loss, alpha, contiguous.
template <typename T>
absl::Status Gradient(KernelContext& context, const CtcProblem& p,
                      const TensorView& log_probs, const TensorView* views,
                      T* out) {
  T* const betas = ScratchOf<T>(context, p.batch * p.steps * p.states());
  if (betas == nullptr) return NoScratch();
  const Samples<T> samples = SamplesOf<T>(log_probs);
  const T* const grads = views[0].as<T>();
  absl::Status s = BackwardPass(context, p, samples, grads, betas);
  Alike alike;
  if (s.ok()) s = FindAlike(context, p, &alike);
  if (!s.ok()) return s;
  const Variables<T> of = {views[2].as<T>(), betas, views[1].as<T>(), grads};
  return Collect(context, p, samples, alike, of, out);
}

}  // namespace

HOLDFAST_CUDA_KERNEL(ctc_loss) {
  CtcProblem p;
  absl::Status s =
      ReadProblem(context, attrs, *inputs[0].spec, inputs.subspan(1, 3), &p);
  if (!s.ok()) return s;
  return DispatchFloat(inputs[0].spec->dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    return ForwardPass(context, p, SamplesOf<T>(inputs[0]), outputs[1].as<T>(),
                       outputs[0].as<T>());
  });
}

HOLDFAST_CUDA_KERNEL(ctc_loss_backward) {
  CtcProblem p;
  absl::Status s =
      ReadProblem(context, attrs, *inputs[1].spec, inputs.subspan(2, 3), &p);
  const DType type = inputs[1].spec->dtype;
  TensorSpec specs[3];
  TensorView views[3];
  const TensorView wanted[] = {inputs[0], inputs[5], inputs[6]};
  for (int i = 0; i < 3 && s.ok(); ++i) {
    s = MakeContiguous(context, wanted[i], type, &specs[i], &views[i]);
  }
  if (!s.ok()) return s;
  return DispatchFloat(type, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    return Gradient<T>(context, p, inputs[1], views, outputs[0].as<T>());
  });
}

}  // namespace holdfast::cuda
