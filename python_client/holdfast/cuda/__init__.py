# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Whether the daemon computes on a GPU: what programs ask of torch.cuda."""

import contextlib

from holdfast import _C, random
from holdfast.cuda.devices import (  # noqa: F401
    check_index,
    get_device_capability,
    get_device_name,
    get_device_properties,
    is_available,
    mem_get_info,
    memory_stats,
    memory_summary,
    need_gpu,
)
from holdfast.cuda.streams import (  # noqa: F401
    Event,
    Stream,
    current_stream,
    default_stream,
    set_stream,
    stream,
)
from holdfast.errors import OutOfMemoryError  # noqa: F401
from holdfast.memory import (  # noqa: F401
    empty_cache,
    max_memory_allocated,
    max_memory_reserved,
    memory_allocated,
    memory_reserved,
    memory_snapshot,
    reset_peak_memory_stats,
)
from holdfast.missing import module_getattr
from holdfast.typed_tensors import NAMES


def device_count():
    """GPUs that the session sees: one or none."""
    return int(is_available())


def current_device():
    """0: the session's device."""
    need_gpu()
    return 0


def set_device(device):
    """Checks that `device` is the session's one GPU. RuntimeError if not."""
    check_index(device)


@contextlib.contextmanager
def device(device):
    """Context manager: the session has one device."""
    yield


def is_bf16_supported():
    """Whether there is a GPU: all that Holdfast runs on have bfloat16."""
    return is_available()


def init():
    """Checks that there is a GPU."""
    need_gpu()


def is_initialized():
    """Whether the session computes on a GPU."""
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
    random.seed()


seed_all = seed


def initial_seed():
    """holdfast.initial_seed(): a session has one stream."""
    return random.initial_seed()


memory_cached = memory_reserved
max_memory_cached = max_memory_reserved


def get_rng_state(device="cuda"):
    """holdfast.get_rng_state(): a session has one stream."""
    return random.get_rng_state()


def set_rng_state(new_state, device="cuda"):
    """holdfast.set_rng_state(new_state): a session has one stream."""
    random.set_rng_state(new_state)


def get_rng_state_all():
    """The state of each device: of the one that the session has."""
    return [random.get_rng_state()]


def set_rng_state_all(new_states):
    """Sets the state of each device."""
    for state in new_states:
        random.set_rng_state(state)


globals().update(NAMES)
__getattr__ = module_getattr("torch.cuda", submodules=("amp", "nvtx"))
