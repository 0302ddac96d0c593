# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Whether the daemon computes on a GPU: what programs ask of torch.cuda."""

from holdfast import _C
from holdfast import random as _random
from holdfast.cuda.devices import (  # noqa: F401
    get_device_capability as get_device_capability,
    get_device_name as get_device_name,
    get_device_properties as get_device_properties,
    index_of as index_of,
    is_available as is_available,
    mem_get_info as mem_get_info,
    memory_stats as memory_stats,
    memory_summary as memory_summary,
    need_gpu as need_gpu,
)
from holdfast.cuda.streams import (  # noqa: F401
    Event as Event,
    Stream as Stream,
    current_stream as current_stream,
    default_stream as default_stream,
    set_stream as set_stream,
    stream as stream,
)
from holdfast.errors import OutOfMemoryError as OutOfMemoryError  # noqa: F401
from holdfast.memory import (  # noqa: F401
    empty_cache as empty_cache,
    max_memory_allocated as max_memory_allocated,
    max_memory_reserved as max_memory_reserved,
    memory_allocated as memory_allocated,
    memory_reserved as memory_reserved,
    memory_snapshot as memory_snapshot,
    reset_peak_memory_stats as reset_peak_memory_stats,
)
from holdfast.missing import module_getattr
from holdfast.typed_tensors import CUDA_NAMES


def device_count():
    """GPUs of the daemon."""
    return _C.default_session().device_count


def current_device():
    """The index of the GPU that "cuda" is."""
    need_gpu()
    return _C.current_gpu()


def set_device(device):
    """Makes it the GPU that "cuda" is. RuntimeError where the daemon does not have
    it."""
    index = index_of(device)
    if device != -1:
        _C.set_current_gpu(index)


class device:
    """Context manager: `device` (an int, "cuda:1", a torch.device) is the GPU that
    "cuda" is. None or -1: no change."""

    def __init__(self, device):
        self._device = device

    def __enter__(self):
        self._outer = _C.current_gpu()
        if self._device is not None:
            set_device(self._device)
        return self

    def __exit__(self, *error):
        _C.set_current_gpu(self._outer)


class device_of(device):
    """Context manager: the tensor's GPU is what "cuda" is."""

    def __init__(self, tensor):
        super().__init__(tensor.device if tensor.is_cuda else None)


def is_bf16_supported():
    """Whether there is a GPU: all that Holdfast runs on have bfloat16."""
    return is_available()


def init():
    """Checks that there is a GPU."""
    need_gpu()


def is_initialized():
    """Whether the daemon has a GPU."""
    return is_available()


def synchronize(device=None):
    """Waits until every op submitted so far is done."""
    session = _C.current_session()
    if session is not None:
        session.synchronize()


def ipc_collect():
    """Nothing: the daemon frees memory of processes that ended by itself."""


def reset_max_memory_allocated(device=None):
    """reset_peak_memory_stats(), by its older name."""
    reset_peak_memory_stats(device)


def manual_seed(seed):
    """Nothing: a session has one stream, which holdfast.manual_seed seeds."""


manual_seed_all = manual_seed


def seed():
    """A seed that differs from run to run, for the session's one stream."""
    _random.seed()


seed_all = seed


def initial_seed():
    """holdfast.initial_seed(): a session has one stream."""
    return _random.initial_seed()


memory_cached = memory_reserved
max_memory_cached = max_memory_reserved


def get_rng_state(device="cuda"):
    """holdfast.get_rng_state(): a session has one stream."""
    return _random.get_rng_state()


def set_rng_state(new_state, device="cuda"):
    """holdfast.set_rng_state(new_state): a session has one stream."""
    _random.set_rng_state(new_state)


def get_rng_state_all():
    """The state of each GPU: all draw from the session's one stream."""
    return [_random.get_rng_state() for _ in range(device_count())]


def set_rng_state_all(new_states):
    """Sets the state of each device."""
    for state in new_states:
        _random.set_rng_state(state)


globals().update(CUDA_NAMES)
__getattr__ = module_getattr("torch.cuda", submodules=("amp", "nvtx"))
