# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""PyTorch's operators and the daemon's ops, side by side."""

import re

import torch
from holdfast import _C

# What PyTorch calls a parameter, and what the op table does.
NAMES = {
    "self": ("input", "A"),
    "exponent": ("other",),
    "other": ("other",),
    "mat2": ("other",),
    "vec": ("other",),
    "vec2": ("other",),
    "tensor": ("other",),
    "value": ("fill_value", "value"),
    "end": ("end",),
}

# Operators that are an op of another name: the parameters that differ, by position in
# the operator's signature.
RENAMED = {
    "mm": "matmul",
    "bmm": "matmul",
    "mv": "matmul",
    "dot": "matmul",
    "max.dim": None,
    "bitwise_left_shift": "bitwise_left_shift",
}


class Parameter:
    """One of the daemon's op's."""

    def __init__(self, text):
        text = text.strip()
        declaration, _, default = text.partition("=")
        kind, self.name = declaration.rsplit(" ", 1)
        self.kind = kind.rstrip("?!")
        self.optional = bool(default) or kind.endswith("?")
        self.has_default = bool(default)
        self.tensor = self.kind in ("Tensor", "Operand", "Tensor[]")


class Op:
    """A row of the daemon's table."""

    def __init__(self, row):
        self.name = row["name"]
        self.inplace = row["inplace"] or "inplace_only" in row["flags"]
        self.inplace_only = "inplace_only" in row["flags"]
        self.view = "view" in row["flags"]
        inside = re.match(r"\((.*)\) -> (.*)$", row["signature"])
        texts = [t for t in inside[1].split(", ") if t and t != "*"]
        self.parameters = [Parameter(t) for t in texts]
        result = inside[2].strip("()")
        self.outputs = len(result.split(",")) if result else 0


def ops():
    """The daemon's table by name."""
    return {row["name"]: Op(row) for row in _C.schema()}


def operators():
    """PyTorch's operators: "add.Tensor" to its schema."""
    found = {}
    known = set(torch._C._dispatch_get_all_op_names())
    for schema in torch._C._jit_get_all_schemas():
        # TorchScript has operators of the same names elsewhere: prim::abs, of numbers.
        space, _, name = schema.name.partition("::")
        if space != "aten":
            continue
        if schema.overload_name:
            name += "." + schema.overload_name
        if "aten::" + name in known:
            found[name] = schema
    return found


def has_kernel(name):
    """Whether PyTorch can do `name` on the device by itself."""
    return torch._C._dispatch_has_computed_kernel_for_dispatch_key(
        "aten::" + name, "PrivateUse1"
    )


def written(schema):
    """Arguments that the operator writes."""
    return [
        i
        for i, a in enumerate(schema.arguments)
        if a.alias_info is not None and a.alias_info.is_write
    ]


def is_out(schema):
    return any(a.is_out for a in schema.arguments)


def aliases(schema):
    return any(r.alias_info is not None for r in schema.returns)
