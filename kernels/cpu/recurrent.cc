// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// rnn_layer and its gradient: every step of a recurrent layer in one call. Rows
// are packed: step t has the first sizes[t] samples of the batch, sorted by
// length; the state of a sample stays as it is when its rows are over.
#include <algorithm>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "kernels/cpu/copy.h"
#include "kernels/cpu/cpu_kernels.h"
#include "kernels/cpu/linear.h"
#include "kernels/cpu/load_once.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/plain_product.h"
#include "kernels/cpu/vectorised.h"
#include "kernels/dtype_dispatch.h"
#include "kernels/recurrent_cells.h"
#include "kernels/recurrent_steps.h"
#include "ops/op_id.h"
#include "ops/op_schema.h"

namespace holdfast::cpu {

namespace {

// batch_sizes comes from a client, which may write it meanwhile.
absl::Status ReadSteps(const Attrs& attrs, const TensorSpec& rows,
                       const TensorView& batch_sizes, const TensorSpec& h0,
                       RecurrentSteps* s) {
  const bool packed = batch_sizes.present();
  return s->Read(attrs, rows, h0, packed ? batch_sizes.spec->shape[0] : -1,
                 [&](int64_t t) {
                   return LoadOnce(batch_sizes.as<int64_t>() +
                                   t * batch_sizes.spec->strides[0]);
                 });
}

// Of matrices without gaps.
template <typename T>
struct Product : PlainProduct<T> {
  void Run(bool a_t, bool b_t, int64_t m, int64_t n, int64_t k, const T* a,
           const T* b, bool accumulate, T* c) const {
    PlainProduct<T>::Run(m, n, k, {a, a_t ? m : k, a_t}, {b, b_t ? k : n, b_t},
                         accumulate, c, n);
  }
};

// False when memory is short. `n`, `k`: the largest of the products.
template <typename T>
bool Prepare(KernelContext& context, Product<T>* product, int64_t n,
             int64_t k) {
  const size_t bytes = Product<T>::WorkspaceBytes(n, k);
  if (bytes > 0) product->workspace = context.Scratch(bytes);
  return bytes == 0 || product->workspace != nullptr;
}

template <typename T>
void Forward(RecurrentMode mode, const CellStep<T>* step, int64_t n) {
  if (mode == RecurrentMode::kLstm) Vectorised<LstmForward<T>>(step, n);
  if (mode == RecurrentMode::kGru) Vectorised<GruForward<T>>(step, n);
  if (mode == RecurrentMode::kTanh) Vectorised<PlainForward<T, false>>(step, n);
  if (mode == RecurrentMode::kRelu) Vectorised<PlainForward<T, true>>(step, n);
}
template <typename T>
void Backward(RecurrentMode mode, const CellStep<T>* step, int64_t n) {
  if (mode == RecurrentMode::kLstm) Vectorised<LstmBackward<T>>(step, n);
  if (mode == RecurrentMode::kGru) Vectorised<GruBackward<T>>(step, n);
  if (mode == RecurrentMode::kTanh)
    Vectorised<PlainBackward<T, false>>(step, n);
  if (mode == RecurrentMode::kRelu) Vectorised<PlainBackward<T, true>>(step, n);
}

absl::Status NoMemory(const Attrs& attrs) {
  return absl::ResourceExhaustedError(
      absl::StrCat("[", attrs.schema().name, "] no scratch memory."));
}

int64_t SampleGrain(const RecurrentSteps& s) {
  return std::max<int64_t>(1, 8192 / std::max<int64_t>(1, s.width()));
}

// Contiguous forms of the tensors that are there, from number `first` on.
template <size_t kCount>
absl::Status Contiguous(KernelContext& context, DType type,
                        absl::Span<const TensorView> inputs, size_t first,
                        TensorSpec (&specs)[kCount],
                        TensorView (&views)[kCount]) {
  for (size_t i = first; i < kCount; ++i) {
    if (!inputs[i].present() || inputs[i].spec->dtype != type) continue;
    absl::Status s =
        MakeContiguous(context, inputs[i], type, &specs[i], &views[i]);
    if (!s.ok()) return s;
  }
  return absl::OkStatus();
}

// All rows of the input through one linear map, as `linear` does it.
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

// Where forward puts what it saves, and what it needs meanwhile.
template <typename T>
struct ForwardMemory {
  T *input_gates, *hidden_gates;
  T *bias, *hidden_bias;  // bias: null without biases
  // A step's place: the reserve, or, where nothing is saved, always the same.
  T *gates, *cells;
  bool save;

  bool Make(KernelContext& context, const RecurrentSteps& s, bool biases,
            const TensorView& reserve) {
    save = reserve.spec->numel() > 0;
    // An LSTM's gates take the place of what they are computed from.
    const bool over = save && s.lstm();
    const int64_t input = over ? 0 : s.rows() * s.width();
    const int64_t hidden = s.batch * s.width();
    const int64_t step = save ? 0 : s.batch * (s.saved() + s.hidden);
    T* const scratch = static_cast<T*>(context.Scratch(
        (input + hidden + s.width() + s.hidden + step + 1) * sizeof(T)));
    if (scratch == nullptr) return false;
    hidden_gates = scratch + input;
    bias = biases ? hidden_gates + hidden : nullptr;
    hidden_bias = hidden_gates + hidden + s.width();
    gates = save ? reserve.as<T>() : hidden_bias + s.hidden;
    cells = gates + (save ? s.rows() : s.batch) * s.saved();
    input_gates = over ? gates : scratch;
    return true;
  }
  void FoldBiases(const RecurrentSteps& s, const T* ih, const T* hh) {
    for (int64_t j = 0; bias != nullptr && j < s.width(); ++j) {
      bias[j] = FoldedBias(s.gru(), s.hidden, ih, hh, j);
    }
    for (int64_t j = 0; j < s.hidden; ++j) {
      hidden_bias[j] = s.gru() && bias != nullptr ? hh[2 * s.hidden + j] : T(0);
    }
  }
};

template <typename T>
absl::Status Layer(KernelContext& context, const Attrs& attrs,
                   const RecurrentSteps& s, absl::Span<const TensorView> inputs,
                   const TensorView (&views)[8],
                   absl::Span<const TensorView> outputs) {
  const int64_t h = s.hidden, width = s.width(), saved = s.saved();
  const bool lstm = s.lstm();
  T* const state = outputs[1].as<T>();
  T* const cell = lstm ? outputs[2].as<T>() : nullptr;
  std::copy_n(views[2].as<T>(), s.batch * h, state);
  if (lstm) std::copy_n(views[3].as<T>(), s.batch * h, cell);
  ForwardMemory<T> memory;
  Product<T> product{{context}};
  if (!memory.Make(context, s, views[6].present(), outputs[3]) ||
      !Prepare(context, &product, width, h)) {
    return NoMemory(attrs);
  }
  memory.FoldBiases(s, views[6].as<T>(), views[7].as<T>());
  absl::Status status = InputGates<T>(context, s, inputs[0], inputs[4],
                                      memory.bias, memory.input_gates);
  if (!status.ok()) return status;
  for (int64_t i = 0; i < s.count(); ++i) {
    const int64_t t = s.Step(i), size = s.sizes[t];
    if (context.Stopped()) break;
    product.Run(false, true, size, width, h, state, views[5].as<T>(), false,
                memory.hidden_gates);
    ParallelFor(context, size, SampleGrain(s), [&](int64_t b, int64_t end) {
      for (; b < end; ++b) {
        const int64_t row = s.starts[t] + b, place = memory.save ? row : b;
        CellStep<T> step = {};
        step.x = memory.input_gates + row * width;
        step.r = memory.hidden_gates + b * width;
        step.bias = memory.hidden_bias;
        step.h = state + b * h;
        step.c = lstm ? cell + b * h : nullptr;
        step.out = outputs[0].as<T>() + row * h;
        step.gates = memory.gates + place * saved;
        step.cells = memory.cells + place * h;
        Forward<T>(s.mode, &step, h);
      }
    });
  }
  return absl::OkStatus();
}

// sums[j] = the sum of column j.
template <typename T>
void SumColumns(const KernelContext& context, const T* from, int64_t rows,
                int64_t columns, T* sums) {
  ParallelFor(context, columns, 64, [&](int64_t j, int64_t end) {
    std::vector<double> sum(end - j);
    for (int64_t row = 0; row < rows; ++row) {
      const T* const values = from + row * columns + j;
      for (int64_t i = 0; i < end - j; ++i) sum[i] += values[i];
    }
    for (int64_t i = 0; i < end - j; ++i) sums[j + i] = static_cast<T>(sum[i]);
  });
}

// Indices of rnn_layer_backward's inputs, from those of the layer's on.
constexpr int kLayer = 3, kOutput = 11, kReserve = 12;

template <typename T>
absl::Status LayerBackward(KernelContext& context, const Attrs& attrs,
                           const RecurrentSteps& s,
                           const TensorView (&views)[13],
                           absl::Span<const TensorView> outputs) {
  const int64_t h = s.hidden, width = s.width(), rows = s.rows();
  const int64_t all = s.batch * h, saved = s.saved();
  const int64_t columns = views[kLayer].spec->shape.back();
  const bool lstm = s.lstm();
  T* const hidden_grad = outputs[1].as<T>();
  T* const cell_grad = lstm ? outputs[2].as<T>() : nullptr;
  // Gradients of both kinds of gates, and the states before the steps.
  T* const x_grads = static_cast<T*>(context.Scratch(
      (rows * (width + h + (s.gru() ? width : 0)) + 1) * sizeof(T)));
  Product<T> product{{context}};
  if (x_grads == nullptr || !Prepare(context, &product, std::max(h, columns),
                                     std::max(width, rows))) {
    return NoMemory(attrs);
  }
  T* const before = x_grads + rows * width;
  T* const r_grads = s.gru() ? before + rows * h : x_grads;
  const auto start = [&](const TensorView& grad, T* to) {
    if (grad.present()) {
      std::copy_n(grad.as<T>(), all, to);
    } else {
      std::fill_n(to, all, T(0));
    }
  };
  start(views[1], hidden_grad);
  if (lstm) start(views[2], cell_grad);
  const T* const output = views[kOutput].as<T>();
  T* const gates = views[kReserve].as<T>();
  T* const cells = gates + rows * saved;
  const TensorView &h0 = views[kLayer + 2], &c0 = views[kLayer + 3];
  for (int64_t i = s.count() - 1; i >= 0; --i) {
    const int64_t t = s.Step(i), size = s.sizes[t];
    if (context.Stopped()) break;
    ParallelFor(context, size, SampleGrain(s), [&](int64_t b, int64_t end) {
      for (; b < end; ++b) {
        const int64_t row = s.starts[t] + b, last = s.RowBefore(t, b);
        const T* const from = last < 0 ? h0.as<T>() + b * h : output + last * h;
        std::copy_n(from, h, before + row * h);
        if (views[0].present()) {
          const T* const g = views[0].as<T>() + row * h;
          for (int64_t j = 0; j < h; ++j) hidden_grad[b * h + j] += g[j];
        }
        CellStep<T> step = {};
        step.out = const_cast<T*>(output) + row * h;
        step.gates = gates + row * saved;
        step.hidden_grad = hidden_grad + b * h;
        step.h_before = before + row * h;
        step.x_grad = x_grads + row * width;
        step.r_grad = r_grads + row * width;
        if (lstm) {
          step.c_before = last < 0 ? c0.as<T>() + b * h : cells + last * h;
          step.cells = cells + row * h;
          step.cell_grad = cell_grad + b * h;
        }
        Backward<T>(s.mode, &step, h);
      }
    });
    product.Run(false, false, size, h, width, r_grads + s.starts[t] * width,
                views[kLayer + 5].as<T>(), true, hidden_grad);
  }
  if ((attrs.Int("wanted") & kRnnInputGrad) != 0) {
    product.Run(false, false, rows, columns, width, x_grads,
                views[kLayer + 4].as<T>(), false, outputs[0].as<T>());
  }
  if ((attrs.Int("wanted") & kRnnWeightGrads) == 0) return absl::OkStatus();
  product.Run(true, false, width, columns, rows, x_grads, views[kLayer].as<T>(),
              false, outputs[3].as<T>());
  product.Run(true, false, width, h, rows, r_grads, before, false,
              outputs[4].as<T>());
  if (!views[kLayer + 6].present()) return absl::OkStatus();
  SumColumns<T>(context, x_grads, rows, width, outputs[5].as<T>());
  if (s.gru()) {
    SumColumns<T>(context, r_grads, rows, width, outputs[6].as<T>());
  } else {
    std::copy_n(outputs[5].as<T>(), width, outputs[6].as<T>());
  }
  return absl::OkStatus();
}

}  // namespace

HOLDFAST_CPU_SIZES(rnn_layer) {
  // None is asked for without `save`.
  if (!sizes.empty()) {
    sizes[0] = RecurrentReserve(attrs, *inputs[0].spec, *inputs[2].spec);
  }
  return absl::OkStatus();
}

HOLDFAST_CPU_KERNEL(rnn_layer) {
  const TensorSpec& rows = *inputs[0].spec;
  RecurrentSteps s;
  absl::Status status = ReadSteps(attrs, rows, inputs[1], *inputs[2].spec, &s);
  if (!status.ok()) return status;
  TensorSpec specs[8];
  TensorView views[8];
  status = Contiguous(context, rows.dtype, inputs, 2, specs, views);
  if (!status.ok()) return status;
  return DispatchFloat(rows.dtype, [&](auto tag) -> absl::Status {
    return Layer<typename decltype(tag)::type>(context, attrs, s, inputs, views,
                                               outputs);
  });
}

HOLDFAST_CPU_KERNEL(rnn_layer_backward) {
  const TensorSpec& rows = *inputs[kLayer].spec;
  const TensorSpec& h0 = *inputs[kLayer + 2].spec;
  RecurrentSteps s;
  absl::Status status = ReadSteps(attrs, rows, inputs[kLayer + 1], h0, &s);
  if (status.ok()) {
    status = CheckReserve(attrs, RecurrentReserve(attrs, rows, h0),
                          *inputs[kReserve].spec);
  }
  TensorSpec specs[13];
  TensorView views[13];
  if (status.ok()) {
    status = Contiguous(context, rows.dtype, inputs, 0, specs, views);
  }
  if (!status.ok()) return status;
  return DispatchFloat(rows.dtype, [&](auto tag) -> absl::Status {
    return LayerBackward<typename decltype(tag)::type>(context, attrs, s, views,
                                                       outputs);
  });
}

}  // namespace holdfast::cpu
