# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.cuda.amp: torch.amp for a GPU."""

from holdfast import amp
from holdfast.amp import (  # noqa: F401
    GradScaler as GradScaler,
    autocast_mode as autocast_mode,
    custom_bwd as custom_bwd,
    custom_fwd as custom_fwd,
    grad_scaler as grad_scaler,
)
from holdfast.missing import module_getattr


class autocast(amp.autocast):
    """amp.autocast("cuda", ...)."""

    def __init__(self, enabled=True, dtype=None, cache_enabled=True):
        super().__init__("cuda", dtype, enabled, cache_enabled)


__getattr__ = module_getattr("torch.cuda.amp")
