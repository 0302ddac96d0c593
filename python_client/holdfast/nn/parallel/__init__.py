# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Data parallelism: over the GPUs of one daemon (DataParallel), and the wrapper of
programs that run in several processes, which works in a group of one."""

from holdfast.missing import module_getattr

from .data_parallel import DataParallel, data_parallel, parallel_apply, replicate
from .distributed import DistributedDataParallel
from .scatter_gather import gather, scatter, scatter_kwargs

__all__ = [
    "DataParallel",
    "DistributedDataParallel",
    "data_parallel",
    "gather",
    "parallel_apply",
    "replicate",
    "scatter",
    "scatter_kwargs",
]

__getattr__ = module_getattr("torch.nn.parallel")
