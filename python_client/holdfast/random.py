# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Generators: streams of random numbers, and the session's own.

A random op draws from the session's stream, which the daemon keeps, or from a
Generator passed as `generator=`, whose place this process keeps and sends with
the op. Both are Philox: the same seed gives the same numbers on every device
and transport, whatever other sessions do.
"""

import contextlib
import os
import struct

from holdfast import _C
from holdfast._device import device as _device
from holdfast._registry import function
from holdfast.missing import Missing

_ops = _C.ops

# A state is 16 bytes: the seed and how many counters lie behind.
_STATE = struct.Struct("<QQ")
_DEFAULT_SEED = 67280421310721  # PyTorch's


def _state_tensor(seed, offset):
    data = bytearray(_STATE.pack(seed, offset))
    return _C.tensor(memoryview(data))


def _place_of(state):
    """(seed, offset) of a state tensor; TypeError or RuntimeError for others."""
    if not isinstance(state, _C.Tensor) or state.dtype is not _C.uint8:
        what = state.dtype if isinstance(state, _C.Tensor) else type(state).__name__
        raise TypeError(f"RNG state must be a uint8 tensor. Got {what}.")
    if tuple(state.shape) != (_STATE.size,):
        raise RuntimeError(
            f"RNG state must have the size [{_STATE.size}]. Got {list(state.shape)}."
        )
    return _STATE.unpack(bytes(state.tolist()))


def _checked(seed):
    seed = int(seed)
    if not -(1 << 63) <= seed < 1 << 64:
        raise ValueError(f"seed must fit in 64 bits. Got {seed}.")
    return seed % (1 << 64)


class Generator(_C.RandomStream):
    """A stream of random numbers apart from the session's.

    Starts from a fixed seed, as PyTorch's; `seed()` draws one. It may be used
    with any session and by several threads at once, each op getting numbers of
    its own. Its numbers do not depend on `device`, which is kept for PyTorch's
    sake.
    """

    def __init__(self, device="cpu"):
        self._device = _device(device)
        self._move(_DEFAULT_SEED, 0)

    @property
    def device(self):
        """The device that was asked for."""
        return self._device

    def manual_seed(self, seed):
        """Starts the stream that belongs to `seed` (64 bits); returns self."""
        self._move(_checked(seed), 0)
        return self

    def seed(self):
        """Starts a stream from a seed that the system draws; returns the seed."""
        self.manual_seed(int.from_bytes(os.urandom(8), "little"))
        return self.initial_seed()

    def initial_seed(self):
        """The seed that the stream started from, 0 .. 2**64 - 1."""
        return self._place()[0]

    def get_state(self):
        """Where the stream is, for set_state: a uint8 tensor [16]."""
        return _state_tensor(*self._place())

    def set_state(self, new_state):
        """Goes on from where get_state was called; returns self."""
        self._move(*_place_of(new_state))
        return self

    def clone_state(self):
        """Another generator, at the place of this one."""
        return _rebuilt(str(self.device), *_place_of(self.get_state()))

    def get_offset(self):
        """How many numbers the stream has given."""
        return _place_of(self.get_state())[1]

    def set_offset(self, offset):
        """Goes on after so many numbers of the stream; returns self."""
        return self.set_state(_state_tensor(self.initial_seed(), offset))

    graphsafe_get_state, graphsafe_set_state, philox_state = (
        Missing("torch.Generator", name)
        for name in ("graphsafe_get_state", "graphsafe_set_state", "philox_state")
    )

    def __reduce__(self):
        return _rebuilt, (str(self._device), *self._place())


def _rebuilt(device, seed, offset):
    generator = Generator(device)
    generator._move(seed, offset)
    return generator


class _SessionGenerator(Generator):
    """The stream of the default session, wherever that is."""

    def __init__(self):
        self._stand_for_session()

    @property
    def device(self):
        """The device of the session; connects if need be."""
        return _device(_C.default_session().device)

    def manual_seed(self, seed):
        """Starts the stream that belongs to `seed` (64 bits); returns self."""
        _C.default_session().manual_seed(_checked(seed))
        return self

    def initial_seed(self):
        """The seed that the stream started from; waits for the daemon."""
        return _place_of(self.get_state())[0]

    def get_state(self):
        """Where the stream is, for set_state: a uint8 tensor [16]."""
        return _ops.random_state()

    def set_state(self, new_state):
        """Goes on from where get_state was called; returns self."""
        _C.default_session().manual_seed(*_place_of(new_state))
        return self

    def __reduce__(self):
        return "default_generator"


default_generator = _SessionGenerator()


@function
def manual_seed(seed):
    """Seeds the session's stream: same seed, same numbers. Returns its generator."""
    return default_generator.manual_seed(seed)


@function
def seed():
    """Seeds the session's stream with a random number, and returns it."""
    number = int.from_bytes(os.urandom(8), "little") >> 1
    default_generator.manual_seed(number)
    return number


@function
def initial_seed():
    """The seed that the session's stream started from; waits for the daemon."""
    return default_generator.initial_seed()


@function
def get_rng_state():
    """Where the session's stream is, for set_rng_state: a uint8 tensor [16]."""
    return default_generator.get_state()


@function
def set_rng_state(new_state):
    """The session's stream goes on from where get_rng_state was called."""
    default_generator.set_state(new_state)


@contextlib.contextmanager
def fork_rng(devices=None, enabled=True, **ignored):
    """What is drawn or seeded inside leaves the session's stream where it was.

    `devices` and PyTorch's other options choose among several devices, of which
    a session has one.
    """
    if not enabled:
        yield
        return
    state = get_rng_state()
    try:
        yield
    finally:
        set_rng_state(state)
