// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// For tests: cuDNN's functions for recurrent layers of float32 on the host, as
// they are documented. It keeps weights in an order that a test chooses,
// destroys the reserve in the gradient, adds to weights' gradients, wants every
// pointer, and refuses what it is told to refuse.
// Thread-safety: none; one test uses it.
#ifndef HOLDFAST_KERNELS_CUDA_FAKE_DNN_RNN_H_
#define HOLDFAST_KERNELS_CUDA_FAKE_DNN_RNN_H_

#include <cstring>
#include <limits>
#include <set>
#include <vector>

#include "kernels/cuda/cuda_libraries.h"
#include "kernels/recurrent_cells.h"
#include "kernels/recurrent_steps.h"

// What cuDNN's headers leave open.
struct cudnnDropoutStruct {
  bool set = false;
};
struct cudnnTensorStruct {
  std::vector<int> sizes;
};
struct cudnnRNNDataStruct {
  cudnnRNNDataLayout_t layout;
  int steps, batch, width;
  std::vector<int> lengths;
};
struct cudnnRNNStruct {
  cudnnRNNAlgo_t algorithm;
  cudnnRNNMode_t mode;
  cudnnRNNBiasMode_t bias;
  cudnnMathType_t math;
  int inputs, hidden;
  bool padded;
};

namespace holdfast::cuda {

struct FakeDnnRnn {
  // How the tests want it, and what it was asked.
  bool scattered = false;  // weights: from the last to the first, with gaps
  std::set<cudnnRNNAlgo_t> refused_when_described, refused_when_run;
  std::vector<cudnnRNNAlgo_t> described, run;
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
  int alive = 0;  // descriptors

  static FakeDnnRnn& Get() {
    static FakeDnnRnn fake;
    return fake;
  }
};

// One layer as the fake computes it: rows are where the layout has them.
class FakeDnnLayer {
 public:
  FakeDnnLayer(const cudnnRNNStruct& rnn, const cudnnRNNDataStruct& x)
      : h(rnn.hidden), inputs(rnn.inputs), x_(x) {
    s.mode = rnn.mode == CUDNN_LSTM       ? RecurrentMode::kLstm
             : rnn.mode == CUDNN_GRU      ? RecurrentMode::kGru
             : rnn.mode == CUDNN_RNN_RELU ? RecurrentMode::kRelu
                                          : RecurrentMode::kTanh;
    gates = s.lstm() ? 4 : s.gru() ? 3 : 1;
    s.hidden = h;
    width = gates * h;
    saved = s.saved();
    biased = rnn.bias == CUDNN_RNN_DOUBLE_BIAS;
    starts_.push_back(0);
    for (int t = 0; t < x.steps; ++t) {
      int live = 0;
      for (int length : x.lengths) live += length > t;
      const bool packed = x.layout == CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_PACKED;
      starts_.push_back(starts_.back() + (packed ? live : x.batch));
    }
  }
  int64_t rows() const { return starts_.back(); }
  int64_t Row(int t, int b) const { return starts_[t] + b; }
  bool Live(int t, int b) const {
    return t >= 0 && t < x_.steps && x_.lengths[b] > t;
  }
  int steps() const { return x_.steps; }
  int batch() const { return x_.batch; }

  // The weight space: matrices and biases by number, each of one gate.
  int64_t PieceFloats(int64_t piece) const {
    return piece < gates ? h * inputs : piece < 2 * gates ? h * h : h;
  }
  size_t SpaceBytes() const {
    int64_t all = 0;
    for (int64_t p = 0; p < Pieces(); ++p) all += PieceFloats(p) + Gap();
    return all * sizeof(float);
  }
  // Bytes to matrix, or bias, `id`.
  size_t Offset(int64_t id, bool bias) const {
    const int64_t piece = bias ? 2 * gates + id : id;
    const bool scattered = FakeDnnRnn::Get().scattered;
    int64_t at = 0;
    for (int64_t p = 0; p < Pieces(); ++p) {
      if (scattered ? p > piece : p < piece) at += PieceFloats(p) + Gap();
    }
    return at * sizeof(float);
  }
  const float* Matrix(const void* space, int64_t gate, bool recurrent) const {
    return At(space, Offset(gate + (recurrent ? gates : 0), false));
  }
  float Bias(const void* space, int64_t j, bool recurrent) const {
    if (!biased) return 0;
    return At(space, Offset(j / h + (recurrent ? gates : 0), true))[j % h];
  }
  float* At(const void* space, size_t bytes) const {
    return reinterpret_cast<float*>(
        const_cast<char*>(static_cast<const char*>(space)) + bytes);
  }

  // The reserve: gates and cells of all rows, then gradients of both kinds.
  int64_t ReserveFloats() const {
    return int64_t{x_.steps} * x_.batch * (saved + h + 2 * width);
  }
  float* Gates(void* reserve) const { return static_cast<float*>(reserve); }
  float* Cells(void* reserve) const { return Gates(reserve) + rows() * saved; }
  float* XGrads(void* reserve) const { return Cells(reserve) + rows() * h; }
  float* RGrads(void* reserve) const {
    return XGrads(reserve) + rows() * width;
  }

  RecurrentSteps s;
  int64_t h, inputs, gates, width, saved;
  bool biased;

 private:
  int64_t Pieces() const { return (biased ? 4 : 2) * gates; }
  static int64_t Gap() { return FakeDnnRnn::Get().scattered ? 16 : 0; }

  const cudnnRNNDataStruct& x_;
  std::vector<int64_t> starts_;
};

inline cudnnStatus_t FakeForward(cudnnHandle_t, cudnnRNNDescriptor_t rnn,
                                 cudnnForwardMode_t mode, const int32_t*,
                                 cudnnRNNDataDescriptor_t x_rows, const void* x,
                                 cudnnRNNDataDescriptor_t y_rows, void* y,
                                 cudnnTensorDescriptor_t, const void* hx,
                                 void* hy, cudnnTensorDescriptor_t,
                                 const void* cx, void* cy, size_t space_bytes,
                                 const void* space, size_t, void* workspace,
                                 size_t reserve_bytes, void* reserve) {
  FakeDnnRnn& fake = FakeDnnRnn::Get();
  fake.run.push_back(rnn->algorithm);
  if (fake.refused_when_run.count(rnn->algorithm)) {
    return CUDNN_STATUS_NOT_SUPPORTED;
  }
  const FakeDnnLayer layer(*rnn, *x_rows);
  const bool save = mode == CUDNN_FWD_MODE_TRAINING;
  const size_t wanted = save ? layer.ReserveFloats() * sizeof(float) : 0;
  if (x == nullptr || y == nullptr || hx == nullptr || hy == nullptr ||
      workspace == nullptr || y_rows->lengths != x_rows->lengths ||
      rnn->padded !=
          (x_rows->layout == CUDNN_RNN_DATA_LAYOUT_SEQ_MAJOR_UNPACKED) ||
      layer.s.lstm() != (cx != nullptr && cy != nullptr) ||
      space_bytes != layer.SpaceBytes() || reserve_bytes < wanted) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  std::vector<float> own(save ? 0 : layer.ReserveFloats());
  void* const memory = save ? reserve : own.data();
  const int64_t h = layer.h, width = layer.width;
  float* const state = static_cast<float*>(hy);
  float* const cells = static_cast<float*>(cy);
  std::memcpy(state, hx, layer.batch() * h * sizeof(float));
  if (cells != nullptr) {
    std::memcpy(cells, cx, layer.batch() * h * sizeof(float));
  }
  std::vector<float> in(width), r(width), bias(h), c(h);
  for (int t = 0; t < layer.steps(); ++t) {
    for (int b = 0; b < layer.batch(); ++b) {
      if (!layer.Live(t, b)) continue;
      const int64_t row = layer.Row(t, b);
      const float* const inputs =
          static_cast<const float*>(x) + row * layer.inputs;
      for (int64_t j = 0; j < width; ++j) {
        const bool hidden_part = layer.s.gru() && j >= 2 * h;
        in[j] = layer.Bias(space, j, false) +
                (hidden_part ? 0 : layer.Bias(space, j, true));
        if (hidden_part) bias[j - 2 * h] = layer.Bias(space, j, true);
        const float* const w =
            layer.Matrix(space, j / h, false) + j % h * layer.inputs;
        const float* const u = layer.Matrix(space, j / h, true) + j % h * h;
        for (int64_t k = 0; k < layer.inputs; ++k) in[j] += w[k] * inputs[k];
        r[j] = 0;
        for (int64_t k = 0; k < h; ++k) r[j] += u[k] * state[b * h + k];
      }
      CellStep<float> step = {};
      step.x = in.data();
      step.r = r.data();
      step.bias = bias.data();
      step.h = state + b * h;
      step.c = cells == nullptr ? nullptr : cells + b * h;
      step.out = static_cast<float*>(y) + row * h;
      step.gates = layer.Gates(memory) + row * layer.saved;
      step.cells = layer.Cells(memory) + row * h;
      switch (layer.s.mode) {
        case RecurrentMode::kLstm:
          LstmForward<float>::Run(&step, h);
          break;
        case RecurrentMode::kGru:
          GruForward<float>::Run(&step, h);
          break;
        case RecurrentMode::kRelu:
          PlainForward<float, true>::Run(&step, h);
          break;
        default:
          PlainForward<float, false>::Run(&step, h);
      }
    }
  }
  return CUDNN_STATUS_SUCCESS;
}

inline cudnnStatus_t FakeBackwardData(
    cudnnHandle_t, cudnnRNNDescriptor_t rnn, const int32_t*,
    cudnnRNNDataDescriptor_t, const void* y, const void* dy,
    cudnnRNNDataDescriptor_t x_rows, void* dx, cudnnTensorDescriptor_t,
    const void* hx, const void* dhy, void* dhx, cudnnTensorDescriptor_t,
    const void* cx, const void* dcy, void* dcx, size_t space_bytes,
    const void* space, size_t, void* workspace, size_t reserve_bytes,
    void* reserve) {
  const FakeDnnLayer layer(*rnn, *x_rows);
  const bool lstm = layer.s.lstm();
  if (y == nullptr || dy == nullptr || dx == nullptr || hx == nullptr ||
      dhy == nullptr || dhx == nullptr || workspace == nullptr ||
      (lstm && (cx == nullptr || dcy == nullptr || dcx == nullptr)) ||
      space_bytes != layer.SpaceBytes() ||
      reserve_bytes < layer.ReserveFloats() * sizeof(float)) {
    return CUDNN_STATUS_BAD_PARAM;
  }
  const int64_t h = layer.h, width = layer.width;
  const int64_t all = layer.batch() * h;
  const float *const outputs = static_cast<const float*>(y),
                     *const grads = static_cast<const float*>(dy);
  float *const hidden_grad = static_cast<float*>(dhx), *const cell_grad =
                                                           static_cast<float*>(
                                                               dcx);
  std::memcpy(hidden_grad, dhy, all * sizeof(float));
  if (lstm) std::memcpy(cell_grad, dcy, all * sizeof(float));
  for (int t = layer.steps() - 1; t >= 0; --t) {
    for (int b = 0; b < layer.batch(); ++b) {
      if (!layer.Live(t, b)) continue;
      const int64_t row = layer.Row(t, b);
      const int64_t last = t == 0 ? -1 : layer.Row(t - 1, b);
      for (int64_t j = 0; j < h; ++j) {
        hidden_grad[b * h + j] += grads[row * h + j];
      }
      CellStep<float> step = {};
      step.out = const_cast<float*>(outputs) + row * h;
      step.gates = layer.Gates(reserve) + row * layer.saved;
      step.cells = layer.Cells(reserve) + row * h;
      step.h_before =
          last < 0 ? static_cast<const float*>(hx) + b * h : outputs + last * h;
      step.c_before = !lstm      ? nullptr
                      : last < 0 ? static_cast<const float*>(cx) + b * h
                                 : layer.Cells(reserve) + last * h;
      step.hidden_grad = hidden_grad + b * h;
      step.cell_grad = lstm ? cell_grad + b * h : nullptr;
      step.x_grad = layer.XGrads(reserve) + row * width;
      step.r_grad =
          layer.s.gru() ? layer.RGrads(reserve) + row * width : step.x_grad;
      switch (layer.s.mode) {
        case RecurrentMode::kLstm:
          LstmBackward<float>::Run(&step, h);
          break;
        case RecurrentMode::kGru:
          GruBackward<float>::Run(&step, h);
          break;
        case RecurrentMode::kRelu:
          PlainBackward<float, true>::Run(&step, h);
          break;
        default:
          PlainBackward<float, false>::Run(&step, h);
      }
      float* const input_grad = static_cast<float*>(dx) + row * layer.inputs;
      std::fill_n(input_grad, layer.inputs, 0.0f);
      for (int64_t j = 0; j < width; ++j) {
        const float* const w =
            layer.Matrix(space, j / h, false) + j % h * layer.inputs;
        const float* const u = layer.Matrix(space, j / h, true) + j % h * h;
        for (int64_t k = 0; k < layer.inputs; ++k) {
          input_grad[k] += step.x_grad[j] * w[k];
        }
        for (int64_t k = 0; k < h; ++k) {
          hidden_grad[b * h + k] += step.r_grad[j] * u[k];
        }
      }
    }
  }
  std::fill_n(layer.Gates(reserve), layer.rows() * (layer.saved + h),
              std::numeric_limits<float>::quiet_NaN());
  return CUDNN_STATUS_SUCCESS;
}

inline cudnnStatus_t FakeBackwardWeights(
    cudnnHandle_t, cudnnRNNDescriptor_t rnn, cudnnWgradMode_t add,
    const int32_t*, cudnnRNNDataDescriptor_t x_rows, const void* x,
    cudnnTensorDescriptor_t, const void* hx, cudnnRNNDataDescriptor_t,
    const void* y, size_t, void* space, size_t, void*, size_t, void* reserve) {
  if (add != CUDNN_WGRAD_MODE_ADD) return CUDNN_STATUS_NOT_SUPPORTED;
  const FakeDnnLayer layer(*rnn, *x_rows);
  const int64_t h = layer.h, width = layer.width;
  for (int t = 0; t < layer.steps(); ++t) {
    for (int b = 0; b < layer.batch(); ++b) {
      if (!layer.Live(t, b)) continue;
      const int64_t row = layer.Row(t, b);
      const float* const before =
          t == 0 ? static_cast<const float*>(hx) + b * h
                 : static_cast<const float*>(y) + layer.Row(t - 1, b) * h;
      const float* const inputs =
          static_cast<const float*>(x) + row * layer.inputs;
      const float* const dx = layer.XGrads(reserve) + row * width;
      const float* const dr =
          layer.s.gru() ? layer.RGrads(reserve) + row * width : dx;
      for (int64_t j = 0; j < width; ++j) {
        float* const w = const_cast<float*>(layer.Matrix(space, j / h, false)) +
                         j % h * layer.inputs;
        float* const u =
            const_cast<float*>(layer.Matrix(space, j / h, true)) + j % h * h;
        for (int64_t k = 0; k < layer.inputs; ++k) w[k] += dx[j] * inputs[k];
        for (int64_t k = 0; k < h; ++k) u[k] += dr[j] * before[k];
        if (!layer.biased) continue;
        layer.At(space, layer.Offset(j / h, true))[j % h] += dx[j];
        layer.At(space, layer.Offset(j / h + layer.gates, true))[j % h] +=
            dr[j];
      }
    }
  }
  return CUDNN_STATUS_SUCCESS;
}

template <typename T>
cudnnStatus_t FakeCreate(T** made) {
  *made = new T();
  ++FakeDnnRnn::Get().alive;
  return CUDNN_STATUS_SUCCESS;
}
template <typename T>
cudnnStatus_t FakeDestroy(T* one) {
  delete one;
  --FakeDnnRnn::Get().alive;
  return CUDNN_STATUS_SUCCESS;
}

inline DnnLibrary FakeDnnLibrary() {
  DnnLibrary dnn;
  dnn.cudnnSetStream = [](cudnnHandle_t, cudaStream_t) {
    return CUDNN_STATUS_SUCCESS;
  };
  dnn.cudnnGetErrorString = [](cudnnStatus_t status) {
    return status == CUDNN_STATUS_NOT_SUPPORTED ? "NOT_SUPPORTED" : "other";
  };
  return dnn;
}

inline DnnRnnLibrary FakeDnnRnnLibrary() {
  DnnRnnLibrary rnn;
  rnn.cudnnCreateDropoutDescriptor = &FakeCreate<cudnnDropoutStruct>;
  rnn.cudnnDestroyDropoutDescriptor = &FakeDestroy<cudnnDropoutStruct>;
  rnn.cudnnCreateRNNDataDescriptor = &FakeCreate<cudnnRNNDataStruct>;
  rnn.cudnnDestroyRNNDataDescriptor = &FakeDestroy<cudnnRNNDataStruct>;
  rnn.cudnnCreateRNNDescriptor = &FakeCreate<cudnnRNNStruct>;
  rnn.cudnnDestroyRNNDescriptor = &FakeDestroy<cudnnRNNStruct>;
  rnn.cudnnCreateTensorDescriptor = &FakeCreate<cudnnTensorStruct>;
  rnn.cudnnDestroyTensorDescriptor = &FakeDestroy<cudnnTensorStruct>;
  rnn.cudnnSetDropoutDescriptor = [](cudnnDropoutDescriptor_t dropout,
                                     cudnnHandle_t, float p, void*, size_t,
                                     unsigned long long) {
    dropout->set = p == 0;
    return CUDNN_STATUS_SUCCESS;
  };
  rnn.cudnnSetTensorNdDescriptor = [](cudnnTensorDescriptor_t tensor,
                                      cudnnDataType_t, int rank,
                                      const int sizes[], const int[]) {
    tensor->sizes.assign(sizes, sizes + rank);
    return CUDNN_STATUS_SUCCESS;
  };
  rnn.cudnnGetTensorNdDescriptor = [](const cudnnTensorDescriptor_t tensor, int,
                                      cudnnDataType_t* type, int* rank,
                                      int sizes[], int[]) {
    *type = CUDNN_DATA_FLOAT;
    *rank = static_cast<int>(tensor->sizes.size());
    std::copy(tensor->sizes.begin(), tensor->sizes.end(), sizes);
    return CUDNN_STATUS_SUCCESS;
  };
  rnn.cudnnSetRNNDataDescriptor =
      [](cudnnRNNDataDescriptor_t rows, cudnnDataType_t,
         cudnnRNNDataLayout_t layout, int steps, int batch, int width,
         const int lengths[], void*) {
        *rows = {layout, steps, batch, width,
                 std::vector<int>(lengths, lengths + batch)};
        return CUDNN_STATUS_SUCCESS;
      };
  rnn.cudnnSetRNNDescriptor_v8 =
      [](cudnnRNNDescriptor_t rnn, cudnnRNNAlgo_t algorithm,
         cudnnRNNMode_t mode, cudnnRNNBiasMode_t bias, cudnnDirectionMode_t,
         cudnnRNNInputMode_t, cudnnDataType_t, cudnnDataType_t,
         cudnnMathType_t math, int32_t inputs, int32_t hidden, int32_t outputs,
         int32_t layers, cudnnDropoutDescriptor_t dropout, uint32_t flags) {
        FakeDnnRnn& fake = FakeDnnRnn::Get();
        fake.described.push_back(algorithm);
        fake.math = math;
        if (!dropout->set || outputs != hidden || layers != 1) {
          return CUDNN_STATUS_BAD_PARAM;
        }
        if (fake.refused_when_described.count(algorithm)) {
          return CUDNN_STATUS_NOT_SUPPORTED;
        }
        *rnn = {algorithm,
                mode,
                bias,
                math,
                inputs,
                hidden,
                (flags & CUDNN_RNN_PADDED_IO_ENABLED) != 0};
        return CUDNN_STATUS_SUCCESS;
      };
  rnn.cudnnGetRNNWeightSpaceSize = [](cudnnHandle_t, cudnnRNNDescriptor_t rnn,
                                      size_t* bytes) {
    *bytes = FakeDnnLayer(*rnn, {}).SpaceBytes();
    return CUDNN_STATUS_SUCCESS;
  };
  rnn.cudnnGetRNNTempSpaceSizes =
      [](cudnnHandle_t, cudnnRNNDescriptor_t rnn, cudnnForwardMode_t mode,
         cudnnRNNDataDescriptor_t x, size_t* workspace, size_t* reserve) {
        *workspace = 100;
        *reserve = mode == CUDNN_FWD_MODE_TRAINING
                       ? FakeDnnLayer(*rnn, *x).ReserveFloats() * sizeof(float)
                       : 0;
        return CUDNN_STATUS_SUCCESS;
      };
  rnn.cudnnGetRNNWeightParams =
      [](cudnnHandle_t, cudnnRNNDescriptor_t rnn, int32_t, size_t,
         const void* space, int32_t id, cudnnTensorDescriptor_t matrix,
         void** matrix_at, cudnnTensorDescriptor_t bias, void** bias_at) {
        const FakeDnnLayer layer(*rnn, {});
        const int h = rnn->hidden;
        matrix->sizes = {1, h, id < layer.gates ? rnn->inputs : h};
        *matrix_at = layer.At(space, layer.Offset(id, false));
        bias->sizes = {1, h, 1};
        *bias_at =
            layer.biased ? layer.At(space, layer.Offset(id, true)) : nullptr;
        return CUDNN_STATUS_SUCCESS;
      };
  rnn.cudnnRNNForward = &FakeForward;
  rnn.cudnnRNNBackwardData_v8 = &FakeBackwardData;
  rnn.cudnnRNNBackwardWeights_v8 = &FakeBackwardWeights;
  return rnn;
}

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_FAKE_DNN_RNN_H_
