# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Settings of PyTorch's backends, for programs that set them.

A daemon's results do not depend on the number of threads and repeat exactly, so
`cudnn.deterministic` has nothing to change; `cudnn.benchmark` and the TF32
switches count on a GPU only, which this version does not have.
"""

from holdfast.backends import cuda, cudnn, mkldnn, mps, openmp  # noqa: F401
from holdfast.missing import module_getattr

__getattr__ = module_getattr("torch.backends")
