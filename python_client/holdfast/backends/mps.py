# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.backends.mps: Apple's GPUs, which no daemon has."""


def is_available():
    """False."""
    return False


def is_built():
    """False."""
    return False
