# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Another library of the process that knows GPUs, as far as DLPack goes: for a device
that is plain memory (server/fake_device). Reads and writes what a capsule shows, and
makes capsules."""

import ctypes

import numpy as np

_api = ctypes.pythonapi
_api.PyCapsule_New.restype = ctypes.py_object
_api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
_api.PyCapsule_GetPointer.restype = ctypes.c_void_p
_api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
_api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
_api.PyCapsule_GetName.restype = ctypes.c_char_p
_api.PyCapsule_GetName.argtypes = [ctypes.py_object]

CODES = {"i": 0, "u": 1, "f": 2, "V": 4, "c": 5, "b": 6}


class Array(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("ordinal", ctypes.c_int32),
        ("rank", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Managed(ctypes.Structure):
    _fields_ = [
        ("array", Array),
        ("context", ctypes.c_void_p),
        ("deleter", DELETER),
    ]


class Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", DELETER),
        ("flags", ctypes.c_uint64),
        ("array", Array),
    ]


class View:
    """What a consumer has of a capsule: `.array`, NumPy's view of the memory."""

    def __init__(self, capsule):
        name = _api.PyCapsule_GetName(capsule)
        kind = {b"dltensor": Managed, b"dltensor_versioned": Versioned}[name]
        self._address = _api.PyCapsule_GetPointer(capsule, name)
        self.message = kind.from_address(self._address)
        self._name = b"used_" + name  # a capsule does not copy its name
        _api.PyCapsule_SetName(capsule, self._name)
        self._capsule = capsule
        told = self.message.array
        self.device = told.device_type, told.ordinal
        letter = {v: k for k, v in CODES.items()}[told.code]
        size = told.bits // 8
        dtype = np.dtype({"b": "?", "V": "int16"}.get(letter, f"{letter}{size}"))
        shape = tuple(told.shape[i] for i in range(told.rank))
        self.strides = tuple(told.strides[i] for i in range(told.rank))
        self.data = told.data
        if 0 in shape:
            self.array = np.empty(shape, dtype)
            return
        steps = [(n - 1) * s for n, s in zip(shape, self.strides)]
        memory = (ctypes.c_char * ((sum(steps) + 1) * size)).from_address(told.data)
        self.array = np.ndarray(
            shape, dtype, memory, 0, [size * step for step in self.strides]
        )

    def close(self):
        """The array must not be used any more."""
        self.array = None
        self.message.deleter(self._address)


class Producer:
    """An object of the protocol, over a NumPy array said to be on a GPU."""

    def __init__(self, array, ordinal=0, code=None):
        self.source = array
        self.closed = False
        self.stream = None
        message = self.message = Managed()
        told = message.array
        told.data = array.ctypes.data
        told.device_type, told.ordinal = 2, ordinal
        told.rank = array.ndim
        told.code = CODES[array.dtype.kind] if code is None else code
        told.bits, told.lanes = 8 * array.itemsize, 1
        self._shape = (ctypes.c_int64 * array.ndim)(*array.shape)
        self._strides = (ctypes.c_int64 * array.ndim)(
            *(step // array.itemsize for step in array.strides)
        )
        told.shape, told.strides = self._shape, self._strides
        message.deleter = DELETER(self._close)

    def _close(self, _):
        self.closed = True

    def capsule(self):
        return _api.PyCapsule_New(ctypes.addressof(self.message), b"dltensor", None)

    def __dlpack__(self, stream=None):
        self.stream = stream
        return self.capsule()

    def __dlpack_device__(self):
        return 2, self.message.array.ordinal
