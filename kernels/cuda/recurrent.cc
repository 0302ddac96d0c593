// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// rnn_layer and its gradient: for each step a product with the hidden weights
// and one launch over all units of all samples. The gradients of the weights
// are one product over all rows at the end.
#include "kernels/cuda/check.h"
#include "kernels/cuda/copy.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/elements.h"
#include "kernels/cuda/reduce.h"
#include "kernels/cuda/reducers.h"
#include "kernels/cuda/run_products.h"
#include "kernels/recurrent_cells.h"
#include "kernels/recurrent_steps.h"

namespace holdfast {
namespace {

// Waits where rows are packed.
absl::Status ReadSteps(KernelContext& context, const Attrs& attrs,
                       const TensorSpec& rows, const TensorView& batch_sizes,
                       const TensorSpec& h0, RecurrentSteps* s) {
  std::vector<int64_t> sizes;
  if (batch_sizes.present()) {
    ContiguousOperands<1> in;
    absl::Status status = in.MakeOne(context, 0, batch_sizes, DType::kInt64);
    sizes.resize(batch_sizes.spec->numel());
    if (status.ok()) {
      status = Cuda(context).CopyToHost(sizes.data(), in.as<int64_t>(0),
                                        sizes.size() * sizeof(int64_t));
    }
    if (!status.ok()) return status;
  }
  const int64_t packed =
      batch_sizes.present() ? static_cast<int64_t>(sizes.size()) : -1;
  return s->Read(attrs, rows, h0, packed, [&](int64_t t) { return sizes[t]; });
}

// c [m, n] = a b (+ c) of matrices whose rows are adjacent, or, transposed,
// whose columns are.
template <typename T>
absl::Status Multiply(KernelContext& context, bool a_t, bool b_t, int64_t m,
                      int64_t n, int64_t k, const T* a, const T* b,
                      bool accumulate, T* c) {
  constexpr DType kType = kDTypeOf<T>;
  const TensorSpec a_spec = ContiguousSpec(kType, {m * k});
  const TensorSpec b_spec = ContiguousSpec(kType, {k * n});
  const TensorSpec c_spec = ContiguousSpec(kType, {m * n});
  Products p;
  p.m = m;
  p.n = n;
  p.k = k;
  p.a_row = a_t ? 1 : k;
  p.a_col = a_t ? m : 1;
  p.b_row = b_t ? 1 : n;
  p.b_col = b_t ? k : 1;
  return RunProducts(context, p, {const_cast<T*>(a), &a_spec},
                     {const_cast<T*>(b), &b_spec}, accumulate, {c, &c_spec});
}

// Unit j of sample b for item b * hidden + j, of the samples of a step.
template <typename Cell, typename T>
struct ForwardUnits {
  CellStep<T> first;  // of sample 0
  int64_t hidden, width, saved;

  HOLDFAST_HD void operator()(int64_t item) const {
    const int64_t b = item / hidden, j = item % hidden;
    CellStep<T> s = first;
    s.x += b * width;
    s.r += b * width;
    s.h += b * hidden;
    s.out += b * hidden;
    if (s.c != nullptr) {
      s.c += b * hidden;
      s.cells += b * hidden;
    }
    s.gates += b * saved;
    Cell::Unit(s, j, hidden);
  }
};

template <typename Cell, typename T>
absl::Status ForwardStep(KernelContext& context, const RecurrentSteps& s,
                         const CellStep<T>& first, int64_t samples) {
  return ForEach(context, samples * s.hidden,
                 ForwardUnits<Cell, T>{first, s.hidden, s.width(), s.saved()});
}

template <typename T>
absl::Status RunForward(KernelContext& context, const RecurrentSteps& s,
                        const CellStep<T>& first, int64_t samples) {
  switch (s.mode) {
    case RecurrentMode::kLstm:
      return ForwardStep<LstmForward<T>>(context, s, first, samples);
    case RecurrentMode::kGru:
      return ForwardStep<GruForward<T>>(context, s, first, samples);
    case RecurrentMode::kRelu:
      return ForwardStep<PlainForward<T, true>>(context, s, first, samples);
    default:
      return ForwardStep<PlainForward<T, false>>(context, s, first, samples);
  }
}

// What the state before a step was, and the gradients that come to it.
template <typename T>
struct BackwardStep {
  CellStep<T> first;        // of sample 0
  const T* output_grad;     // of the step's rows; null: none
  const T *h0, *c0;         // states before the first step
  const T *output, *cells;  // of all rows
  T* h_before;  // of the step's rows: kept for the weights' gradient
  int64_t before_row, before_samples;  // rows of the step before; or -1
};

template <typename Cell, typename T>
struct BackwardUnits {
  BackwardStep<T> step;
  int64_t hidden, width, saved;

  HOLDFAST_HD void operator()(int64_t item) const {
    const int64_t b = item / hidden, j = item % hidden, at = b * hidden;
    const bool initial = step.before_row < 0 || b >= step.before_samples;
    const int64_t last = (step.before_row + b) * hidden;
    CellStep<T> s = step.first;
    T* const before = step.h_before + at;
    before[j] = initial ? step.h0[at + j] : step.output[last + j];
    s.h_before = before;
    if (step.c0 != nullptr) {
      s.c_before = initial ? step.c0 + at : step.cells + last;
      s.cells += at;
      s.cell_grad += at;
    }
    s.hidden_grad += at;
    if (step.output_grad != nullptr) {
      s.hidden_grad[j] += step.output_grad[at + j];
    }
    s.out += at;
    s.gates += b * saved;
    s.x_grad += b * width;
    s.r_grad += b * width;
    Cell::Unit(s, j, hidden);
  }
};

template <typename Cell, typename T>
absl::Status StepBack(KernelContext& context, const RecurrentSteps& s,
                      const BackwardStep<T>& step, int64_t samples) {
  return ForEach(context, samples * s.hidden,
                 BackwardUnits<Cell, T>{step, s.hidden, s.width(), s.saved()});
}

template <typename T>
absl::Status RunBackward(KernelContext& context, const RecurrentSteps& s,
                         const BackwardStep<T>& step, int64_t samples) {
  switch (s.mode) {
    case RecurrentMode::kLstm:
      return StepBack<LstmBackward<T>>(context, s, step, samples);
    case RecurrentMode::kGru:
      return StepBack<GruBackward<T>>(context, s, step, samples);
    case RecurrentMode::kRelu:
      return StepBack<PlainBackward<T, true>>(context, s, step, samples);
    default:
      return StepBack<PlainBackward<T, false>>(context, s, step, samples);
  }
}

// Contiguous forms of the tensors of type `dtype`.
template <size_t kCount>
absl::Status MakeFloats(KernelContext& context, DType dtype,
                        absl::Span<const TensorView> inputs,
                        ContiguousOperands<kCount>* in) {
  absl::Status s;
  for (size_t i = 0; i < kCount && s.ok(); ++i) {
    if (!inputs[i].present() || inputs[i].spec->dtype != dtype) continue;
    s = in->MakeOne(context, i, inputs[i], dtype);
  }
  return s;
}

// Every sample's row = bias.
absl::Status SpreadBias(KernelContext& context, const TensorView& bias,
                        int64_t samples, void* to) {
  const TensorSpec spec =
      ContiguousSpec(bias.spec->dtype, {samples, bias.spec->numel()});
  return CudaCopy(context, bias, {to, &spec});
}

template <typename T>
absl::Status Layer(KernelContext& context, const RecurrentSteps& s,
                   const ContiguousOperands<6>& in,
                   absl::Span<const TensorView> outputs) {
  const int64_t h = s.hidden, width = s.width(), saved = s.saved();
  const size_t state_bytes = s.batch * h * sizeof(T);
  T* const state = outputs[1].as<T>();
  T* const cell = s.lstm() ? outputs[2].as<T>() : nullptr;
  T* const hidden = ScratchOf<T>(context, s.batch * width);
  if (hidden == nullptr) return NoScratch();
  absl::Status status =
      Cuda(context).CopyOnDevice(state, in.as<T>(2), state_bytes);
  if (status.ok() && s.lstm()) {
    status = Cuda(context).CopyOnDevice(cell, in.as<T>(3), state_bytes);
  }
  const bool bias = in.views[5].present();
  for (int64_t i = 0; i < s.count() && status.ok(); ++i) {
    const int64_t t = s.Step(i), size = s.sizes[t], row = s.starts[t];
    if (bias) status = SpreadBias(context, in.views[5], size, hidden);
    if (!status.ok()) return status;
    status = Multiply<T>(context, false, true, size, width, h, state,
                         in.as<T>(4), bias, hidden);
    if (!status.ok()) return status;
    CellStep<T> first = {};
    first.x = in.as<T>(0) + row * width;
    first.r = hidden;
    first.h = state;
    first.out = outputs[0].as<T>() + row * h;
    first.gates = outputs[3].as<T>() + row * saved;
    if (s.lstm()) {
      first.c = cell;
      first.cells = outputs[4].as<T>() + row * h;
    }
    status = RunForward<T>(context, s, first, size);
  }
  return status;
}

// to = grad, or zeros.
template <typename T>
absl::Status StartFrom(KernelContext& context, const T* grad, T* to,
                       int64_t n) {
  return grad != nullptr ? Cuda(context).CopyOnDevice(to, grad, n * sizeof(T))
                         : Cuda(context).FillBytes(to, 0, n * sizeof(T));
}

template <typename T>
absl::Status SumColumns(KernelContext& context, const T* from, int64_t rows,
                        int64_t columns, T* sums) {
  return ReduceRows<SumOf<double>>(
      context, columns, rows, /*columns=*/true,
      [=] HOLDFAST_LAMBDA(int64_t c, int64_t row) {
        return static_cast<double>(from[row * columns + c]);
      },
      [=] HOLDFAST_LAMBDA(int64_t c, double sum) {
        sums[c] = static_cast<T>(sum);
      });
}

template <typename T>
absl::Status LayerBackward(KernelContext& context, const RecurrentSteps& s,
                           const ContiguousOperands<10>& in,
                           absl::Span<const TensorView> outputs) {
  const int64_t h = s.hidden, width = s.width(), saved = s.saved();
  const int64_t all = s.batch * h;
  const int64_t rows = s.count() == 0 ? 0 : s.starts.back() + s.sizes.back();
  T* const hidden_grad = outputs[3].as<T>();
  T* const cell_grad = s.lstm() ? outputs[4].as<T>() : nullptr;
  T* const x_grads = outputs[0].as<T>();
  T* const r_grads = s.gru() ? ScratchOf<T>(context, rows * width) : x_grads;
  T* const before = ScratchOf<T>(context, rows * h);
  if (r_grads == nullptr || before == nullptr) return NoScratch();
  absl::Status status = StartFrom(context, in.as<T>(1), hidden_grad, all);
  if (status.ok() && s.lstm()) {
    status = StartFrom(context, in.as<T>(2), cell_grad, all);
  }
  for (int64_t i = s.count() - 1; i >= 0 && status.ok(); --i) {
    const int64_t t = s.Step(i), size = s.sizes[t], row = s.starts[t];
    const int64_t last = s.Before(t);
    BackwardStep<T> step = {};
    step.first.out = in.as<T>(7) + row * h;
    step.first.gates = in.as<T>(8) + row * saved;
    step.first.hidden_grad = hidden_grad;
    step.first.x_grad = x_grads + row * width;
    step.first.r_grad = r_grads + row * width;
    const T* const grad = in.as<T>(0);
    step.output_grad = grad == nullptr ? nullptr : grad + row * h;
    step.h0 = in.as<T>(4);
    step.output = in.as<T>(7);
    if (s.lstm()) {
      step.first.cells = in.as<T>(9) + row * h;
      step.first.cell_grad = cell_grad;
      step.c0 = in.as<T>(5);
      step.cells = in.as<T>(9);
    }
    step.h_before = before + row * h;
    step.before_row = last < 0 ? -1 : s.starts[last];
    step.before_samples = last < 0 ? 0 : s.sizes[last];
    status = RunBackward<T>(context, s, step, size);
    if (!status.ok()) return status;
    status = Multiply<T>(context, false, false, size, h, width,
                         step.first.r_grad, in.as<T>(6), true, hidden_grad);
  }
  if (!status.ok()) return status;
  T* const weight_grad = outputs[1].as<T>();
  status = Multiply<T>(context, true, false, width, h, rows, r_grads, before,
                       false, weight_grad);
  if (!status.ok()) return status;
  return SumColumns<T>(context, r_grads, rows, width, outputs[2].as<T>());
}

}  // namespace

HOLDFAST_CUDA_KERNEL(rnn_layer) {
  const TensorSpec& rows = *inputs[0].spec;
  RecurrentSteps s;
  absl::Status status =
      ReadSteps(context, attrs, rows, inputs[1], *inputs[2].spec, &s);
  ContiguousOperands<6> in;
  if (status.ok()) status = MakeFloats(context, rows.dtype, inputs, &in);
  if (!status.ok()) return status;
  return DispatchFloat(rows.dtype, [&](auto tag) -> absl::Status {
    return Layer<typename decltype(tag)::type>(context, s, in, outputs);
  });
}

HOLDFAST_CUDA_KERNEL(rnn_layer_backward) {
  const TensorSpec& rows = *inputs[7].spec;
  RecurrentSteps s;
  absl::Status status =
      ReadSteps(context, attrs, rows, inputs[3], *inputs[4].spec, &s);
  ContiguousOperands<10> in;
  if (status.ok()) status = MakeFloats(context, rows.dtype, inputs, &in);
  if (!status.ok()) return status;
  return DispatchFloat(rows.dtype, [&](auto tag) -> absl::Status {
    return LayerBackward<typename decltype(tag)::type>(context, s, in, outputs);
  });
}

}  // namespace holdfast
