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
#include "kernels/cpu/dtype_dispatch.h"
#include "kernels/cpu/load_once.h"
#include "kernels/cpu/parallel.h"
#include "kernels/cpu/plain_product.h"
#include "kernels/cpu/vectorised.h"
#include "kernels/recurrent_cells.h"
#include "kernels/recurrent_steps.h"
#include "ops/op_schema.h"

namespace holdfast {
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

// Contiguous forms of the tensors that are there.
template <size_t kCount>
absl::Status Contiguous(KernelContext& context, DType type,
                        absl::Span<const TensorView> inputs,
                        TensorSpec (&specs)[kCount],
                        TensorView (&views)[kCount]) {
  for (size_t i = 0; i < kCount; ++i) {
    if (!inputs[i].present() || inputs[i].spec->dtype != type) continue;
    absl::Status s =
        MakeContiguous(context, inputs[i], type, &specs[i], &views[i]);
    if (!s.ok()) return s;
  }
  return absl::OkStatus();
}

}  // namespace

HOLDFAST_CPU_KERNEL(rnn_layer) {
  const TensorSpec& rows = *inputs[0].spec;
  RecurrentSteps s;
  absl::Status status = ReadSteps(attrs, rows, inputs[1], *inputs[2].spec, &s);
  if (!status.ok()) return status;
  TensorSpec specs[6];
  TensorView views[6];
  status = Contiguous(context, rows.dtype, inputs, specs, views);
  if (!status.ok()) return status;
  return DispatchFloat(rows.dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    const int64_t h = s.hidden, width = s.width();
    const bool lstm = s.lstm();
    T* state = outputs[1].as<T>();
    T* cell = lstm ? outputs[2].as<T>() : nullptr;
    const T* h0 = views[2].as<T>();
    std::copy(h0, h0 + s.batch * h, state);
    if (lstm) {
      std::copy(views[3].as<T>(), views[3].as<T>() + s.batch * h, cell);
    }
    T* hidden = static_cast<T*>(
        context.Scratch(std::max<int64_t>(1, s.batch * width) * sizeof(T)));
    Product<T> product{{context}};
    if (hidden == nullptr || !Prepare(context, &product, width, h)) {
      return NoMemory(attrs);
    }
    const T* bias = views[5].as<T>();
    const int64_t saved = s.saved();
    for (int64_t i = 0; i < s.count(); ++i) {
      const int64_t t = s.Step(i), size = s.sizes[t];
      if (bias != nullptr) {
        for (int64_t b = 0; b < size; ++b) {
          std::copy(bias, bias + width, hidden + b * width);
        }
      }
      product.Run(false, true, size, width, h, state, views[4].as<T>(),
                  bias != nullptr, hidden);
      ParallelFor(context, size, SampleGrain(s), [&](int64_t b, int64_t end) {
        for (; b < end; ++b) {
          const int64_t row = s.starts[t] + b;
          CellStep<T> step = {};
          step.x = views[0].as<T>() + row * width;
          step.r = hidden + b * width;
          step.h = state + b * h;
          step.c = lstm ? cell + b * h : nullptr;
          step.out = outputs[0].as<T>() + row * h;
          step.gates = outputs[3].as<T>() + row * saved;
          step.cells = lstm ? outputs[4].as<T>() + row * h : nullptr;
          Forward<T>(s.mode, &step, h);
        }
      });
    }
    return absl::OkStatus();
  });
}

HOLDFAST_CPU_KERNEL(rnn_layer_backward) {
  const TensorSpec& rows = *inputs[7].spec;
  RecurrentSteps s;
  absl::Status status = ReadSteps(attrs, rows, inputs[3], *inputs[4].spec, &s);
  if (!status.ok()) return status;
  TensorSpec specs[10];
  TensorView views[10];
  status = Contiguous(context, rows.dtype, inputs, specs, views);
  if (!status.ok()) return status;
  return DispatchFloat(rows.dtype, [&](auto tag) -> absl::Status {
    using T = typename decltype(tag)::type;
    const int64_t h = s.hidden, width = s.width();
    const int64_t all = s.batch * h;
    const bool lstm = s.lstm(), gru = s.gru();
    T* hidden_grad = outputs[3].as<T>();
    T* weight_grad = outputs[1].as<T>();
    T* bias_grad = outputs[2].as<T>();
    // Scratch: the state before a step, the cells', and r's gradients.
    T* before = static_cast<T*>(context.Scratch(
        std::max<int64_t>(1, 2 * all + s.batch * width) * sizeof(T)));
    Product<T> product{{context}};
    if (before == nullptr || !Prepare(context, &product, std::max(h, width),
                                      std::max(width, s.batch))) {
      return NoMemory(attrs);
    }
    T* cells_before = before + all;
    T* r_grads = before + 2 * all;
    const auto start = [&](const TensorView& grad, T* to) {
      if (grad.present()) {
        std::copy(grad.as<T>(), grad.as<T>() + all, to);
      } else {
        std::fill(to, to + all, T(0));
      }
    };
    start(views[1], hidden_grad);
    T* cell_grad = lstm ? outputs[4].as<T>() : nullptr;
    if (lstm) start(views[2], cell_grad);
    std::fill(weight_grad, weight_grad + width * h, T(0));
    std::vector<double> bias_sums(width, 0.0);
    const T* output = views[7].as<T>();
    const int64_t saved = s.saved();
    for (int64_t i = s.count() - 1; i >= 0; --i) {
      const int64_t t = s.Step(i), size = s.sizes[t];
      T* x_grads = outputs[0].as<T>() + s.starts[t] * width;
      ParallelFor(context, size, SampleGrain(s), [&](int64_t b, int64_t end) {
        for (; b < end; ++b) {
          const int64_t row = s.starts[t] + b, last = s.RowBefore(t, b);
          const T* from =
              last < 0 ? views[4].as<T>() + b * h : output + last * h;
          std::copy(from, from + h, before + b * h);
          if (views[0].present()) {
            const T* g = views[0].as<T>() + row * h;
            for (int64_t j = 0; j < h; ++j) hidden_grad[b * h + j] += g[j];
          }
          CellStep<T> step = {};
          step.out = const_cast<T*>(output) + row * h;
          step.gates = views[8].as<T>() + row * saved;
          step.hidden_grad = hidden_grad + b * h;
          step.h_before = before + b * h;
          step.x_grad = x_grads + b * width;
          step.r_grad = r_grads + b * width;
          if (lstm) {
            const T* c = last < 0 ? views[5].as<T>() + b * h
                                  : views[9].as<T>() + last * h;
            std::copy(c, c + h, cells_before + b * h);
            step.c_before = cells_before + b * h;
            step.cells = views[9].as<T>() + row * h;
            step.cell_grad = cell_grad + b * h;
          }
          Backward<T>(s.mode, &step, h);
        }
      });
      const T* r = gru ? r_grads : x_grads;
      product.Run(false, false, size, h, width, r, views[6].as<T>(), true,
                  hidden_grad);
      product.Run(true, false, width, h, size, r, before, true, weight_grad);
      for (int64_t b = 0; b < size; ++b) {
        for (int64_t j = 0; j < width; ++j) bias_sums[j] += r[b * width + j];
      }
    }
    for (int64_t j = 0; j < width; ++j) {
      bias_grad[j] = static_cast<T>(bias_sums[j]);
    }
    return absl::OkStatus();
  });
}

}  // namespace holdfast
