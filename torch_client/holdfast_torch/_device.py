# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.holdfast: what PyTorch asks a device's module, by torch.cuda's names."""

import contextlib

import holdfast
import torch
from holdfast import memory as _memory

from holdfast_torch.errors import as_pytorchs


def is_available():
    return True


def is_initialized():
    return True


def is_bf16_supported(including_emulation=True):
    return True


def device_count():
    return 1


def current_device():
    return 0


def set_device(device):
    """There is one; ValueError for others."""
    _require_first(device)


def _require_first(device):
    index = torch.device(device).index if isinstance(device, str) else device
    index = getattr(index, "index", index)
    if index not in (None, 0, -1):
        raise ValueError(f"there is one holdfast device. Got device {device!r}")


class device(contextlib.nullcontext):
    """with torch.holdfast.device(0): the one there is."""

    def __init__(self, device):
        _require_first(device)
        super().__init__()


def synchronize(device=None):
    """Waits until everything submitted is done."""
    with as_pytorchs():
        holdfast.synchronize()


def manual_seed(seed):
    holdfast.manual_seed(int(seed))


manual_seed_all = manual_seed


def _is_in_bad_fork():
    return False


def get_rng_state(device=None):
    """The state of the session's stream of random numbers, of the CPU."""
    return torch.from_numpy(holdfast.get_rng_state().numpy())


def set_rng_state(state, device=None):
    holdfast.set_rng_state(holdfast.from_numpy(state.cpu().numpy()))


def get_amp_supported_dtype():
    return [torch.float16, torch.bfloat16]


def get_device_name(device=None):
    """What the daemon computes on: "holdfast cpu", "holdfast cuda:0"."""
    with as_pytorchs():
        return f"holdfast {holdfast.current_session().device}"


def empty_cache():
    """Nothing to do: the daemon's cache serves all its sessions."""


def memory_allocated(device=None):
    """Bytes of the session's tensors. Waits, as all figures of memory do."""
    with as_pytorchs():
        return _memory.memory_allocated()


def max_memory_allocated(device=None):
    with as_pytorchs():
        return _memory.max_memory_allocated()


def memory_reserved(device=None):
    with as_pytorchs():
        return _memory.memory_reserved()


def max_memory_reserved(device=None):
    with as_pytorchs():
        return _memory.max_memory_reserved()


def reset_peak_memory_stats(device=None):
    with as_pytorchs():
        _memory.reset_peak_memory_stats()


def mem_get_info(device=None):
    """(free, total) bytes of the daemon's device."""
    with as_pytorchs():
        return _memory.mem_get_info()


class Stream(torch.Stream):
    """The session's order of commands: there is one."""

    def __new__(cls, device="holdfast", priority=0, **kwargs):
        return super().__new__(cls, device=device, priority=priority, **kwargs)


class Event(torch.Event):
    """A place in the session's order of commands."""

    def __new__(cls, enable_timing=False, blocking=False, interprocess=False):
        return super().__new__(
            cls,
            device="holdfast",
            enable_timing=enable_timing,
            blocking=blocking,
            interprocess=interprocess,
        )


def current_stream(device=None):
    return torch.accelerator.current_stream("holdfast")


default_stream = current_stream


@contextlib.contextmanager
def stream(stream):
    """Everything runs in the one stream already."""
    yield stream
