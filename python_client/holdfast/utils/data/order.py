# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Random orders, from the session's stream or from a generator of one's own."""

import holdfast


def permutation(count, generator=None):
    """0 .. count-1 in random order, as a list."""
    if generator is None:
        return holdfast.randperm(count).tolist()
    order = list(range(count))
    python_random(generator).shuffle(order)
    return order


def device_permutation(count, generator=None):
    """The same order as a tensor; without a generator nothing waits for it."""
    if generator is None:
        return holdfast.randperm(count)
    return holdfast.tensor(permutation(count, generator), dtype=holdfast.int64)


def python_random(generator):
    """The random.Random behind holdfast.Generator; TypeError for others."""
    source = getattr(generator, "_random", generator)
    if not hasattr(source, "shuffle"):
        raise TypeError(
            "generator must be a holdfast.Generator. Got "
            f"{type(generator).__name__}."
        )
    return source
