# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.signal."""

from holdfast.missing import module_getattr
from holdfast.signal import windows as windows  # noqa: F401

__getattr__ = module_getattr("torch.signal")
