// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Attention and its gradients as problems for cuDNN (dnn_plan.h): graphs of
// products and pointwise operations that it knows as flash attention.
#ifndef HOLDFAST_KERNELS_CUDA_DNN_ATTENTION_H_
#define HOLDFAST_KERNELS_CUDA_DNN_ATTENTION_H_

#include <cstdint>

#include "kernels/cuda/dnn_plan.h"

namespace holdfast::cuda {

struct AttentionProblem : DnnProblem {
  // The graph's names of the tensors. Of the backward alone: the gradients; a
  // float32 sum over each row [n, h, l, 1] and float32 sums of the query's
  // gradient [n, h, l, e], which are scratch memory. Numbers are float32, on
  // the host.
  enum Id : int64_t {
    kQuery = 1,
    kKey,
    kValue,
    kOutput,
    kLogSumExp,  // [n, h, l, 1], float32
    kOutputGrad,
    kQueryGrad,
    kKeyGrad,
    kValueGrad,
    kRowSums,
    kQuerySums,
    kScale,
    kHidden,  // HiddenScore()
    kOne,     // 1
    kFirstVirtual,
  };
  // Elements from one sample, head and row to the next; those of a row are
  // adjacent.
  struct Steps {
    int64_t sample = 0, head = 0, row = 0;
  };

  Key key() const override;
  void Describe(DnnGraph* graph) const override;
  bool Allows(cudnnBackendNumericalNote_t note) const override;

  // What the score of a key that is not seen becomes.
  static float HiddenScore(size_t cudnn_version);
  // Whether this cuDNN is known to compute it rightly.
  bool IsSound(size_t cudnn_version) const;

  bool backward = false, causal = false;
  DType dtype = DType::kBFloat16;  // or float16
  int64_t n = 1, h = 1, l = 0, s = 0, e = 0, v = 0;
  Steps query, key_steps, value, output_grad;  // all others have no gaps
};

}  // namespace holdfast::cuda

#endif  // HOLDFAST_KERNELS_CUDA_DNN_ATTENTION_H_
