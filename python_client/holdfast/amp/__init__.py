# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.amp: automatic mixed precision.

For a GPU that the daemon does not have it is off, with PyTorch's warning.
"""

from holdfast.amp.autocast_mode import autocast, custom_bwd, custom_fwd
from holdfast.amp.grad_scaler import GradScaler
from holdfast.missing import module_getattr

__all__ = [
    "GradScaler",
    "autocast",
    "custom_bwd",
    "custom_fwd",
    "is_autocast_available",
]


def is_autocast_available(device_type):
    """Whether autocast() knows the type of device: "cpu", and "cuda" whether or not the
    daemon has a GPU. TypeError unless it is a str."""
    if not isinstance(device_type, str):
        raise TypeError(f"device_type must be a str, not {type(device_type).__name__}")
    return device_type in ("cpu", "cuda")


__getattr__ = module_getattr("torch.amp")
