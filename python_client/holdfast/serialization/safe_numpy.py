# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""NumPy's arrays and scalars in a file, checked before NumPy sees them."""

import math

import numpy

_KINDS = "biufcSU?"


def _reconstruct(kind, shape, code):
    """An empty array, whose state follows."""
    if kind is not numpy.ndarray:
        raise ValueError(f"an array of type {kind!r}")
    return numpy.ndarray((0,), "b")


def _dtype(code, align=False, copy=True):
    if not isinstance(code, str) or len(code) > 8 or code[:1] not in _KINDS:
        raise ValueError(f"the NumPy type {code!r}")
    return numpy.dtype(code, False, True)


def _check_elements(dtype):
    if not isinstance(dtype, numpy.dtype) or dtype.kind not in _KINDS:
        raise ValueError(f"NumPy elements of {dtype!r}")


def _scalar(dtype, data):
    _check_elements(dtype)
    if not isinstance(data, bytes) or len(data) != dtype.itemsize:
        raise ValueError(f"a NumPy scalar of {dtype}")
    return numpy.frombuffer(data, dtype)[0]


def set_state(value, state):
    """__setstate__ of an array or a type that this module made, once it is checked."""
    if isinstance(value, numpy.dtype):
        _version, order, *rest = state
        sizes = (-1, value.itemsize), (-1, value.alignment)
        if order not in ("<", ">", "|") or rest[:3] != [None] * 3:
            raise ValueError(f"a NumPy type with the state {state!r}")
        if rest[3] not in sizes[0] or rest[4] not in sizes[1]:
            raise ValueError(f"a NumPy type with the state {state!r}")
        value.__setstate__((3, order, None, None, None, rest[3], rest[4], value.flags))
        return
    shape, dtype, fortran, data = state[-4:]
    _check_elements(dtype)
    if not all(type(size) is int and size >= 0 for size in shape):
        raise ValueError(f"an array of shape {shape!r}")
    if not isinstance(data, bytes) or math.prod(shape) * dtype.itemsize != len(data):
        raise ValueError(f"an array of shape {shape!r} with other elements")
    value.__setstate__((1, tuple(shape), dtype, bool(fortran), data))


_FOUND = {
    "dtype": _dtype,
    "ndarray": numpy.ndarray,
    "_reconstruct": _reconstruct,
    "scalar": _scalar,
}


def find(module, name):
    if module in ("numpy", "numpy.core.multiarray", "numpy._core.multiarray"):
        return _FOUND.get(name)
    return None
