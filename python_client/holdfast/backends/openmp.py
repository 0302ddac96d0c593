# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.backends.openmp."""


def is_available():
    """True: the daemon's kernels use it."""
    return True
