# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Every public function by its name, for `holdfast ops` and docs/ops.md."""

import importlib
import inspect

import holdfast
from holdfast import _C, _registry

# Namespaces whose functions are public beside holdfast's own.
NAMESPACES = ("fft", "linalg", "nn.functional", "special")

_REAL = "bool, uint8, int8 ... int64, float16, bfloat16, float32, float64"


def functions():
    """A list of dicts: name, signature, kind ("primitive" is a row of the op
    table, "composite" is made of such), dtypes, gradient, doc. By name."""
    rows = {row["name"]: row for row in _C.schema()}
    found = {}
    for name, row in rows.items():
        if row["public"]:
            found[name] = _primitive(row)
    for name, f in _registry.FUNCTIONS.items():
        if inspect.isroutine(f) and name not in found:
            found[name] = _composite(name, f)
    for namespace in NAMESPACES:
        module = importlib.import_module(f"holdfast.{namespace}")
        for name in getattr(module, "__all__", vars(module)):
            f = getattr(module, name)
            if name[0] != "_" and _is_own(f):
                full = f"{namespace}.{name}"
                row = rows.get(getattr(f, "__name__", None))
                same = f is getattr(holdfast, name, None)
                if row is not None and row["public"] and same:
                    found[full] = dict(_primitive(row), name=full)
                else:
                    found[full] = _composite(full, f)
    return [found[name] for name in sorted(found)]


def _is_own(f):
    if inspect.isbuiltin(f):
        return True
    return inspect.isfunction(f) and f.__module__.startswith("holdfast")


def _primitive(row):
    flags = row["flags"]
    return {
        "name": row["name"],
        "signature": row["signature"],
        "kind": "primitive",
        "dtypes": _REAL + (", complex64, complex128" if "complex" in flags else ""),
        "gradient": "yes" if row["differentiable"] else "none: not differentiable",
        "doc": row["doc"],
    }


def _composite(name, f):
    try:
        signature = str(inspect.signature(f))
    except ValueError:
        signature = "(...)"
    return {
        "name": name,
        "signature": signature,
        "kind": "composite",
        "dtypes": "those of the ops it is made of",
        "gradient": "that of the ops it is made of",
        "doc": inspect.getdoc(f) or "",
    }
