# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.ops: PyTorch's own operators (`aten`), and those that compiled extensions
bring. Holdfast loads none of the latter: they are made for PyTorch's memory. Packages
such as torchvision go on without theirs."""

import importlib

from holdfast.errors import MissingAttributeError


def load_library(path):
    """Refused with OSError, which packages take for "it was not compiled"."""
    raise OSError(f"holdfast cannot load {path}: its operators are PyTorch's")


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(f"module 'holdfast.ops' has no attribute '{name}'")
    if name == "aten":
        return importlib.import_module("holdfast.aten")
    raise MissingAttributeError(
        f"holdfast has no torch.ops.{name}: it loads no compiled operators"
    )
