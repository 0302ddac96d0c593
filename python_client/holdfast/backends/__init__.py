# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Settings of PyTorch's backends, for programs that set them.

On a CPU a daemon's results do not depend on the number of threads and repeat
exactly: `cudnn.deterministic`, `cudnn.benchmark` and the TF32 switches count on a
GPU only.
"""

from holdfast.backends import cuda, cudnn, mkl, mkldnn, mps, openmp  # noqa: F401
from holdfast.missing import module_getattr

__getattr__ = module_getattr("torch.backends")
