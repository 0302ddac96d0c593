# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.ao: the newer address of torch.quantization."""

from holdfast.missing import module_getattr

__getattr__ = module_getattr("torch.ao", submodules=("quantization",))
