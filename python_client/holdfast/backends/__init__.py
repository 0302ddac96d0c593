# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Settings of PyTorch's backends, for programs that set them.

On a CPU a daemon's results do not depend on the number of threads and repeat
exactly: `cudnn.deterministic`, `cudnn.benchmark` and the TF32 switches count on a
GPU only.
"""

from holdfast.backends import (  # noqa: F401
    cuda as cuda,
    cudnn as cudnn,
    mkl as mkl,
    mkldnn as mkldnn,
    mps as mps,
    openmp as openmp,
)
from holdfast.missing import module_getattr

__getattr__ = module_getattr("torch.backends")
