# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Gives PyTorch's dispatcher a kernel for each operator: rows that are one op of the
daemon's, composites, and variants that write what those return."""

import torch

from holdfast_torch import _torch, composites, fallback, schemas
from holdfast_torch import kernels  # noqa: F401  (declares them)

# Operators whose row would mean something else than PyTorch's.
NOT_ROWS = {"std", "var", "norm", "pow.Scalar", "to", "copy", "detach", "clone"}
NOT_ROWS |= {"arange"}  # whose integers are counted otherwise


class Registered:
    def __init__(self):
        self.rows = set()
        self.composites = set()
        self.variants = set()


REGISTERED = Registered()

# Operators with a kernel in C++ for plain arguments (csrc/native_rows.h).
NATIVE = frozenset(_torch.native_names())


def _implement(name, kernel):
    """The kernel in Python is `name`'s, or for what the one in C++ does not take."""
    if name in NATIVE:
        _torch.register_native(name, kernel)
    else:
        REGISTERED.library.impl(name, kernel, "PrivateUse1")
    REGISTERED.composites.add(name)


def _match(schema, op):
    """(sources, ignored, alpha) that make a call of `schema` one of `op`, or None."""
    left = {p.name: p for p in op.parameters}
    sources, ignored, alpha = [], [], -1
    for i, argument in enumerate(schema.arguments):
        if argument.is_out:
            continue
        names = (argument.name, *schemas.NAMES.get(argument.name, ()))
        name = next((n for n in names if n in left), None)
        if name is not None and _fits(argument, left[name]):
            sources.append((name, i))
            del left[name]
        elif argument.name == "alpha":
            alpha = i
        elif argument.has_default_value():
            ignored.append(i)
        else:
            return None
    if any(not p.has_default for p in left.values()):
        return None
    return sources, ignored, alpha


def _fits(argument, parameter):
    """Whether a parameter can take what an argument holds."""
    kind = str(argument.type)
    tensors = "Tensor" in kind
    if kind.startswith("List[Tensor") or kind == "List[Tensor]":
        return parameter.kind == "Tensor[]"
    if tensors:
        return parameter.kind in ("Tensor", "Operand")
    if parameter.kind == "Tensor" or parameter.kind == "Tensor[]":
        return False
    if parameter.kind == "str":
        return "str" in kind
    return "str" not in kind


def _row(name, schema, op, otherwise):
    plan = _match(schema, op)
    if plan is None or len(schema.returns) != op.outputs:
        return False
    sources, ignored, alpha = plan
    _torch.register_row(name, op.name, False, sources, ignored, alpha, [], otherwise)
    REGISTERED.rows.add(name)
    return True


def _inplace_row(name, schema, op, otherwise):
    plan = _match(schema, op)
    if plan is None or not op.inplace or not plan[0] or plan[0][0][1] != 0:
        return False
    sources, ignored, alpha = plan
    _torch.register_row(name, op.name, True, sources, ignored, alpha, [], otherwise)
    REGISTERED.rows.add(name)
    return True


def _by_base(operators):
    """Operators that write nothing: {"add": [("add.Tensor", what it takes), ...]}"""
    found = {}
    for name, schema in operators.items():
        if not schemas.written(schema):
            found.setdefault(name.split(".")[0], []).append((name, _takes(schema)))
    return found


def _takes(schema):
    return [(a.name, str(a.type)) for a in schema.arguments if not a.is_out]


def _functional_of(name, schema, by_base):
    """The operator that returns what `name` writes."""
    base = name.split(".")[0]
    wanted = _takes(schema)
    for of in [base[:-1], base] if base.endswith("_") else [base]:
        for candidate, takes in by_base.get(of, ()):
            if takes == wanted:
                return candidate
    return None


def register():
    operators = schemas.operators()
    ops = schemas.ops()
    library = torch.library.Library("aten", "IMPL")
    REGISTERED.library = library
    functional = {
        n: s
        for n, s in operators.items()
        if not schemas.written(s) and not schemas.aliases(s)
    }
    for name, schema in functional.items():
        base = name.split(".")[0]
        implicit = torch._C._dispatch_has_kernel_for_dispatch_key(
            "aten::" + name, "CompositeImplicitAutograd"
        )
        if composites.declared(name):
            _implement(name, composites.DECLARED[name])
            continue
        if implicit and schemas.has_kernel(name):
            continue
        op = ops.get(schemas.RENAMED.get(base, base))
        composite = composites.find(name, schema)
        if base in NOT_ROWS or name in NOT_ROWS:
            op = None
        if name in NATIVE:
            _implement(name, composite)
            continue
        if op and not op.inplace_only and not op.view:
            if _row(name, schema, op, composite):
                continue
        if composite is not None and (
            not schemas.has_kernel(name) or _structured(name)
        ):
            _implement(name, composite)
    for name in fallback.LISTED:
        if name in operators:
            kernel = fallback.kernel_of(name, operators[name])
            library.impl(name, kernel, "PrivateUse1")
    done = REGISTERED.rows | REGISTERED.composites
    by_base = _by_base(operators)
    for name, schema in operators.items():
        if not schemas.written(schema):
            continue
        if composites.declared(name):
            _implement(name, composites.DECLARED[name])
            continue
        base = name.split(".")[0]
        if not schemas.is_out(schema) and base.endswith("_"):
            op = ops.get(base[:-1])
            if op and base[:-1] not in NOT_ROWS:
                composite = composites.in_place(name)
                if name in NATIVE:
                    _implement(name, composite)
                    continue
                if _inplace_row(name, schema, op, composite):
                    continue
        source = _functional_of(name, schema, by_base)
        if source in done and (
            not schemas.has_kernel(name) or not schemas.is_out(schema)
        ):
            _torch.register_variant(name, source)
            REGISTERED.variants.add(name)


def _structured(name):
    return torch._C._dispatch_has_kernel_for_dispatch_key(
        "aten::" + name, "CompositeExplicitAutogradNonFunctional"
    )
