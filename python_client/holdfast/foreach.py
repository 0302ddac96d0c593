# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.foreach and torch._foreach_*: an op on each tensor of a list.

An op is sent in some hundred nanoseconds, so that a list is a loop here. Each function
takes lists of one length, and numbers or lists of numbers for what is no tensor; the
names that end in "_" write into the first list and return None.
"""

from holdfast.errors import OpError
from holdfast.missing import module_getattr

_OPS = """
    abs acos addcdiv addcmul add asin atan ceil clamp_max clamp_min cos cosh div erf
    erfc exp expm1 floor frac lerp lgamma log log10 log1p log2 maximum minimum mul neg
    pow reciprocal round rsqrt sigmoid sign sin sinh sqrt sub tan tanh trunc
"""
NAMES = sorted(
    [form for op in _OPS.split() for form in (op, f"{op}_")]
    + ["clone", "copy_", "max", "mm", "norm", "zero_"]
)


def _one_by_one(name):
    inplace = name.endswith("_")

    def foreach(self, *args, **kwargs):
        results = []
        for i, tensor in enumerate(self):
            own = [_one(value, i, len(self), name) for value in args]
            named = {k: _one(v, i, len(self), name) for k, v in kwargs.items()}
            results.append(_call(name, tensor, own, named))
        return None if inplace else results

    foreach.__name__ = foreach.__qualname__ = name
    foreach.__doc__ = f"Tensor.{name}() of each tensor of a list."
    return foreach


def _call(name, tensor, args, kwargs):
    if name.startswith("addc") and len(args) == 3:
        *args, kwargs["value"] = args
    if hasattr(tensor, name):
        return getattr(tensor, name)(*args, **kwargs)
    # maximum_ and the like are no methods.
    return tensor.copy_(getattr(tensor, name.removesuffix("_"))(*args, **kwargs))


def _one(value, i, count, name):
    """What the i-th tensor gets of an argument."""
    if not isinstance(value, (list, tuple)):
        return value
    if len(value) != count:
        raise OpError(
            f"[_foreach_{name}] Tensor lists must have the same number of tensors, got "
            f"{count} and {len(value)}"
        )
    return value[i]


def _with_loop_names(name):
    """The functions, made when they are asked for."""
    plain = name.removeprefix("_foreach_")
    if plain not in NAMES:
        return _missing(name)
    made = globals()[name] = _one_by_one(plain)
    return made


_missing = module_getattr("torch.foreach")
__getattr__ = _with_loop_names
