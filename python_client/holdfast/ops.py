# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.ops: operators that compiled extensions bring. Holdfast loads none: they
are made for PyTorch's memory. Packages such as torchvision go on without theirs."""

from holdfast.errors import MissingAttributeError


def load_library(path):
    """Refused with OSError, which packages take for "it was not compiled"."""
    raise OSError(f"holdfast cannot load {path}: its operators are PyTorch's")


def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(f"module 'holdfast.ops' has no attribute '{name}'")
    raise MissingAttributeError(
        f"holdfast has no torch.ops.{name}: it loads no compiled operators"
    )
