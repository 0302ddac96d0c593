# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.hub's functions by their older names."""

from holdfast.hub import load_state_dict_from_url as load_url  # noqa: F401
from holdfast.hub import tqdm as tqdm  # noqa: F401
from holdfast.missing import module_getattr

__getattr__ = module_getattr("torch.utils.model_zoo")
