# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""An environment written in Python: a pole on a cart, to be kept upright."""

import math

import numpy


class CartPole:
    """Observations are 4 numbers (float64): place, speed, angle and its speed."""

    def __init__(self, seed):
        self._random = numpy.random.default_rng(seed)

    def reset(self):
        self._state = self._random.uniform(-0.05, 0.05, 4)
        return self._state.copy()

    def step(self, action):
        """Pushes left (0) or right (1): (observation, reward, done)."""
        place, speed, angle, spin = self._state.tolist()
        force = 10.0 if action == 1 else -10.0
        sine, cosine = math.sin(angle), math.cos(angle)
        push = (force + 0.05 * spin * spin * sine) / 1.1
        turn = (9.8 * sine - cosine * push) / (0.5 * (4 / 3 - 0.1 * cosine**2 / 1.1))
        pull = push - 0.05 * turn * cosine / 1.1
        self._state += 0.02 * numpy.array([speed, pull, spin, turn])
        done = abs(self._state[0]) > 2.4 or abs(self._state[2]) > 0.21
        return self._state.copy(), 1.0, bool(done)
