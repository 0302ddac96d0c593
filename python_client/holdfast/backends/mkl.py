# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.backends.mkl."""

from contextlib import contextmanager

VERBOSE_OFF, VERBOSE_ON = 0, 1


def is_available():
    """False: the daemon's kernels use oneDNN."""
    return False


@contextmanager
def verbose(enable):
    """Nothing: there is no MKL to tell what it does."""
    yield
