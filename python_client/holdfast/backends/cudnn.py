# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.backends.cudnn: how a GPU computes convolutions. `allow_tf32` (True at
first) lets it round float32 factors, `deterministic` (False) takes only algorithms
whose results repeat bit by bit, `benchmark` (False) tries algorithms at the first
call with new sizes and keeps the fastest, `enabled` (True) takes cuDNN's algorithms
at all and not Holdfast's own."""

import contextlib
import sys
import types

from holdfast import _C
from holdfast._numerics import get, put, switch


class _Module(types.ModuleType):
    enabled = switch("cudnn")
    benchmark = switch("benchmark")
    deterministic = switch("deterministic")
    allow_tf32 = switch("conv_tf32")


@contextlib.contextmanager
def flags(enabled=True, benchmark=False, deterministic=False, allow_tf32=True):
    """Context manager with other settings."""
    wanted = {
        "cudnn": enabled,
        "benchmark": benchmark,
        "deterministic": deterministic,
        "conv_tf32": allow_tf32,
    }
    before = {name: get(name) for name in wanted}
    try:
        for name, value in wanted.items():
            put(name, value)
        yield
    finally:
        for name, value in before.items():
            put(name, value)


def is_available():
    """Whether the session's daemon computes on a GPU, with cuDNN where it is
    installed; connects if need be."""
    return _C.default_session().device.startswith("cuda")


def version():
    """None: cuDNN is the daemon's, not this process's."""
    return None


sys.modules[__name__].__class__ = _Module
