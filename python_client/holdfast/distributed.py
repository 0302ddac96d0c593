# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.distributed as in a build of PyTorch without it.

One daemon owns one machine's device: programs that ask is_available() go on
alone, others stop with an error that names what they want.
"""

from holdfast.missing import module_getattr


def is_available():
    """False."""
    return False


def is_initialized():
    """False: there is no process group."""
    return False


__getattr__ = module_getattr("torch.distributed")
