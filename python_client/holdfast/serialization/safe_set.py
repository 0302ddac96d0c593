# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""What a file may name without being trusted: none of it runs code of the file's."""

import argparse
import collections
import datetime
import decimal
import fractions
import pathlib
import sys
import types
import uuid

import holdfast
from holdfast import _C

from . import names
from .rebuild import TENSOR_FUNCTIONS, StorageType
from .storages import STORAGE_NAMES, dtype_named

_PLAIN = (
    bytearray,
    bytes,
    complex,
    dict,
    float,
    frozenset,
    int,
    list,
    object,
    range,
    set,
    slice,
    str,
    tuple,
    bool,
    argparse.Namespace,
    collections.Counter,
    collections.OrderedDict,
    collections.defaultdict,
    collections.deque,
    datetime.date,
    datetime.datetime,
    datetime.time,
    datetime.timedelta,
    datetime.timezone,
    decimal.Decimal,
    fractions.Fraction,
    pathlib.PosixPath,
    pathlib.PurePosixPath,
    types.SimpleNamespace,
    uuid.UUID,
)


def _encode(text, encoding="latin1"):
    """_codecs.encode, by which old pickles write bytes."""
    if encoding not in ("latin1", "utf-8", "utf8"):
        raise ValueError(f"the codec {encoding!r}")
    return text.encode(encoding)


def _reconstructor(cls, base, state):
    """copyreg._reconstructor, of objects without a base that has a state."""
    if base is not object or state is not None:
        raise ValueError(f"an object of {cls!r} with a {base!r} inside")
    return cls.__new__(cls)


def _torch_value(name):
    if name in STORAGE_NAMES:
        return StorageType(dtype_named(STORAGE_NAMES[name]))
    if name == "Tensor":
        return holdfast.Tensor
    if name == "Size":
        return holdfast.Size
    if name == "device":
        return holdfast.device
    value = getattr(_C, name, None)
    return value if isinstance(value, _C.dtype) else None


def _numpy_value(module, name):
    if not module.startswith("numpy"):
        return None
    from . import safe_numpy

    return safe_numpy.find(module, name)


# Those whose state a file may set.
_WITH_STATE = (
    argparse.Namespace,
    collections.OrderedDict,
    types.SimpleNamespace,
)

# find() of these names, {(module, name): value}.
_BY_NAME = {
    **TENSOR_FUNCTIONS,
    ("_codecs", "encode"): _encode,
    ("copyreg", "_reconstructor"): _reconstructor,
    ("torch.serialization", "_get_layout"): lambda name: "strided",
}
for _type in _PLAIN:
    _BY_NAME[_type.__module__, _type.__qualname__] = _type


def find(module, name):
    """The value of a name that any file may use; None if it may not."""
    found = _BY_NAME.get((module, name))
    if found is not None:
        return found
    if module in ("torch", "torch.storage"):
        return _torch_value(name)
    if (module, name) in (
        ("torch.nn.parameter", "Parameter"),
        ("torch.nn", "Parameter"),
    ):
        return holdfast.nn.Parameter
    return _numpy_value(module, name)


# ---- the program's own classes


def find_own(module, name):
    """A class of the program's that a file may make an object of, without calling its
    constructor: a module, an optimizer, a scheduler, a data set. None if it is none,
    or a function of nn.functional's."""
    value = None
    if module.partition(".")[0] == "torch":
        try:
            value = names.own_value(module, name)
        except (ImportError, AttributeError):
            return None
        if _is_plain_function(value):
            return value
    elif module.partition(".")[0] == "holdfast":
        value = names.loaded_value(module, name)
    else:
        _import_neighbour(module)
        value = names.loaded_value(module, name)
    return value if _is_component(value) else None


def _components():
    from holdfast import nn, optim
    from holdfast.utils import data

    kinds = [nn.Module, optim.Optimizer, data.Dataset, data.Sampler]
    for name in ("LRScheduler", "ReduceLROnPlateau"):
        kinds.append(getattr(optim.lr_scheduler, name))
    return tuple(kinds)


def _is_component(value):
    return isinstance(value, type) and issubclass(value, _components())


def _is_plain_function(value):
    known = names.torch_name(value)
    return known is not None and known[0] == "torch.nn.functional" and callable(value)


def _import_neighbour(module):
    """Imports a module that lies beside the program, where pickle would import any:
    a script may load a model whose class is in its own model.py."""
    if module in sys.modules or not module.isidentifier():
        return
    script = getattr(sys.modules.get("__main__"), "__file__", None)
    if script is None:
        return
    if (pathlib.Path(script).resolve().parent / f"{module}.py").is_file():
        __import__(module)


def is_buildable(value):
    """May a file set the state of this object?"""
    if isinstance(value, (type, types.ModuleType, types.FunctionType)):
        return False
    kinds = (*_WITH_STATE, holdfast.Tensor)
    return isinstance(value, kinds) or _is_component(type(value))
