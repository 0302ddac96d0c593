# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Python values as JSON with tensors by number: what data.json holds.

null, true, false, integers, finite floats and strings stand for themselves.
Everything else is an object with one tag:

    {"list": [...]} {"tuple": [...]} {"set": [...]} {"frozenset": [...]}
    {"dict": [[key, value], ...]}    {"OrderedDict": ...}
    {"bytes": base64}   {"float": "nan"|"inf"|"-inf"}   {"complex": [re, im]}
    {"Size": [...]}     {"dtype": name}   {"device": name}
    {"tensor": n}       {"Parameter": n}: entry n of the first mention, which has
                        "dtype", "shape" and "requires_grad" as well
"""

import base64
import binascii
import math
from collections import OrderedDict

import holdfast
from holdfast.errors import UnsupportedError

from .serialization import FormatError

_MAX_DEPTH = 100


class Encoder:
    """Turns values into JSON; collects their tensors, each once."""

    def __init__(self):
        self._tensors = []
        self._numbers = {}
        self._open = []

    def encode(self, value, place="obj"):
        """The JSON of `value`; TypeError names the place of what has none."""
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            return str(value)
        if isinstance(value, holdfast.Tensor):
            return self._tensor(value)
        if isinstance(value, int):
            return int(value)
        if isinstance(value, float):
            value = float(value)
            return value if math.isfinite(value) else {"float": repr(value)}
        if isinstance(value, complex):
            return {"complex": [self.encode(value.real), self.encode(value.imag)]}
        if isinstance(value, (bytes, bytearray)):
            return {"bytes": base64.b64encode(value).decode()}
        if isinstance(value, holdfast.dtype):
            return {"dtype": _dtype_name(value)}
        if isinstance(value, holdfast.device):
            return {"device": str(value)}
        if any(value is outer for outer in self._open):
            raise ValueError(f"[save] a container must not hold itself. Got {place}.")
        if len(self._open) >= _MAX_DEPTH:
            raise ValueError(
                f"[save] at most {_MAX_DEPTH} levels of nesting. Got {place}."
            )
        self._open.append(value)
        encoded = self._container(value, place)
        self._open.pop()
        return encoded

    def _container(self, value, place):
        if isinstance(value, dict):
            tag = "OrderedDict" if isinstance(value, OrderedDict) else "dict"
            return {
                tag: [
                    [
                        self.encode(k, f"a key of {place}"),
                        self.encode(v, f"{place}[{k!r}]"),
                    ]
                    for k, v in value.items()
                ]
            }
        if isinstance(value, (list, tuple)):
            if isinstance(value, holdfast.Size):
                tag = "Size"
            elif type(value) in (list, tuple):
                tag = type(value).__name__
            else:
                raise _refused(value, place)
            return {tag: [self.encode(v, f"{place}[{i}]") for i, v in enumerate(value)]}
        if isinstance(value, (set, frozenset)):
            items = [self.encode(v, f"an element of {place}") for v in value]
            return {type(value).__name__: items}
        if hasattr(value, "dtype") and hasattr(value, "item") and value.ndim == 0:
            return self.encode(value.item(), place)  # NumPy's scalars
        raise _refused(value, place)

    def _tensor(self, tensor):
        tag = "Parameter" if isinstance(tensor, holdfast.nn.Parameter) else "tensor"
        number = self._numbers.get(id(tensor))
        if number is not None:
            return {tag: number}
        number = len(self._tensors)
        self._tensors.append(tensor)
        self._numbers[id(tensor)] = number
        return {
            tag: number,
            "dtype": _dtype_name(tensor.dtype),
            "shape": [int(size) for size in tensor.shape],
            "requires_grad": bool(tensor.requires_grad),
        }

    def arrays(self):
        """The tensors' elements as contiguous NumPy arrays, in order."""
        import numpy

        # Views of the tensors' own memory where it is shared; NumPy has no
        # bfloat16, whose values float32 holds exactly.
        arrays = []
        for tensor in self._tensors:
            tensor = tensor.detach()
            if _dtype_name(tensor.dtype) == "bfloat16":
                tensor = tensor.float()
            arrays.append(numpy.ascontiguousarray(tensor.numpy()))
        return arrays


def _dtype_name(dtype):
    return str(dtype).rpartition(".")[2]


def _refused(value, place):
    kind = f"{type(value).__module__}.{type(value).__qualname__}"
    hint = ""
    if isinstance(value, holdfast.nn.Module):
        hint = " Save its state_dict() instead."
    elif hasattr(value, "__array__"):
        hint = " Save holdfast.from_numpy() of it instead."
    return TypeError(
        "[save] only tensors, numbers, strings, bytes, None and dicts, lists, tuples "
        f"and sets of them can be saved. Got {kind} at {place}.{hint}"
    )


class Decoder:
    """Turns Encoder's JSON back into values."""

    def __init__(self, read_bytes, what, map_location):
        self._read_bytes = read_bytes
        self._what = what
        self._location = map_location
        self._tensors = {}

    def decode(self, node, depth=0):
        """The value of a JSON node; FormatError if it is not Encoder's."""
        if node is None or isinstance(node, (bool, int, float, str)):
            return node
        # Dicts and lists take two levels of JSON each.
        if depth > _MAX_DEPTH or not isinstance(node, dict) or not node:
            raise self._damaged(f"unexpected {str(node)[:60]!r}")
        tag = next(iter(node))
        try:
            return self._tagged(tag, node, depth + 1)
        except FormatError:
            raise
        except (TypeError, ValueError, KeyError, binascii.Error) as error:
            raise self._damaged(f"{tag}: {error}") from None

    def _tagged(self, tag, node, depth):
        body = node[tag]
        if tag in ("tensor", "Parameter"):
            return self._tensor(tag, node)
        if tag == "float":
            return {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}[body]
        if tag == "bytes":
            return base64.b64decode(body, validate=True)
        if tag == "dtype":
            return self._dtype(body)
        if tag == "device":
            return holdfast.device(body)
        kinds = {"dict": dict, "OrderedDict": OrderedDict}
        if tag in kinds:
            return kinds[tag](
                (self.decode(k, depth), self.decode(v, depth)) for k, v in body
            )
        kinds = {
            "list": list,
            "tuple": tuple,
            "set": set,
            "frozenset": frozenset,
            "Size": holdfast.Size,
        }
        if tag in kinds:
            if not isinstance(body, list):
                raise TypeError("not a list")
            return kinds[tag]([self.decode(v, depth) for v in body])
        if tag == "complex":
            real, imag = (self.decode(part, depth) for part in body)
            return complex(real, imag)
        raise self._damaged(f"unknown tag {tag[:40]!r}; a newer holdfast may read it")

    def _tensor(self, tag, node):
        number = node[tag]
        if not isinstance(number, int):
            raise TypeError("not a number")
        if number in self._tensors:
            return self._tensors[number]
        import numpy

        dtype = self._dtype(node["dtype"])
        shape = node["shape"]
        if not all(type(size) is int and size >= 0 for size in shape):
            raise ValueError(f"shape {shape}")
        data = self._read_bytes(number)
        # NumPy has no bfloat16; float32 holds its values exactly.
        name = {"bfloat16": "float32"}.get(node["dtype"], node["dtype"])
        element = numpy.dtype(name)
        expected = math.prod(shape) * element.itemsize
        if len(data) != expected:
            raise ValueError(f"{len(data)} bytes for {expected}")
        array = numpy.frombuffer(data, element).reshape(shape)
        tensor = holdfast.tensor(array, dtype=dtype)
        if self._location is not None:
            tensor = tensor.to(self._target(tensor))
        if tag == "Parameter":
            tensor = holdfast.nn.Parameter(tensor, bool(node["requires_grad"]))
        elif node["requires_grad"]:
            tensor.requires_grad_()
        self._tensors[number] = tensor
        return tensor

    def _target(self, tensor):
        location = self._location
        if callable(location):
            raise UnsupportedError(
                "holdfast has no load(map_location=function); give a device."
            )
        if isinstance(location, dict):
            location = location.get("cpu", tensor.device)
        return location

    def _dtype(self, name):
        dtype = getattr(holdfast, name, None)
        if not isinstance(dtype, holdfast.dtype):
            raise ValueError(f"dtype {name!r}")
        return dtype

    def _damaged(self, detail):
        return FormatError(f"[load] {self._what} is damaged: {detail}.")
