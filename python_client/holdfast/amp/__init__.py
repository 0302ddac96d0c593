# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.amp: automatic mixed precision.

For a GPU that the daemon does not have it is off, with PyTorch's warning.
"""

from holdfast.amp.autocast_mode import autocast, custom_bwd, custom_fwd
from holdfast.amp.grad_scaler import GradScaler
from holdfast.missing import module_getattr

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd"]

__getattr__ = module_getattr("torch.amp")
