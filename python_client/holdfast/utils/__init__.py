# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Support for training: `utils.data`, `utils.checkpoint`, DLPack, hook handles."""

from holdfast.missing import module_getattr

from . import data, hooks

__all__ = ["checkpoint", "data", "dlpack", "hooks"]

__getattr__ = module_getattr(
    "torch.utils",
    submodules=(
        "benchmark",
        "checkpoint",
        "collect_env",
        "dlpack",
        "model_zoo",
        "tensorboard",
    ),
)
