# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Reverse-mode differentiation, by PyTorch's names.

The tape is on the daemon; `backward` and `grad` are one message each.
"""

from holdfast import _C, missing
from holdfast._registry import FUNCTIONS
from holdfast.autograd import anomaly_mode, backward_pass, saved_attributes
from holdfast.autograd.anomaly_mode import detect_anomaly, set_detect_anomaly
from holdfast.autograd.backward_pass import BackwardPass
from holdfast.autograd.function import Function, FunctionCtx
from holdfast.autograd.gradcheck import gradcheck, gradgradcheck
from holdfast.autograd.grad_mode import (
    enable_grad,
    inference_mode,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from holdfast.autograd.variable import Variable

TYPE_CHECKING = False  # to checkers it is typing's, whose import takes its time
if TYPE_CHECKING:
    from typing import Any

is_grad_enabled = _C.is_grad_enabled
saved_attributes.show()
__getattr__ = missing.module_getattr(
    "torch.autograd", submodules=("forward_ad", "functional", "graph", "profiler")
)

__all__ = [
    "Function",
    "FunctionCtx",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "inference_mode",
    "is_grad_enabled",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
]

for _f in (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
):
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


def _run(this, call, *args, unused=()):
    """The extension's backward or grad as pass `this`; in anomaly mode, watched."""
    if not anomaly_mode.is_anomaly_enabled():
        return backward_pass.run(this, call, *args, False, *unused)
    check_nan = anomaly_mode.is_anomaly_check_nan_enabled()
    try:
        return backward_pass.run(this, call, *args, check_nan, *unused)
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
    roots, targets = _tuple(tensors), _tuple(inputs)
    if inputs is not None and len(targets) == 0:
        raise RuntimeError("'inputs' argument to backward() cannot be empty.")
    this = BackwardPass(targets, is_grad=False)
    _run(
        this,
        _C.backward,
        roots,
        _gradients(roots, grad_tensors),
        targets,
        create_graph if retain_graph is None else retain_graph,
        create_graph,
    )
    for call in this.afterwards:
        call()


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
) -> "tuple[Any, ...]":
    """The gradients of outputs with respect to inputs, a tuple.

    is_grads_batched: grad_outputs and the results have one more dimension in
    front; it is a loop of as many backwards.
    """
    if is_grads_batched:
        return _batched_grad(
            _tuple(outputs),
            _tuple(inputs),
            _tuple(grad_outputs),
            create_graph if retain_graph is None else retain_graph,
            create_graph=create_graph,
            allow_unused=allow_unused,
            materialize_grads=materialize_grads,
        )
    roots, targets = _tuple(outputs), _tuple(inputs)
    for i, target in enumerate(targets):
        if not target.requires_grad:
            raise RuntimeError(
                f"One of the differentiated Tensors does not require grad (input {i})"
            )
    this = BackwardPass(targets, is_grad=True)
    gradients = _run(
        this,
        _C.grad,
        roots,
        _gradients(roots, grad_outputs),
        targets,
        create_graph if retain_graph is None else retain_graph,
        create_graph,
        unused=(materialize_grads if allow_unused is None else allow_unused,),
    )
    for more in this.more:
        gradients = tuple(
            a if b is None else b if a is None else a + b
            for a, b in zip(gradients, more)
        )
    if not (materialize_grads or allow_unused) and any(g is None for g in gradients):
        # The path went through a function that had nothing to give.
        raise RuntimeError(
            "One of the differentiated Tensors appears to not have been used in the "
            "graph. Set allow_unused=True if this is the desired behavior."
        )
    if materialize_grads:
        gradients = tuple(
            _C.ops.full(tuple(x.shape), 0, dtype=x.dtype) if g is None else g
            for g, x in zip(gradients, targets)
        )
    return gradients


def _batched_grad(outputs, inputs, grad_outputs, retain_graph, **options):
    sizes = {len(g) if g is not None and g.dim() else None for g in grad_outputs}
    if len(sizes) != 1 or not isinstance(size := sizes.pop(), int) or size == 0:
        raise RuntimeError(
            "is_grads_batched=True: every grad_output must have the same batch "
            "dimension in front, of one or more. Got "
            f"{[None if g is None else list(g.shape) for g in grad_outputs]}."
        )
    rows = [
        grad(
            outputs,
            inputs,
            [g[i] for g in grad_outputs],
            retain_graph or i + 1 < size,
            **options,
        )
        for i in range(size)
    ]
    from holdfast.shapes import stack

    return tuple(None if parts[0] is None else stack(parts) for parts in zip(*rows))
