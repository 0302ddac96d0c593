# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""What grad_fn nodes show by PyTorch's names: `_saved_self`, `variable`.

The daemon has what an op saves for backward. Reading such an attribute waits for an
answer of it; nothing is kept here. PyTorch names what it saves after the parameters
of its own functions, and these are other ones than the op table's for a few.
"""

import gc
import weakref

from holdfast import _C

__all__ = []

# Names that PyTorch has for parameters of the op table, where they are not the same
# ("input" is "self" but for these). ".t" stands for the transpose.
_NAMES = {
    "AddmmBackward0": {"input": "mat1", "weight.t": "mat2"},
    "BmmBackward0": {"other": "mat2"},
    "ConvolutionBackward0": {"input": "input"},
    "DotBackward0": {"other": "tensor"},
    "MmBackward0": {"other": "mat2", "weight.t": "mat2"},
    "MvBackward0": {"other": "vec"},
    "NativeBatchNormBackward0": {"input": "input"},
    "NativeGroupNormBackward0": {"input": "input"},
    "NativeLayerNormBackward0": {"input": "input"},
    "PowBackward0": {"other": "exponent"},
    "PowBackward1": {"other": "exponent"},
}
_RESULTS = ("result", "result1", "result2", "result3")
# Of ops that give values and where they were.
_WITH_INDICES = {
    "Amin",
    "Cummax",
    "Cummin",
    "Kthvalue",
    "Max",
    "Median",
    "Min",
    "Mode",
    "Nanmedian",
    "Sort",
    "Topk",
}
_leaves = weakref.WeakValueDictionary()  # identity -> the program's own object


def _own_object(identity):
    """The program's object for a leaf; None: it has none any more."""
    found = _leaves.get(identity)
    if found is not None and _C.identity_of(found) == identity:
        return found
    # Rarely asked for, and creating a tensor must not pay for it.
    for candidate in gc.get_objects():
        if issubclass(type(candidate), _C.Tensor) and candidate.is_leaf:
            _leaves[_C.identity_of(candidate)] = candidate
    return _leaves.get(identity)


def _value(text):
    """An attribute as the daemon prints it."""
    import ast  # which takes milliseconds

    try:
        value = ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return getattr(_C, text, text)  # a dtype, or a word
    return tuple(value) if isinstance(value, list) else value


def _result_name(shown, index):
    if index == 1 and shown.rpartition("Backward")[0] in _WITH_INDICES:
        return "indices"
    return _RESULTS[index] if index < len(_RESULTS) else f"result{index}"


def _named(node):
    """{PyTorch's name: value} of all that an op's node saves."""
    saved = _C.saved_of(node)
    if saved is None:
        return {}
    _, attributes, tensors = saved
    shown = type(node).__name__
    names = {"input": "self", **_NAMES.get(shown, {})}
    found = {}
    for line in attributes.splitlines():
        name, _, text = line.partition("=")
        found[names.get(name, name)] = _value(text)
    for parameter, tensor, leaf in tensors:
        own = _own_object(leaf) if leaf else None
        tensor = tensor if own is None else own
        base, _, place = parameter.partition(".")
        if base == "result":
            found[_result_name(shown, int(place))] = tensor
        elif place:  # of a list
            found[base] = (*found.get(base, ()), tensor)
        elif f"{base}.t" in names:
            found[names[f"{base}.t"]] = tensor.t()
        else:
            found[names.get(base, base)] = tensor
    return found


def _attribute(node, name):
    shown = type(node).__name__
    is_leaf = shown == "AccumulateGrad"
    if name is None:
        if is_leaf:
            return ["variable"]
        try:
            return [f"_saved_{known}" for known in _named(node)]
        except RuntimeError:  # freed, say: dir() fails for nobody
            return []
    if is_leaf and name == "variable":
        identity = _C.leaf_of(node)
        return _own_object(identity) if identity else None
    if not is_leaf and name.startswith("_saved_"):
        found = _named(node)
        if name[len("_saved_") :] in found:
            return found[name[len("_saved_") :]]
        known = ", ".join(f"_saved_{other}" for other in found) or "nothing"
        raise AttributeError(
            f"'{shown}' object has no attribute '{name}': it saves {known}"
        )
    raise AttributeError(f"'{shown}' object has no attribute '{name}'")


def show():
    """From here on nodes have these attributes."""
    _C.set_node_attributes(_attribute)
