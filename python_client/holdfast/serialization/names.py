# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The names of classes and functions in PyTorch's files, both ways."""

import importlib
import sys

import holdfast
from holdfast import _C

# Packages whose names PyTorch has in a package of the same name, in the order in
# which they are looked through.
_PACKAGES = (
    "nn",
    "optim",
    "optim.lr_scheduler",
    "utils.data",
    "distributions",
    "nn.functional",
    "",
)

# Classes that the package has and does not show: where PyTorch has them, and who here.
_HIDDEN = {
    "NonDynamicallyQuantizableLinear": ("torch.nn.modules.linear", "nn.attention"),
}


def _package(name):
    return importlib.import_module("holdfast." + name if name else "holdfast")


def torch_name(value):
    """(module, name) that stands for one of ours in a file; None if it has none."""
    module = getattr(value, "__module__", None) or ""
    if value is holdfast.Tensor:
        return "torch", "Tensor"
    if isinstance(value, _C.dtype):
        return "torch", value.name
    builtin = not isinstance(value, type) and module.partition(".")[0] != "holdfast"
    if builtin and getattr(_C.ops, getattr(value, "__name__", ""), None) is not value:
        return None
    if not builtin and module.partition(".")[0] != "holdfast":
        return None
    name = getattr(value, "__name__", "")
    for package in _PACKAGES:
        if vars(_package(package)).get(name) is value or (
            package == "" and getattr(holdfast, name, None) is value
        ):
            return ("torch." + package if package else "torch"), name
    if name in _HIDDEN and getattr(_package(_HIDDEN[name][1]), name) is value:
        return _HIDDEN[name][0], name
    return None


def own_value(module, name):
    """What PyTorch's (module, name) is here; AttributeError if there is none."""
    if name in _HIDDEN and module == _HIDDEN[name][0]:
        return getattr(_package(_HIDDEN[name][1]), name)
    if module == "torch.nn.parameter" or module.startswith("torch.nn.modules"):
        return _attribute(_package("nn"), name)
    if module.startswith("torch.optim."):
        for package in ("optim", "optim.lr_scheduler"):
            if hasattr(_package(package), name):
                return getattr(_package(package), name)
    if module.startswith("torch._C") or module == "torch._VF":
        for package in ("nn.functional", "", "fft", "linalg", "special"):
            if hasattr(_package(package), name):
                return getattr(_package(package), name)
    own = "holdfast" + module[len("torch") :]
    try:
        return _attribute(importlib.import_module(own), name)
    except ImportError:
        # torch.distributions.normal.Normal: where the package is, by its name.
        parent, _, _ = own.rpartition(".")
        if parent and parent != own:
            return _attribute(importlib.import_module(parent), name)
        raise


def loaded_value(module, name):
    """What the program itself has under that name; None if it has not."""
    found = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    return found


def _attribute(found, name):
    for part in name.split("."):
        found = getattr(found, part)
    return found
