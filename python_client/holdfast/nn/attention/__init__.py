# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.nn.attention: how attention is computed, and masks for it."""

import contextlib
import enum

from holdfast.missing import module_getattr

from .multihead import (  # noqa: F401
    MultiheadAttention as MultiheadAttention,
    NonDynamicallyQuantizableLinear as NonDynamicallyQuantizableLinear,
)

__all__ = ["SDPBackend", "sdpa_kernel"]


class SDPBackend(enum.IntEnum):
    """PyTorch's ways to compute scaled_dot_product_attention; here it is one."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


@contextlib.contextmanager
def sdpa_kernel(backends, set_priority=False):
    """Context manager that changes nothing: the daemon has one way to compute it.
    TypeError unless backends are SDPBackend."""
    for backend in backends if isinstance(backends, list) else [backends]:
        if not isinstance(backend, SDPBackend):
            raise TypeError(f"sdpa_kernel() takes SDPBackends, but got {backend!r}")
    yield


__getattr__ = module_getattr(
    "torch.nn.attention", submodules=("bias", "flex_attention")
)
