# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Names of PyTorch's that Holdfast does not have.

They fail by name, so that a program stops where it would silently differ.
"""

import importlib
import opcode
import sys

from holdfast import _C
from holdfast.errors import MissingAttributeError

TYPE_CHECKING = False  # to checkers it is typing's, whose import takes its time
if TYPE_CHECKING:
    from typing import Any, Callable

# What torch.Tensor has and this package's has not; listed, since a general
# __getattr__ would slow down every attribute of a tensor.
TENSOR_NAMES = """
    ccol_indices chalf col_indices const_data_ptr crow_indices dense_dim dequantize
    dim_order eig grad_dtype hash_tensor index indices int_repr ipu is_coalesced
    is_distributed lstsq module_load mtia name output_nr q_per_channel_axis
    q_per_channel_scales q_per_channel_zero_points q_scale q_zero_point qscheme
    record_stream reinforce resize_as resize_as_sparse_ row_indices slice_inverse smm
    solve sparse_dim sparse_resize_ sparse_resize_and_clear_ sspaddmm storage_type
    to_mkldnn to_padded_tensor to_sparse_bsc to_sparse_bsr to_sparse_coo to_sparse_csc
    to_sparse_csr unsafe_split_with_sizes values volatile xpu
""".split()


def error_of(module, name):
    """The error about `name`, which `module` (PyTorch's: "torch.nn") has not: its text,
    made when it is shown, ends with what to do."""
    error = MissingAttributeError(f"holdfast has no {module}.{name}.")
    error.missing = f"{module}.{name}"
    return error


class Missing:
    """An attribute of a class that is not there: hasattr() says so."""

    def __init__(self, owner, name):
        self._owner, self._name = owner, name

    def __get__(self, value, kind=None):
        raise error_of(self._owner, self._name)


for _name in TENSOR_NAMES:
    if not hasattr(_C.Tensor, _name):
        setattr(_C.Tensor, _name, Missing("torch.Tensor", _name))


# The packages that ours stand in for under `holdfast run`.
_OWN = {"torch": "holdfast", "torchvision": "holdfast.vision"}
_IMPORT_FROM = opcode.opmap["IMPORT_FROM"]


def _is_import(frame):
    """Whether `frame` is in a statement `from module import name`."""
    return frame.f_lasti >= 0 and frame.f_code.co_code[frame.f_lasti] == _IMPORT_FROM


def module_getattr(module, submodules=(), names=None) -> "Callable[[str], Any]":
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
        error = error_of(module, name)
        error.module = sys.modules[own]
        error.name = name
        if _is_import(sys._getframe(1)):
            # Python would name our module, and drop the advice.
            stands_in = sys.modules.get(package) is sys.modules[_OWN[package]]
            shown = module if stands_in else own
            raise ImportError(
                f"cannot import name {name!r} from {shown!r} ({error})", name=shown
            )
        if name.startswith("__"):
            raise AttributeError(f"module '{own}' has no attribute '{name}'")
        raise error

    return __getattr__
