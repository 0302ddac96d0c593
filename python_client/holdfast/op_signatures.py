# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Signatures of the op table taken apart: what a client in any language needs to encode
a call (docs/clients.md)."""

import ast
import re

_SIGNATURE = re.compile(r"\((.*)\) -> (.*)")
# Commas between parameters, not those inside of int[2] or of a default.
_BETWEEN = re.compile(r", (?![^\[]*\])")
_TYPE = re.compile(r"(\w+)((?:\[\d*\])?)(\??)(!?)")
# The field of Attr (proto/holdfast.proto) that a value of the type goes into.
_FIELDS = {
    "bool": ["b"],
    "int": ["i"],
    "float": ["f"],
    "dtype": ["dtype"],
    "str": ["s"],
    "Scalar": ["b", "i", "f"],
    "Operand": ["b", "i", "f"],
}
_TENSORS = {"Tensor": "tensor", "Operand": "operand"}


def parse(signature):
    """{"parameters": [...], "outputs": [names]} of a signature of the op table.

    A parameter is a dict: name, type (as written), kind ("tensor", "tensors", "operand"
    or "attribute"), optional (None may be given), written (the op writes it in place);
    with a place among the attributes also slot and fields; default, if it has one.
    """
    inside, result = _SIGNATURE.fullmatch(signature).groups()
    parameters, slot = [], 0
    for text in _BETWEEN.split(inside):
        if text in ("", "*"):
            continue
        parameter = _parameter(text)
        if parameter["kind"] in ("operand", "attribute"):
            parameter["slot"] = slot
            slot += 1
        parameters.append(parameter)
    if result.startswith("("):
        outputs = [text.split()[1] for text in _BETWEEN.split(result[1:-1]) if text]
    else:
        outputs = ["output"]
    return {"parameters": parameters, "outputs": outputs}


def _parameter(text):
    written_type, _, rest = text.partition(" ")
    name, has_default, default = rest.partition("=")
    base, size, optional, written = _TYPE.fullmatch(written_type).groups()
    kind = _TENSORS.get(base, "attribute")
    result = {
        "name": name,
        "type": written_type,
        "kind": "tensors" if kind == "tensor" and size else kind,
        "optional": bool(optional),
        "written": bool(written),
    }
    if kind != "tensor":
        fields = ["ints"] if size else _FIELDS[base]
        result["fields"] = [*fields, *(["none"] if optional else [])]
    if has_default:
        result["default"] = ast.literal_eval(default)
    return result
