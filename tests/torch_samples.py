# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's own samples of its ops (op_db), run by PyTorch and by Holdfast.

A sample is an input with arguments, made by PyTorch. The same call is made in
both packages: functions by their name, PyTorch's lambdas with another `torch`.
"""

import itertools
import sys
import types
import unittest
import warnings

import numpy as np
import torch

import holdfast
from holdfast.errors import UnsupportedError


def op_infos():
    """{name: OpInfo}, the name with the variant: "norm.nuc". An op that stands
    twice under one name is numbered."""
    if "expecttest" not in sys.modules:
        # PyTorch's test classes derive from it; Debian has no such package.
        stand_in = types.ModuleType("expecttest")
        stand_in.ACCEPT, stand_in.TestCase = False, unittest.TestCase
        sys.modules["expecttest"] = stand_in
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from torch.testing._internal.common_methods_invocations import op_db
    infos = {}
    for info in op_db:
        base = ".".join(filter(None, [info.name, info.variant_test_name]))
        name, number = base, 1
        while name in infos:
            number += 1
            name = f"{base}.{number}"
        infos[name] = info
    return infos


class Missing(Exception):
    """Holdfast has no such function."""


class PytorchFails(Exception):
    """PyTorch itself does not run the sample, on a CPU for example."""


def _resolve(name):
    """The function of Holdfast that PyTorch calls `name`."""
    for root in (holdfast, holdfast.Tensor):
        found = root
        try:
            for part in name.split("."):
                found = getattr(found, part)
            if not isinstance(found, holdfast.dtype):  # torch.cfloat is both
                return found
        except (AttributeError, UnsupportedError, ImportError):
            continue
    raise Missing(f"no function {name}")


def _with_our_torch(function):
    """A Python function of PyTorch's test code that sees Holdfast as `torch`."""
    scope = dict(function.__globals__)
    scope["torch"] = holdfast
    scope["wrapper_set_seed"] = lambda op, *args, **kwargs: op(*args, **kwargs)
    cells = tuple(
        types.CellType(ours_of(cell.cell_contents))
        for cell in function.__closure__ or ()
    )
    ours = types.FunctionType(
        function.__code__, scope, function.__name__, function.__defaults__, cells
    )
    ours.__kwdefaults__ = function.__kwdefaults__
    return ours


def our_function(info):
    function = info.op
    if isinstance(function, types.FunctionType):
        if function.__module__.startswith("torch.testing."):
            return _with_our_torch(function)
    if type(function).__module__ == "torch._ops":  # of torch.ops.aten
        return getattr(holdfast.ops.aten, str(function).split(".")[1])
    try:
        return _resolve(info.name)
    except Missing:  # PyTorch's name of the op is not the function's
        return _resolve(function.__name__)


def ours_of(value, leaves=None):
    """The argument as Holdfast takes it. Floating tensors that require gradients
    become leaves, collected in order."""
    if isinstance(value, torch.Tensor):
        if value.layout != torch.strided:
            raise Missing(f"samples of layout {value.layout}")
        tensor = _copied(value)
        if value.requires_grad:
            tensor.requires_grad_()
            if leaves is not None:
                leaves.append(tensor)
        return tensor
    if isinstance(value, (torch.dtype, torch.memory_format, torch.layout)):
        return getattr(holdfast, str(value).split(".")[-1])
    if isinstance(value, torch.device):
        return holdfast.device(str(value))
    if isinstance(value, torch.nn.Module):
        return getattr(holdfast.nn, type(value).__name__)()
    if isinstance(value, types.FunctionType) and "torch.testing." in value.__module__:
        return _with_our_torch(value)
    return _mapped(value, lambda part: ours_of(part, leaves))


def theirs_of(value, leaves):
    """The argument for PyTorch itself, with fresh leaves."""
    if isinstance(value, torch.Tensor):
        tensor = value.detach().clone()
        if value.requires_grad:
            leaves.append(tensor.requires_grad_())
        return tensor
    return _mapped(value, lambda part: theirs_of(part, leaves))


def _mapped(value, change):
    if isinstance(value, (list, tuple)) and type(value) in (list, tuple):
        return type(value)(change(part) for part in value)
    if isinstance(value, dict):
        return {key: change(part) for key, part in value.items()}
    if isinstance(value, slice):
        return slice(*map(change, (value.start, value.stop, value.step)))
    return value


def _copied(value):
    value = value.detach().resolve_conj().resolve_neg()
    if value.dtype is torch.bfloat16:
        return holdfast.from_numpy(np.array(value.float().numpy())).bfloat16()
    return holdfast.from_numpy(np.array(value.numpy(), order="C"))


def samples(info, dtype, requires_grad, count):
    """The first `count` samples, the same in each run; all if None."""
    torch.manual_seed(0)
    made = info.sample_inputs("cpu", dtype, requires_grad=requires_grad)
    return list(itertools.islice(made, count))


def flat(result):
    """The tensors and numbers of a result, in order."""
    if isinstance(result, (list, tuple)):
        return [part for each in result for part in flat(each)]
    return [] if result is None else [result]


def plain(value):
    """(element type, NumPy array); a number's type is Python's."""
    if isinstance(value, torch.Tensor):
        name = str(value.dtype).split(".")[-1]
        value = value.detach().resolve_conj().resolve_neg()
        if value.layout != torch.strided:
            value = value.to_dense()
        if name in ("bfloat16", "complex32"):
            value = value.to(torch.float32 if name == "bfloat16" else torch.complex64)
        return name, value.numpy()
    if isinstance(value, holdfast.Tensor):
        name = str(value.dtype).split(".")[-1]
        value = value.detach()
        if value.is_sparse:
            value = value.to_dense()
        return name, (value.float() if name == "bfloat16" else value).numpy()
    return type(value).__name__, np.asarray(value)


def difference(ours, theirs, tolerance, values=True):
    """None, or in words where two flat results differ."""
    if len(ours) != len(theirs):
        return f"{len(ours)} results, PyTorch has {len(theirs)}"
    for our, their in zip(ours, theirs):
        (our_type, x), (their_type, y) = plain(our), plain(their)
        if our_type != their_type:
            return f"type {our_type}, PyTorch has {their_type}"
        if x.shape != y.shape:
            return f"shape {x.shape}, PyTorch has {y.shape}"
        if not values or np.array_equal(x, y):
            continue
        if x.dtype.kind not in "fc":
            return f"{x.tolist()}, PyTorch has {y.tolist()}"
        finite = np.abs(y[np.isfinite(y)])
        largest = max(1, finite.max(initial=0))
        if not np.allclose(x, y, tolerance, tolerance * largest, equal_nan=True):
            return f"{x.tolist()}, PyTorch has {y.tolist()}"
    return None


def _call(function, value, args, kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return function(value, *args, **kwargs)


def _both(info, sample, their_leaves, our_leaves):
    """The results in PyTorch and in Holdfast."""
    arguments = (sample.input, tuple(sample.args), dict(sample.kwargs))
    try:
        theirs = _call(info.op, *theirs_of(arguments, their_leaves))
    except Exception as e:
        raise PytorchFails from e
    return theirs, _call(our_function(info), *ours_of(arguments, our_leaves))


def values_differ(info, sample, tolerance, compared_as=None, values=True):
    """None, or how the results of one sample differ."""
    theirs, ours = _both(info, sample, [], [])
    if compared_as:
        ours, theirs = compared_as(holdfast, ours), compared_as(torch, theirs)
    return difference(flat(ours), flat(theirs), tolerance, values)


def gradients_differ(info, sample, tolerance, compared_as=None):
    """None, or how the gradients of one sample differ: of a weighted sum of what
    PyTorch's own gradient checks look at."""
    their_leaves, our_leaves = [], []
    theirs, ours = _both(info, sample, their_leaves, our_leaves)
    look = sample.output_process_fn_grad
    if compared_as:
        ours, theirs = compared_as(holdfast, ours), compared_as(torch, theirs)
    else:
        our_look = look
        if isinstance(look, types.FunctionType):
            our_look = _with_our_torch(look)
        ours, theirs = our_look(ours), look(theirs)
    theirs = [t for t in flat(theirs) if isinstance(t, torch.Tensor)]
    ours = [t for t in flat(ours) if isinstance(t, holdfast.Tensor)]
    wrong = difference(ours, theirs, tolerance)
    if wrong:
        return f"forward: {wrong}"
    for our, their in zip(ours, theirs):
        if our.requires_grad != their.requires_grad:
            return f"requires_grad={our.requires_grad}, PyTorch has the other"
    ours = [t for t in ours if t.requires_grad]
    theirs = [t for t in theirs if t.requires_grad]
    if not theirs or not their_leaves:
        return None
    try:
        their_grads = torch.autograd.grad(
            _weighted(theirs), their_leaves, allow_unused=True
        )
    except RuntimeError as e:
        raise PytorchFails from e
    our_grads = holdfast.autograd.grad(_weighted(ours), our_leaves, allow_unused=True)
    # No gradient and a gradient of zeros say the same.
    their_grads = [
        torch.zeros_like(leaf) if grad is None else grad
        for leaf, grad in zip(their_leaves, their_grads)
    ]
    our_grads = [
        holdfast.zeros_like(leaf) if grad is None else grad
        for leaf, grad in zip(our_leaves, our_grads)
    ]
    return difference(our_grads, their_grads, tolerance)


def _weighted(tensors):
    """The sum of the elements, each with a weight of its own."""
    total = 0
    for tensor in tensors:
        package = torch if isinstance(tensor, torch.Tensor) else holdfast
        dtype = str(tensor.dtype).split(".")[-1]
        weights = np.linspace(0.5, 1.5, tensor.numel()).reshape(tuple(tensor.shape))
        weights = package.from_numpy(np.array(weights)).to(getattr(package, dtype))
        total = total + (tensor * weights).sum()
    return total.real if total.is_complex() else total
