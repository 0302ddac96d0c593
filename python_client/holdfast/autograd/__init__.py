# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Reverse-mode differentiation, by PyTorch's names.

The tape is on the daemon; `backward` and `grad` are one message each.
"""

from holdfast import _C, missing
from holdfast._registry import FUNCTIONS
from holdfast.autograd import anomaly_mode
from holdfast.autograd.anomaly_mode import detect_anomaly, set_detect_anomaly
from holdfast.autograd.function import Function, FunctionCtx
from holdfast.autograd.grad_mode import (
    enable_grad,
    inference_mode,
    no_grad,
    set_grad_enabled,
)
from holdfast.autograd.variable import Variable
from holdfast.errors import UnsupportedError

is_grad_enabled = _C.is_grad_enabled
__getattr__ = missing.module_getattr("torch.autograd", submodules=("profiler",))

__all__ = [
    "Function",
    "FunctionCtx",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "grad",
    "inference_mode",
    "is_grad_enabled",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
]

for _f in (enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled):
    FUNCTIONS[_f.__name__] = _f


def _tuple(tensors):
    if tensors is None:
        return ()
    return (tensors,) if isinstance(tensors, _C.Tensor) else tuple(tensors)


def _gradients(roots, gradients):
    """One gradient or None per root, checked as PyTorch checks them."""
    gradients = (None,) * len(roots) if gradients is None else _tuple(gradients)
    if len(gradients) != len(roots):
        raise RuntimeError(f"got {len(roots)} tensors and {len(gradients)} gradients")
    for i, (root, gradient) in enumerate(zip(roots, gradients)):
        if not root.requires_grad:
            raise RuntimeError(
                f"element {i} of tensors does not require grad and does not have a "
                "grad_fn"
            )
        if gradient is None:
            if root.numel() != 1:
                raise RuntimeError(
                    "grad can be implicitly created only for scalar outputs"
                )
        elif gradient.shape != root.shape:
            raise RuntimeError(
                f"Mismatch in shape: grad_output[{i}] has a shape of "
                f"{gradient.shape} and output[{i}] has a shape of {root.shape}."
            )
    return gradients


def _run(call, *args, unused=()):
    """The extension's backward or grad; in anomaly mode, watched."""
    if not anomaly_mode.is_anomaly_enabled():
        return call(*args, False, *unused)
    try:
        return call(*args, anomaly_mode.is_anomaly_check_nan_enabled(), *unused)
    except RuntimeError as error:
        anomaly_mode.explain(error)
        raise


def backward(
    tensors,
    grad_tensors=None,
    retain_graph=None,
    create_graph=False,
    grad_variables=None,
    inputs=None,
):
    """Adds the gradients of tensors to .grad of the leaves they depend on.

    With `inputs` only to those. grad_tensors weight non-scalar tensors.
    """
    roots = _tuple(tensors)
    if inputs is not None and len(_tuple(inputs)) == 0:
        raise RuntimeError("'inputs' argument to backward() cannot be empty.")
    _run(
        _C.backward,
        roots,
        _gradients(roots, grad_tensors),
        _tuple(inputs),
        create_graph if retain_graph is None else retain_graph,
        create_graph,
    )


def grad(
    outputs,
    inputs,
    grad_outputs=None,
    retain_graph=None,
    create_graph=False,
    only_inputs=True,
    allow_unused=None,
    is_grads_batched=False,
    materialize_grads=False,
):
    """The gradients of outputs with respect to inputs, a tuple."""
    if is_grads_batched:
        raise UnsupportedError("holdfast has no autograd.grad(is_grads_batched=True).")
    roots, targets = _tuple(outputs), _tuple(inputs)
    for i, target in enumerate(targets):
        if not target.requires_grad:
            raise RuntimeError(
                f"One of the differentiated Tensors does not require grad (input {i})"
            )
    gradients = _run(
        _C.grad,
        roots,
        _gradients(roots, grad_outputs),
        targets,
        create_graph if retain_graph is None else retain_graph,
        create_graph,
        unused=(materialize_grads if allow_unused is None else allow_unused,),
    )
    if materialize_grads:
        gradients = tuple(
            _C.ops.full(tuple(x.shape), 0, dtype=x.dtype) if g is None else g
            for g, x in zip(gradients, targets)
        )
    return gradients
