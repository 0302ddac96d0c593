# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""_C._client_api: the table of C functions that other extension modules call
(torch_client/client_api.h), called here through ctypes as they would."""

import ctypes

import holdfast
import numpy
import pytest
from holdfast import _C

INTS, FLOAT, OUT_OF_RANGE, INVALID = 5, 3, 11, 3


class Error(ctypes.Structure):
    _fields_ = [("code", ctypes.c_int), ("text", ctypes.c_char * 2048)]


class Attr(ctypes.Structure):
    _fields_ = [
        ("slot", ctypes.c_int32),
        ("kind", ctypes.c_int32),
        ("integer", ctypes.c_int64),
        ("real", ctypes.c_double),
        ("address", ctypes.c_void_p),
    ]


class Spec(ctypes.Structure):
    _fields_ = [
        ("dtype", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("offset", ctypes.c_int64),
        ("elements", ctypes.c_int64),
    ]


P, I, E = ctypes.c_void_p, ctypes.c_int32, ctypes.POINTER(Error)
S = ctypes.c_char_p
FUNCTIONS = {
    "session": (P, E),
    "synchronize": (ctypes.c_int, P, E),
    "set_seed": (ctypes.c_int, P, ctypes.c_uint64, E),
    "find_op": (I, S),
    "outputs_of": (I, I),
    "tensor_slot": (I, I, S),
    "attr_slot": (I, I, S),
    "apply": (ctypes.c_int, P, I, ctypes.POINTER(Attr), I, P, I, I, P, E),
    "put": (P, P, I, I, P, P, E),
    "read": (ctypes.c_int, P, P, ctypes.c_size_t, E),
    "spec": (ctypes.c_int, P, ctypes.POINTER(Spec), E),
    "retain": (P, P),
    "release": (None, P),
    "to_python": (ctypes.py_object, P),
    "from_python": (P, ctypes.py_object),
    "memory_of": (ctypes.c_size_t, P),
}


class Table(ctypes.Structure):
    _fields_ = [
        ("version", ctypes.c_int32),
        *((name, ctypes.CFUNCTYPE(*types)) for name, types in FUNCTIONS.items()),
    ]


@pytest.fixture
def api():
    get = ctypes.pythonapi.PyCapsule_GetPointer
    get.restype, get.argtypes = P, [ctypes.py_object, S]
    address = get(_C._client_api, b"holdfast._C._client_api")
    return ctypes.cast(address, ctypes.POINTER(Table)).contents


def with_gil(function):
    """CFUNCTYPE releases the GIL; to_python and from_python need it."""
    types = FUNCTIONS[function[0]]
    return ctypes.PYFUNCTYPE(*types)(ctypes.cast(function[1], ctypes.c_void_p).value)


def handle(api, tensor):
    return with_gil(("from_python", api.from_python))(tensor)


def python(api, tensor):
    return with_gil(("to_python", api.to_python))(tensor)


def apply(api, name, inputs, attrs=(), inplace=False):
    op = api.find_op(name)
    error = Error()
    outputs = (P * api.outputs_of(op))()
    code = api.apply(
        api.session(ctypes.byref(error)),
        op,
        (Attr * len(attrs))(*attrs),
        len(attrs),
        (P * len(inputs))(*inputs),
        len(inputs),
        inplace,
        outputs,
        ctypes.byref(error),
    )
    return code, error.text.decode(), list(outputs)


def test_an_op_by_its_slots(api):
    assert api.version == 1
    op = api.find_op(b"add")
    assert api.tensor_slot(op, b"other") == 1 and api.tensor_slot(op, b"x") == -1
    a = handle(api, holdfast.tensor([1.0, 2.0]))
    two = Attr(slot=api.attr_slot(op, b"other"), kind=FLOAT, real=2.0)
    code, text, (result,) = apply(api, b"add", [a, None], [two])
    assert (code, text) == (0, "")
    assert python(api, result).tolist() == [3.0, 4.0]
    api.release(a)
    api.release(result)


def test_lists_and_in_place(api):
    x = holdfast.zeros(2, 3)
    a, one = handle(api, x), handle(api, holdfast.ones(3))
    sizes = (ctypes.c_int64 * 2)(2, 3)
    size = Attr(
        slot=api.attr_slot(api.find_op(b"expand"), b"size"),
        kind=INTS,
        integer=2,
        address=ctypes.addressof(sizes),
    )
    code, _, (wide,) = apply(api, b"expand", [one], [size])
    assert code == 0 and api.memory_of(wide) == api.memory_of(one)
    code, _, (same,) = apply(api, b"add", [a, wide], inplace=True)
    assert code == 0 and x.tolist() == [[1.0] * 3] * 2
    for tensor in (a, one, wide, same):
        api.release(tensor)


def test_elements_go_and_come(api):
    error = Error()
    values = numpy.arange(6, dtype=numpy.float64).reshape(2, 3)
    shape = (ctypes.c_int64 * 2)(2, 3)
    session = api.session(ctypes.byref(error))
    put = api.put(session, 10, 2, shape, values.ctypes.data, ctypes.byref(error))
    spec = Spec()
    assert api.spec(put, ctypes.byref(spec), ctypes.byref(error)) == 0
    assert (spec.dtype, spec.rank, spec.elements) == (10, 2, 6)
    assert spec.shape[:2] == [2, 3] and spec.strides[:2] == [3, 1]
    back = numpy.empty_like(values)
    assert api.read(put, back.ctypes.data, back.nbytes, ctypes.byref(error)) == 0
    assert (back == values).all()
    api.release(put)


def test_errors_are_codes_and_texts(api):
    a = handle(api, holdfast.ones(2))
    b = handle(api, holdfast.ones(3))
    code, text, _ = apply(api, b"add", [a, b])
    assert code == INVALID and "f32[2]" in text and "f32[3]" in text
    table = handle(api, holdfast.ones(2, 2))
    row = handle(api, holdfast.tensor([7]))
    op = api.find_op(b"index_select")
    dim = Attr(slot=api.attr_slot(op, b"dim"), kind=2, integer=0)
    code, _, (late,) = apply(api, b"index_select", [table, row], [dim])
    assert code == 0
    error = Error()
    to = (ctypes.c_float * 2)()
    assert api.read(late, to, 8, ctypes.byref(error)) == OUT_OF_RANGE
    assert b"7" in error.text
    with pytest.raises(TypeError, match="must be a holdfast.Tensor"):
        handle(api, "no tensor")
    for tensor in (a, b, table, row, late):
        api.release(tensor)


def test_nothing_is_recorded(api):
    x = holdfast.ones(2, requires_grad=True)
    a = handle(api, x)
    code, _, (result,) = apply(api, b"exp", [a])
    assert code == 0 and not python(api, result).requires_grad
    api.release(a)
    api.release(result)
