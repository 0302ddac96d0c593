# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch._tensor: where PyTorch defines Tensor."""

from holdfast import _C
from holdfast.missing import module_getattr

Tensor = _C.Tensor
__getattr__ = module_getattr("torch._tensor")
