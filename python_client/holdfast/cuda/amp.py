# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.cuda.amp: torch.amp for a GPU."""

import functools

from holdfast import amp
from holdfast.amp import GradScaler, autocast_mode, grad_scaler  # noqa: F401
from holdfast.missing import module_getattr


class autocast(amp.autocast):
    """amp.autocast("cuda", ...)."""

    def __init__(self, enabled=True, dtype=None, cache_enabled=True):
        super().__init__("cuda", dtype, enabled, cache_enabled)


def custom_fwd(fwd=None, *, cast_inputs=None):
    """Decorator of a Function's forward: its floating point inputs as
    `cast_inputs` where autocast is on, which on a CPU it never is."""
    if fwd is None:
        return functools.partial(custom_fwd, cast_inputs=cast_inputs)
    return fwd


def custom_bwd(bwd):
    """Decorator of a Function's backward: bwd itself."""
    return bwd


__getattr__ = module_getattr("torch.cuda.amp")
