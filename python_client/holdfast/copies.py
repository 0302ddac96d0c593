# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Functions that return a copy where their namesakes return a view: view_copy()."""

from holdfast import _C
from holdfast._registry import FUNCTIONS, function

_ops = _C.ops

_OF = """
    alias as_strided diagonal expand permute squeeze t transpose unbind unfold unsqueeze
    view select split split_with_sizes
""".split()


def _copied(result):
    if isinstance(result, (tuple, list)):
        return tuple(_ops.clone(part) for part in result)
    return _ops.clone(result)


def _copy_of(name):
    def copy(input, *args, **kwargs):
        if name == "alias":
            return _ops.clone(input)
        if name == "view":
            input = input.contiguous()
        view = getattr(_C.Tensor, name, None) or FUNCTIONS[name]
        return _copied(view(input, *args, **kwargs))

    copy.__name__ = copy.__qualname__ = f"{name}_copy"
    copy.__doc__ = f"{name}() as a copy, which shares no memory."
    return copy


for _name in _OF:
    if _name == "alias" or hasattr(_C.Tensor, _name) or _name in FUNCTIONS:
        function(_copy_of(_name))
