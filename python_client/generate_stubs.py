# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Writes the package's type stubs from the op table and the live package.

    ./dev python python_client/generate_stubs.py [FOLDER]

Ops get precise types from the table; functions composed in Python are listed
with their parameters. The build runs this; the files are not in git, so that
a new op stays one row of the table.
"""

import inspect
import json
import re
import sys
import types
from pathlib import Path

import holdfast
from holdfast import _C
from holdfast._ops import TABLE
from holdfast._registry import FUNCTIONS

PACKAGE = Path(holdfast.__file__).parent
HEADER = """# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

# Written by the build (python_client/generate_stubs.py).
"""
TYPES = {
    "Tensor": "Tensor",
    "Operand": "Tensor | Number",
    "int": "_int",
    "float": "_float",
    "bool": "_bool",
    "Scalar": "Number",
    "str": "str",
    "dtype": "_dtype",
}
PARAMETER = re.compile(
    r"(?P<type>\w+)(?P<list>\[\d*\])?(?P<none>\?)?!? (?P<name>\w+)(=(?P<default>.*))?"
)
PROPERTY_TYPES = {
    "T": "Tensor",
    "data": "Tensor",
    "device": "Any",
    "dtype": "_dtype",
    "grad": "Tensor | None",
    "grad_fn": "Any",
    "is_cpu": "_bool",
    "is_cuda": "_bool",
    "is_leaf": "_bool",
    "itemsize": "_int",
    "mT": "Tensor",
    "nbytes": "_int",
    "ndim": "_int",
    "requires_grad": "_bool",
    "retains_grad": "_bool",
    "shape": "Size",
}

# Of C's types: attributes that are neither methods nor Python's properties.
GETSET = type(_C.Tensor.__dict__["shape"])
# Plain values in the class.
FLAGS = [name for name, v in vars(_C.Tensor).items() if isinstance(v, bool)]

# What functions composed in Python return, where that is clear.
RESULTS = {
    "connect": "Session",
    "current_session": "Session",
    "is_tensor": "_bool",
    "numel": "_int",
}
# Ops that take PyTorch's factor of the second operand.
WITH_ALPHA = ("add", "add_", "sub", "sub_", "subtract", "subtract_", "rsub")


# What CPython's own wrappers of the type's slots return, where no tensor.
SLOT_TYPES = {
    "__bool__": "_bool",
    "__float__": "_float",
    "__index__": "_int",
    "__int__": "_int",
    "__len__": "_int",
}


def parameters(signature):
    """Parsed parameters of a row: (name, type, default, keyword only, varargs)."""
    inside = signature[1 : signature.index(") -> ")]
    parsed, keyword_only = [], False
    for text in re.split(r", (?![^(]*\))", inside):
        if text == "*":
            keyword_only = True
            continue
        match = PARAMETER.fullmatch(text.replace("!", ""))
        kind = TYPES[match["type"]]
        if match["list"]:
            item = kind
            kind = f"Sequence[{item}]"
            if item == "_int":
                kind = "_int | Sequence[_int]"
        if match["none"]:
            kind += " | None"
        parsed.append([match["name"], kind, match["default"], keyword_only, False])
    positional = [p for p in parsed if not p[3]]
    last = positional[-1] if positional else None
    if last and last[1] == "_int | Sequence[_int]" and last[2] is None:
        last[4] = True
    return parsed


def definition(row, name, method):
    parsed = parameters(row["signature"])
    parts = []
    if method:
        parsed, parts = parsed[1:], ["self"]
    starred = False
    parsed += more_parameters(row, name)
    for param, kind, default, keyword_only, varargs in parsed:
        if varargs:
            parts.append(f"*{param}: {kind}")
            starred = True
            continue
        if keyword_only and not starred:
            parts.append("*")
            starred = True
        parts.append(f"{param}: {kind}" + (f" = {default}" if default else ""))
    outputs = row["signature"].split(") -> ")[1]
    count = outputs.count("Tensor")
    result = "Tensor" if count == 1 else "tuple[" + ", ".join(["Tensor"] * count) + "]"
    head = f"def {name}({', '.join(parts)}) -> {result}:"
    owner = _C.Tensor if method else holdfast
    text = getattr(owner, name).__doc__ or row["doc"]
    return with_text(head, text, " " * (8 if method else 4))


def with_text(head, text, indent):
    """A definition with its docstring, which editors show: they do not look into the
    extension, nor behind a stub."""
    if not text:
        return f"{head} ..."
    lines = [json.dumps(line)[1:-1] for line in inspect.cleandoc(text).split("\n")]
    body = "\n".join(f"{indent}{line}".rstrip() for line in lines).lstrip()
    return f'{head}\n{indent}"""{body}"""\n{indent}...'


def more_parameters(row, name):
    """What the Python overload of an op takes beside the table's parameters."""
    more = []
    if name in WITH_ALPHA:
        more.append(["alpha", "Number", "1", True, False])
    if "random" in row["flags"]:
        more.append(["generator", "Any", "None", True, False])
    if "Tensor" not in row["signature"].split(") -> ")[0]:
        for param in ("device", "layout"):
            more.append([param, "Any", "None", True, False])
        for param in ("requires_grad", "pin_memory"):
            more.append([param, "_bool", "False", True, False])
    known = {parameter[0] for parameter in parameters(row["signature"])}
    if not (name.endswith("_") or "out" in known or "view" in row["flags"]):
        more.append(["out", "Any", "None", True, False])
    return more


def untyped(function, name, result="Any", indent="    "):
    """A Python function's own parameters."""
    text = function.__doc__
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        head = f"def {name}(*args: Any, **kwargs: Any) -> {result}:"
        return with_text(head, text, indent)
    shown = []
    for parameter in signature.parameters.values():
        empty = parameter.default is inspect.Parameter.empty
        simple = parameter.default is None or type(parameter.default) in (
            bool,
            int,
            str,
        )
        default = inspect.Parameter.empty if empty else parameter.default
        if not empty and not simple:
            default = Ellipsis
        shown.append(
            parameter.replace(default=default, annotation=inspect.Parameter.empty)
        )
    signature = signature.replace(
        parameters=shown, return_annotation=inspect.Signature.empty
    )
    head = f"def {name}{signature} -> {result}:".replace("=Ellipsis", "=...")
    return with_text(head, text, indent)


def forms(row):
    if "inplace_only" not in row["flags"]:
        yield row["name"]
    if row["inplace"]:
        yield row["name"] + "_"


def is_stub(value):
    """A method that only says that Holdfast has it not."""
    return getattr(value, "__module__", "") == "holdfast.missing"


def tensor_class():
    rows = {name: row for row in _C.schema() if row["public"] for name in forms(row)}
    lines = ["class Tensor:"]
    lines.append("    def __new__(cls, *args: Any, **kwargs: Any) -> Tensor: ...")
    for name in sorted(vars(_C.Tensor)):
        value = vars(_C.Tensor)[name]
        if (name.startswith("_") and name[:2] != "__") or is_stub(value):
            continue
        if name in ("__new__", "__doc__", "__module__", "__dict__", "__hash__"):
            continue
        if name in ("__weakref__", "__eq__", "__ne__", "__reduce_ex__"):
            continue
        if name in PROPERTY_TYPES:
            lines.append("    @property")
            lines.append(f"    def {name}(self) -> {PROPERTY_TYPES[name]}: ...")
            if name in ("data", "grad", "requires_grad"):
                kind = PROPERTY_TYPES[name]
                lines.append(f"    @{name}.setter")
                lines.append(f"    def {name}(self, value: {kind}) -> None: ...")
        elif name in rows and not inspect.isfunction(value):
            lines.append("    " + definition(rows[name], name, method=True))
        elif name in ("__pow__", "__rpow__", "__ipow__"):
            # Not the slot's modulus, which the in-place form has not.
            lines.append(f"    def {name}(self, value: Any, /) -> Tensor: ...")
        elif isinstance(value, (property, GETSET)) or name in FLAGS:
            kind = "_bool" if name.startswith("is_") else "Any"
            lines += ["    @property", f"    def {name}(self) -> {kind}: ..."]
        elif callable(value):
            operator = isinstance(value, type(_C.Tensor.__add__))
            result = SLOT_TYPES.get(name, "Tensor") if operator else "Any"
            lines.append("    " + untyped(value, name, result, " " * 8))
    return lines


def extension_stub():
    lines = [
        HEADER,
        "from typing import Any, Sequence",
        "",
        "# Names that the methods and functions of PyTorch shadow.",
        "_bool = bool",
        "_int = int",
        "_float = float",
        "Number = _int | _float",
        "",
        "class dtype:",
        "    name: str",
        "    itemsize: _int",
        "    is_floating_point: _bool",
        "    is_complex: _bool",
        "    is_signed: _bool",
        "",
        "# Within Tensor, whose property has the name.",
        "_dtype = dtype",
        "",
        "class Size(tuple[_int, ...]):",
        "    def numel(self) -> _int: ...",
        "",
        "class Session:",
        "    transport: str",
        "    address: str",
        "    device: str",
        "    server: str",
        "    closed: _bool",
        "    def close(self, keep: _bool = False) -> None: ...",
        "    def synchronize(self) -> None: ...",
        "    def manual_seed(self, seed: _int, /) -> None: ...",
        "    def keep(self, name: str, tensor: Tensor | None, /) -> None: ...",
        "    def kept(self) -> dict[str, Tensor]: ...",
        "    def __enter__(self) -> Session: ...",
        "    def __exit__(self, *error: object) -> None: ...",
        "    def __getattr__(self, name: str) -> Any: ...",
        "",
        *tensor_class(),
        "",
        "def tensor(",
        "    data: Any,",
        "    *,",
        "    dtype: _dtype | None = None,",
        "    device: Any = None,",
        "    requires_grad: _bool = False,",
        "    pin_memory: _bool = False,",
        ") -> Tensor: ...",
        "def as_tensor(",
        "    data: Any, dtype: _dtype | None = None, device: Any = None",
        ") -> Tensor: ...",
        "def from_numpy(ndarray: Any, /) -> Tensor: ...",
        "def __getattr__(name: str) -> Any: ...",
    ]
    return "\n".join(lines) + "\n"


def package_stub():
    rows = {name: row for row in _C.schema() for name in forms(row)}
    lines = [
        HEADER,
        "from typing import Any, Sequence",
        "",
        *(f"from holdfast import {name} as {name}" for name in submodules()),
        # "as" tells a type checker that the name is public here.
        "from holdfast._C import Number as Number, Session as Session, Size as Size",
        "from holdfast._C import Tensor as Tensor, dtype as dtype",
        "from holdfast._C import _bool, _dtype, _float, _int",
        "from holdfast._C import as_tensor as as_tensor",
        "from holdfast._C import from_numpy as from_numpy",
        "from holdfast._C import tensor as tensor",
        "",
        "__version__: str",
        *(f"{name}: _dtype" for name in holdfast.dtypes.NAMES),
        *others(),
        "",
    ]
    for name in sorted(TABLE.keys() | FUNCTIONS.keys()):
        function = getattr(holdfast, name)
        if name in TABLE and not inspect.isfunction(function):
            lines.append(definition(rows[name], name, method=False))
        else:
            lines.append(untyped(function, name, RESULTS.get(name, "Any")))
    lines.append("def __getattr__(name: str) -> Any: ...")
    return "\n".join(lines) + "\n"


def submodules():
    """PyTorch's own, and ours that programs import."""
    return sorted({*holdfast._SUBMODULES, "autograd", "errors", "linalg", "vision"})


def others():
    """Public names of the package that are neither ops nor registered functions."""
    written = {"Session", "Size", "Tensor", "dtype", *holdfast.dtypes.NAMES}
    written |= {"as_tensor", "from_numpy", "tensor", *TABLE, *FUNCTIONS}
    for name in dir(holdfast):
        if name.startswith("_") or name in written:
            continue
        value = getattr(holdfast, name)
        if isinstance(value, types.ModuleType):
            continue
        module = getattr(value, "__module__", None)
        if isinstance(value, type) and module == "holdfast.typed_tensors":
            yield f"{name} = Tensor"
        elif isinstance(value, type) and module.startswith("holdfast."):
            yield f"from {module} import {value.__name__} as {name}"
        elif inspect.isfunction(value):
            yield untyped(value, name)
        elif isinstance(value, (bool, float)):
            yield f"{name}: _{type(value).__name__}"
        else:
            yield f"{name}: Any"


def main(arguments):
    folder = Path(arguments[0]) if arguments else PACKAGE
    (folder / "_C.pyi").write_text(extension_stub())
    (folder / "__init__.pyi").write_text(package_stub())


if __name__ == "__main__":
    main(sys.argv[1:])
