# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Names of PyTorch's that Holdfast does not have.

They fail by name, so that a program stops where it would silently differ.
"""

import importlib
import opcode
import sys

from holdfast import _C
from holdfast.errors import MissingAttributeError, UnsupportedError

# Methods of torch.Tensor that programs use; listed, since a general
# __getattr__ would slow down every attribute of a tensor.
METHODS = """
    asin asinh atan atan2 atanh acos acosh backward_ bitwise_left_shift
    bitwise_right_shift cauchy_ ceil_divide digamma exponential_ geometric_ i0
    is_sparse_csr lgamma log_normal_ multinomial mvlgamma numpy_ polygamma rename set_
    sparse_mask storage to_sparse untyped_storage vander
""".split()


def _stub(name):
    def missing(self, *args, **kwargs):
        raise UnsupportedError(f"holdfast has no Tensor.{name} yet.")

    missing.__name__ = missing.__qualname__ = name
    return missing


for _name in METHODS:
    if not hasattr(_C.Tensor, _name):
        setattr(_C.Tensor, _name, _stub(_name))


# The packages that ours stand in for under `holdfast run`.
_OWN = {"torch": "holdfast", "torchvision": "holdfast.vision"}
_IMPORT_FROM = opcode.opmap["IMPORT_FROM"]


def _is_import(frame):
    """Whether `frame` is in a statement `from module import name`."""
    return frame.f_lasti >= 0 and frame.f_code.co_code[frame.f_lasti] == _IMPORT_FROM


def module_getattr(module, submodules=(), names=None):
    """A __getattr__ for `module` (PyTorch's name: "torch", "torch.nn", or
    torchvision's).

    It imports `submodules` on first use, and gets each of `names` from the
    module that it maps to; anything else fails by name, `from ... import` of it with
    an ImportError that begins as PyTorch's.
    """
    package, _, rest = module.partition(".")
    own = f"{_OWN[package]}.{rest}" if rest else _OWN[package]
    names = names or {}

    def __getattr__(name):
        if name in submodules:
            return importlib.import_module(f"{own}.{name}")
        if name in names:
            value = getattr(importlib.import_module(f"{own}.{names[name]}"), name)
            setattr(sys.modules[own], name, value)
            return value
        hint = f"holdfast has no {module}.{name}; `holdfast ops` lists the ops it has."
        if _is_import(sys._getframe(1)):
            # Python would name our module, and drop the hint.
            stands_in = sys.modules.get(package) is sys.modules[_OWN[package]]
            shown = module if stands_in else own
            raise ImportError(
                f"cannot import name {name!r} from {shown!r} ({hint})", name=shown
            )
        if name.startswith("_"):
            raise AttributeError(f"module '{own}' has no attribute '{name}'")
        error = MissingAttributeError(hint)
        error.module = sys.modules[own]
        error.name = name
        raise error

    return __getattr__
