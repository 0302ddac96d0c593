# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Element types of the array API standard: conversion, limits, promotion."""

import functools

import holdfast
from holdfast import (  # noqa: F401
    Tensor,
    bool,
    complex64,
    complex128,
    dtype,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
)
from holdfast._device import device_of_number

__all__ = [
    "astype",
    "bool",
    "can_cast",
    "complex128",
    "complex64",
    "finfo",
    "float32",
    "float64",
    "iinfo",
    "int16",
    "int32",
    "int64",
    "int8",
    "isdtype",
    "result_type",
    "uint8",
]

_SIGNED = (int8, int16, int32, int64)
_UNSIGNED = (uint8,)
_REAL = (float32, float64)
_COMPLEX = (complex64, complex128)
KINDS = {
    "bool": (bool,),
    "signed integer": _SIGNED,
    "unsigned integer": _UNSIGNED,
    "integral": _SIGNED + _UNSIGNED,
    "real floating": _REAL,
    "complex floating": _COMPLEX,
    "numeric": _SIGNED + _UNSIGNED + _REAL + _COMPLEX,
}
COMPLEX_OF = {float32: complex64, float64: complex128}


def default_complex():
    """The complex type of the default floating point type."""
    return COMPLEX_OF.get(holdfast.get_default_dtype(), complex64)


def _of_number(common, number):
    """`common`, or the type of a higher kind where Python's number needs one."""
    if number is True or number is False:
        return common
    if isinstance(number, int):
        return int64 if common is bool else common
    if isinstance(number, float):
        known = common.is_floating_point or common.is_complex
        return common if known else holdfast.get_default_dtype()
    if isinstance(number, complex):
        if common.is_complex:
            return common
        return COMPLEX_OF.get(common) or default_complex()
    raise TypeError(
        "result_type() takes arrays, types and Python's numbers. Got "
        f"{type(number).__name__}."
    )


def result_type(*arrays_and_dtypes):
    """The type that an operation on these arrays, types and numbers has; ValueError
    for numbers alone."""
    types, numbers = [], []
    for operand in arrays_and_dtypes:
        if isinstance(operand, Tensor):
            types.append(operand.dtype)
        elif isinstance(operand, dtype):
            types.append(operand)
        else:
            numbers.append(operand)
    if not types:
        raise ValueError(
            f"result_type() needs an array or a type. Got {arrays_and_dtypes!r}."
        )
    common = functools.reduce(holdfast.promote_types, types)
    return functools.reduce(_of_number, numbers, common)


def as_type(x, to):
    """The tensor, converted where its type is another."""
    return x if x.dtype is to else holdfast._C.ops.to(x, to)


def device_for(*operands):
    """The first tensor's device."""
    for operand in operands:
        if isinstance(operand, Tensor):
            return device_of_number(operand._device_number)
    return None


def promoted(*operands):
    """Tensors of their common type, on one device, of tensors and Python's numbers."""
    common = result_type(*operands)
    device = None
    results = []
    for operand in operands:
        if isinstance(operand, Tensor):
            results.append(as_type(operand, common))
        else:
            device = device or device_for(*operands)
            results.append(holdfast.tensor(operand, dtype=common, device=device))
    return results


def astype(x, dtype, /, *, copy=True, device=None):
    """x as another type; itself where nothing changes and copy is False. TypeError for
    complex numbers as real ones: take real() or abs()."""
    if x.dtype.is_complex and not (dtype.is_complex or dtype is bool):
        raise TypeError(
            f"astype(): {x.dtype.name} cannot become {dtype.name}: take real(x), "
            "imag(x) or abs(x)."
        )
    if dtype is bool and x.dtype.is_complex:
        x = holdfast.ne(x, 0)
    return x.to(dtype, device=device, copy=copy)


def can_cast(from_, to, /):
    """Whether promotion may take one type to another."""
    source = from_.dtype if isinstance(from_, Tensor) else from_
    same_kind = any(
        source in kind and to in kind
        for kind in (KINDS["bool"], KINDS["integral"], _REAL + _COMPLEX)
    )
    return same_kind and holdfast.promote_types(source, to) is to


def finfo(type, /):
    """Limits of a floating point type; of a complex one's parts."""
    return holdfast.finfo(type.dtype if isinstance(type, Tensor) else type)


def iinfo(type, /):
    """Limits of an integer type."""
    return holdfast.iinfo(type.dtype if isinstance(type, Tensor) else type)


def isdtype(dtype, kind):
    """Whether the type is `kind` or of that kind; a tuple names several."""
    if isinstance(kind, tuple):
        return any(isdtype(dtype, one) for one in kind)
    if not isinstance(kind, str):
        return dtype is kind
    if kind not in KINDS:
        raise ValueError(f"isdtype(): kind must be one of {list(KINDS)}. Got {kind!r}.")
    if kind == "real floating":
        return dtype.is_floating_point
    return dtype in KINDS[kind] or kind == "numeric" and dtype.is_floating_point
