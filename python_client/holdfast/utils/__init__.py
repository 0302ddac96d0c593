# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Support for training programs: `utils.data`, `utils.checkpoint`, hook handles."""

from holdfast.missing import module_getattr

from . import data, hooks

__all__ = ["checkpoint", "data", "hooks"]

__getattr__ = module_getattr(
    "torch.utils",
    submodules=("checkpoint", "collect_env", "model_zoo", "tensorboard"),
)
