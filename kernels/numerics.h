// SPDX-FileCopyrightText: The Holdfast Authors
// SPDX-License-Identifier: Apache-2.0
//
// Numerics: what a session lets a GPU's libraries do to its results. Devices
// that have nothing to choose pass over it. Thread-safety: plain values.
#ifndef HOLDFAST_KERNELS_NUMERICS_H_
#define HOLDFAST_KERNELS_NUMERICS_H_

namespace holdfast {

// PyTorch's switches and their defaults.
struct Numerics {
  // float32 factors may be rounded to TF32 (10 bits after the point).
  bool matmul_tf32 = false;
  bool conv_tf32 = true;
  // Only algorithms whose results repeat bit by bit.
  bool deterministic = false;
  // Time the algorithms of a convolution when it is first met.
  bool benchmark = false;
  // Let cuDNN compute what it can; if not, own kernels do.
  bool cudnn = true;
};

}  // namespace holdfast

#endif  // HOLDFAST_KERNELS_NUMERICS_H_
