# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.accelerator: the device that is not the CPU, if the daemon has one."""

from holdfast import cuda
from holdfast._device import device
from holdfast.missing import module_getattr


def is_available():
    """Whether the daemon computes on one; connects if need be."""
    return cuda.is_available()


def device_count():
    """How many the session sees."""
    return cuda.device_count()


def current_accelerator(check_available=False):
    """Its device, or None."""
    return device("cuda") if cuda.is_available() else None


def synchronize(device=None):
    """Waits until every op submitted so far is done."""
    cuda.synchronize(device)


__getattr__ = module_getattr("torch.accelerator")
