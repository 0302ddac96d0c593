// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/recurrent_layer.h"

#include "kernels/cuda/copy.h"
#include "kernels/cuda/cuda_kernels.h"
#include "kernels/cuda/elements.h"
#include "kernels/cuda/reduce.h"
#include "kernels/cuda/reducers.h"
#include "kernels/cuda/run_products.h"
#include "kernels/recurrent_cells.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"

namespace holdfast::cuda {

namespace {

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
    if (s.c != nullptr) s.c += b * hidden;
    s.cells += b * hidden;
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

// Where forward puts what it saves, and what it needs meanwhile.
template <typename T>
struct ForwardMemory {
  T *input_gates, *hidden_gates;
  T *bias, *hidden_bias;
  // A step's place: the reserve, or, where nothing is saved, always the same.
  T *gates, *cells;
  bool save;

  bool Make(KernelContext& context, const RecurrentSteps& s,
            const TensorView& reserve) {
    save = reserve.spec->numel() > 0;
    const int64_t step = s.batch * (s.saved() + s.hidden);
    hidden_gates = ScratchOf<T>(context, s.batch * s.width());
    bias = ScratchOf<T>(context, s.width() + s.hidden);
    gates = save ? reserve.as<T>() : ScratchOf<T>(context, step);
    // An LSTM's gates take the place of what they are computed from.
    input_gates =
        save && s.lstm() ? gates : ScratchOf<T>(context, s.rows() * s.width());
    if (hidden_gates == nullptr || bias == nullptr || gates == nullptr ||
        input_gates == nullptr) {
      return false;
    }
    hidden_bias = bias + s.width();
    cells = gates + (save ? s.rows() : s.batch) * s.saved();
    return true;
  }
};

// What is added to the input's gates, and to the hidden part of a GRU's n.
template <typename T>
absl::Status FoldBiases(KernelContext& context, const RecurrentSteps& s,
                        const T* ih, const T* hh, T* bias) {
  const bool gru = s.gru();
  const int64_t hidden = s.hidden, width = s.width();
  return ForEach(context, width + hidden, [=] HOLDFAST_LAMBDA(int64_t j) {
    if (j < width) {
      bias[j] = FoldedBias(gru, hidden, ih, hh, j);
    } else {
      bias[j] = gru ? hh[2 * hidden + j - width] : T(0);
    }
  });
}

// All rows of the input through one linear map.
template <typename T>
absl::Status InputGates(KernelContext& context, const RecurrentSteps& s,
                        const TensorView& input, const TensorView& weight,
                        const T* bias, T* gates) {
  constexpr DType kType = kDTypeOf<T>;
  Dims shape(input.spec->shape.begin(), input.spec->shape.end());
  shape.back() = s.width();
  const TensorSpec bias_spec = ContiguousSpec(kType, {s.width()});
  const TensorSpec gates_spec = ContiguousSpec(kType, shape);
  const TensorView bias_view =
      bias == nullptr ? TensorView()
                      : TensorView{const_cast<T*>(bias), &bias_spec};
  return Linear(context, input, weight, bias_view, {gates, &gates_spec});
}

template <typename T>
absl::Status Layer(KernelContext& context, const RecurrentSteps& s,
                   const ContiguousOperands<kRnnLayerInputs>& in,
                   absl::Span<const TensorView> inputs,
                   absl::Span<const TensorView> outputs) {
  const int64_t h = s.hidden, width = s.width(), saved = s.saved();
  const size_t state_bytes = s.batch * h * sizeof(T);
  T* const state = outputs[1].as<T>();
  T* const cell = s.lstm() ? outputs[2].as<T>() : nullptr;
  ForwardMemory<T> memory;
  if (!memory.Make(context, s, outputs[3])) return NoScratch();
  absl::Status status =
      Cuda(context).CopyOnDevice(state, in.as<T>(kRnnH0), state_bytes);
  if (status.ok() && s.lstm()) {
    status = Cuda(context).CopyOnDevice(cell, in.as<T>(kRnnC0), state_bytes);
  }
  const bool biases = in.views[kRnnBiasIh].present();
  if (status.ok() && biases) {
    status = FoldBiases<T>(context, s, in.as<T>(kRnnBiasIh),
                           in.as<T>(kRnnBiasHh), memory.bias);
  } else if (status.ok()) {
    status = Cuda(context).FillBytes(memory.hidden_bias, 0, h * sizeof(T));
  }
  if (status.ok()) {
    status = InputGates<T>(context, s, inputs[kRnnInput], inputs[kRnnWeightIh],
                           biases ? memory.bias : nullptr, memory.input_gates);
  }
  for (int64_t i = 0; i < s.count() && status.ok(); ++i) {
    const int64_t t = s.Step(i), size = s.sizes[t], row = s.starts[t];
    const int64_t place = memory.save ? row : 0;
    status = Multiply<T>(context, false, true, size, width, h, state,
                         in.as<T>(kRnnWeightHh), false, memory.hidden_gates);
    if (!status.ok()) return status;
    CellStep<T> first = {};
    first.x = memory.input_gates + row * width;
    first.r = memory.hidden_gates;
    first.bias = memory.hidden_bias;
    first.h = state;
    first.c = cell;
    first.out = outputs[0].as<T>() + row * h;
    first.gates = memory.gates + place * saved;
    first.cells = memory.cells + place * h;
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
absl::Status LayerBackward(KernelContext& context, const Attrs& attrs,
                           const RecurrentSteps& s,
                           const ContiguousOperands<kRnnBackwardInputs>& in,
                           absl::Span<const TensorView> outputs) {
  const int64_t h = s.hidden, width = s.width(), rows = s.rows();
  const int64_t all = s.batch * h, saved = s.saved();
  const TensorView* const layer = in.views + kRnnGrads;
  const int64_t columns = layer[kRnnInput].spec->shape.back();
  T* const hidden_grad = outputs[1].as<T>();
  T* const cell_grad = s.lstm() ? outputs[2].as<T>() : nullptr;
  T* const x_grads = ScratchOf<T>(context, rows * width);
  T* const r_grads = s.gru() ? ScratchOf<T>(context, rows * width) : x_grads;
  T* const before = ScratchOf<T>(context, rows * h);
  if (x_grads == nullptr || r_grads == nullptr || before == nullptr) {
    return NoScratch();
  }
  T* const gates = in.as<T>(kRnnReserve);
  const T* const cells = gates + rows * saved;
  absl::Status status = StartFrom(context, in.as<T>(1), hidden_grad, all);
  if (status.ok() && s.lstm()) {
    status = StartFrom(context, in.as<T>(2), cell_grad, all);
  }
  for (int64_t i = s.count() - 1; i >= 0 && status.ok(); --i) {
    const int64_t t = s.Step(i), size = s.sizes[t], row = s.starts[t];
    const int64_t last = s.Before(t);
    BackwardStep<T> step = {};
    step.first.out = in.as<T>(kRnnOutput) + row * h;
    step.first.gates = gates + row * saved;
    step.first.hidden_grad = hidden_grad;
    step.first.x_grad = x_grads + row * width;
    step.first.r_grad = r_grads + row * width;
    const T* const grad = in.as<T>(0);
    step.output_grad = grad == nullptr ? nullptr : grad + row * h;
    step.h0 = layer[kRnnH0].as<T>();
    step.output = in.as<T>(kRnnOutput);
    if (s.lstm()) {
      step.first.cells = const_cast<T*>(cells) + row * h;
      step.first.cell_grad = cell_grad;
      step.c0 = layer[kRnnC0].as<T>();
      step.cells = cells;
    }
    step.h_before = before + row * h;
    step.before_row = last < 0 ? -1 : s.starts[last];
    step.before_samples = last < 0 ? 0 : s.sizes[last];
    status = RunBackward<T>(context, s, step, size);
    if (!status.ok()) return status;
    status =
        Multiply<T>(context, false, false, size, h, width, step.first.r_grad,
                    layer[kRnnWeightHh].as<T>(), true, hidden_grad);
  }
  if (status.ok() && (attrs.Int("wanted") & kRnnInputGrad) != 0) {
    status =
        Multiply<T>(context, false, false, rows, columns, width, x_grads,
                    layer[kRnnWeightIh].as<T>(), false, outputs[0].as<T>());
  }
  if (!status.ok() || (attrs.Int("wanted") & kRnnWeightGrads) == 0)
    return status;
  status = Multiply<T>(context, true, false, width, columns, rows, x_grads,
                       layer[kRnnInput].as<T>(), false, outputs[3].as<T>());
  if (status.ok()) {
    status = Multiply<T>(context, true, false, width, h, rows, r_grads, before,
                         false, outputs[4].as<T>());
  }
  if (!status.ok() || !layer[kRnnBiasIh].present()) return status;
  status = SumColumns<T>(context, x_grads, rows, width, outputs[5].as<T>());
  if (!status.ok()) return status;
  if (!s.gru()) {
    return Cuda(context).CopyOnDevice(outputs[6].data, outputs[5].data,
                                      width * sizeof(T));
  }
  return SumColumns<T>(context, r_grads, rows, width, outputs[6].as<T>());
}

}  // namespace

absl::Status ReadRecurrentSteps(KernelContext& context, const Attrs& attrs,
                                absl::Span<const TensorView> layer,
                                RecurrentSteps* steps) {
  const TensorView& batch_sizes = layer[kRnnBatchSizes];
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
  return steps->Read(attrs, *layer[kRnnInput].spec, *layer[kRnnH0].spec, packed,
                     [&](int64_t t) { return sizes[t]; });
}

absl::Status OwnRecurrentLayer(KernelContext& context, const Attrs& attrs,
                               absl::Span<const TensorView> inputs,
                               absl::Span<const TensorView> outputs) {
  const DType dtype = inputs[kRnnInput].spec->dtype;
  RecurrentSteps s;
  absl::Status status = ReadRecurrentSteps(context, attrs, inputs, &s);
  ContiguousOperands<kRnnLayerInputs> in;
  for (int i = kRnnH0; i < kRnnLayerInputs && status.ok(); ++i) {
    if (inputs[i].present()) status = in.MakeOne(context, i, inputs[i], dtype);
  }
  if (!status.ok()) return status;
  return DispatchFloat(dtype, [&](auto tag) -> absl::Status {
    return Layer<typename decltype(tag)::type>(context, s, in, inputs, outputs);
  });
}

absl::Status OwnRecurrentLayerBackward(KernelContext& context,
                                       const Attrs& attrs,
                                       absl::Span<const TensorView> inputs,
                                       absl::Span<const TensorView> outputs) {
  const absl::Span<const TensorView> layer =
      inputs.subspan(kRnnGrads, kRnnLayerInputs);
  const DType dtype = layer[kRnnInput].spec->dtype;
  RecurrentSteps s;
  absl::Status status = ReadRecurrentSteps(context, attrs, layer, &s);
  const TensorSpec& reserve = *inputs[kRnnReserve].spec;
  const int64_t wanted =
      RecurrentReserve(attrs, *layer[kRnnInput].spec, *layer[kRnnH0].spec);
  if (status.ok() && (reserve.numel() % 2 == 0 || reserve.numel() < wanted)) {
    status = CheckReserve(attrs, wanted, reserve);
  }
  ContiguousOperands<kRnnBackwardInputs> in;
  for (int i = 0; i < kRnnBackwardInputs && status.ok(); ++i) {
    if (i == kRnnGrads + kRnnBatchSizes || !inputs[i].present()) continue;
    status = in.MakeOne(context, i, inputs[i], dtype);
  }
  if (!status.ok()) return status;
  return DispatchFloat(dtype, [&](auto tag) -> absl::Status {
    return LayerBackward<typename decltype(tag)::type>(context, attrs, s, in,
                                                       outputs);
  });
}

}  // namespace holdfast::cuda
