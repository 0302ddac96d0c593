# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.xpu: Intel's GPUs, which no daemon has."""

from holdfast.missing import module_getattr


def is_available():
    """False."""
    return False


def device_count():
    """0."""
    return 0


__getattr__ = module_getattr("torch.xpu")
