# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Random generators of the client's own.

Random ops draw from the session's stream on the daemon (manual_seed). A
Generator is for orders that this process decides: DataLoader, random_split and
samplers accept one.
"""

import os
import random

_SEED_BITS = 64


class Generator:
    """A stream of random numbers apart from the session's.

    Starts from a fixed seed, as PyTorch's; `seed()` draws one.
    """

    def __init__(self, device="cpu"):
        self.device = device
        self.manual_seed(67280421310721)

    def manual_seed(self, seed):
        """Starts the stream that belongs to `seed` (64 bits); returns self."""
        seed = int(seed)
        if not -(1 << (_SEED_BITS - 1)) <= seed < 1 << _SEED_BITS:
            raise ValueError(f"seed must fit in 64 bits. Got {seed}.")
        self._seed = seed % (1 << _SEED_BITS)
        self._random = random.Random(self._seed)
        return self

    def seed(self):
        """Starts a stream from a seed that the system draws; returns the seed."""
        self.manual_seed(int.from_bytes(os.urandom(_SEED_BITS // 8), "little"))
        return self._seed

    def initial_seed(self):
        """The seed that the stream started from."""
        return self._seed

    def get_state(self):
        """The stream's position, for set_state."""
        return self._random.getstate()

    def set_state(self, new_state):
        """Goes on from where get_state was called; returns self."""
        self._random.setstate(new_state)
        return self
