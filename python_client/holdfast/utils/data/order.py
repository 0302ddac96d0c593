# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Random orders, from the session's stream or from a generator's."""

import holdfast


def permutation(count, generator=None):
    """0 .. count-1 in random order, as a list."""
    return device_permutation(count, generator).tolist()


def device_permutation(count, generator=None):
    """The same order as a tensor [count] int64; nothing waits for it."""
    return holdfast.randperm(count, generator=generator)
