# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.cpu: what programs ask of the device that is not an accelerator."""

from holdfast import cuda
from holdfast.missing import module_getattr


def is_available():
    """True."""
    return True


def device_count():
    """1."""
    return 1


def synchronize(device=None):
    """Waits until every op submitted so far is done."""
    cuda.synchronize()


__getattr__ = module_getattr("torch.cpu")
