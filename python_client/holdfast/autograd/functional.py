# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Derivatives of functions: jacobian, hessian and products with them.

As torch.autograd.functional. `inputs` is a tensor or a tuple of them, passed to
`func` one by one. With create_graph the results can be differentiated; with
strict, an output that cannot depend on an input is an error instead of zeros
(dependence is what the client's graph tells, which says yes where it cannot
know).
"""

from holdfast import _C
from holdfast.autograd.grad_mode import enable_grad
from holdfast.autograd.pushforward import Pushforward
from holdfast.shapes import stack

Tensor = _C.Tensor

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]


def _grad(*args, **kwargs):
    from holdfast import autograd

    return autograd.grad(*args, **kwargs)


def _tensors(values, what, name):
    """(was a tuple, the tensors)."""
    many = isinstance(values, (tuple, list))
    tensors = tuple(values) if many else (values,)
    for i, value in enumerate(tensors):
        if not isinstance(value, Tensor):
            entry = f"the value at index {i} in " if many else ""
            raise TypeError(
                f"The {what} {name} must be either a Tensor or a tuple of Tensors but "
                f"{entry}the given {what.split()[0]} has type {type(value)}."
            )
    return many, tensors


def _inputs(values, name, create_graph):
    many, tensors = _tensors(values, "inputs given to", name)
    return many, tuple(
        x.view_as(x)
        if create_graph and x.requires_grad
        else x.detach().requires_grad_()
        for x in tensors
    )


def _outputs(values, name):
    return _tensors(values, "outputs of the user-provided function given to", name)


def _scalar(values, name):
    many, outputs = _outputs(values, name)
    if many or outputs[0].numel() != 1:
        raise RuntimeError(
            f"The function given to {name} should return a single Tensor"
            if many
            else f"The Tensor returned by the function given to {name} should contain "
            f"a single element. Got a shape of {list(outputs[0].shape)}."
        )
    return outputs[0].reshape(())


def _zeros(like):
    return _C.ops.full(tuple(like.shape), 0, dtype=like.dtype)


def _check_strict(outputs, strict):
    if not strict:
        return
    for i, output in enumerate(outputs):
        if not output.requires_grad:
            raise RuntimeError(
                f"Output {i} of the user-provided function does not require gradients. "
                "The outputs must be computed in a differentiable manner from the "
                "input when running in strict mode."
            )


def _pulled(outputs, inputs, weights, create_graph, strict=False):
    """Gradients of the weighted outputs, zeros for none."""
    live = [(o, w) for o, w in zip(outputs, weights) if o.requires_grad]
    grads = [None] * len(inputs)
    if live:
        grads = _grad(
            [o for o, _ in live],
            inputs,
            [w for _, w in live],
            retain_graph=True,
            create_graph=create_graph,
            allow_unused=True,
        )
    for i, gradient in enumerate(grads):
        if gradient is None and strict:
            raise RuntimeError(
                "The output of the user-provided function is independent of input "
                f"{i}. This is not allowed in strict mode."
            )
    return tuple(_zeros(x) if g is None else g for g, x in zip(grads, inputs))


def _finished(tensors, many, create_graph):
    """What the caller gets: a tensor or a tuple, without history if not wanted."""
    if not create_graph:
        tensors = tuple(t.detach() for t in tensors)
    return tuple(tensors) if many else tensors[0]


def _vectors(v, like, many, what):
    if v is None:
        if len(like) != 1 or like[0].numel() != 1:
            raise RuntimeError(
                f"The vector v can only be None if {what} is a single Tensor with a "
                "single element."
            )
        return (_C.ops.full(tuple(like[0].shape), 1, dtype=like[0].dtype),)
    _, vectors = _tensors(v, "v of", "products")
    if len(vectors) != len(like):
        raise RuntimeError(
            f"v is a tuple of invalid length: should be {len(like)} but got "
            f"{len(vectors)}."
        )
    for i, (vector, x) in enumerate(zip(vectors, like)):
        if vector.shape != x.shape:
            prefix = f"Entry {i} in " if len(like) > 1 else ""
            raise RuntimeError(
                f"{prefix}v has invalid size: should be {x.shape} but got "
                f"{vector.shape}."
            )
    return vectors


def _jacobian_rows(output, inputs, create_graph, strict):
    """One Jacobian [*output.shape, *input.shape] per input."""
    flat = output.reshape(-1)
    rows = []
    eye = _C.ops.eye(flat.numel(), dtype=flat.dtype)
    for weight in eye.unbind(0):
        rows.append(_pulled([flat], inputs, [weight], create_graph, strict))
    shape = tuple(output.shape)
    return tuple(
        stack([row[i] for row in rows]).reshape(shape + tuple(x.shape))
        if rows
        else _C.ops.full(shape + tuple(x.shape), 0, dtype=x.dtype)
        for i, x in enumerate(inputs)
    )


def jacobian(
    func,
    inputs,
    create_graph=False,
    strict=False,
    vectorize=False,
    strategy="reverse-mode",
):
    """d func(*inputs) / d inputs, of shape [*output.shape, *input.shape].

    One tensor for one output and one input, else a tuple per output, of a tensor
    per input. One backward per element of the outputs; `vectorize` is accepted,
    and strategy="forward-mode" gives the same numbers the same way. Source:
    torch.autograd.functional.jacobian.
    """
    if strategy not in ("reverse-mode", "forward-mode"):
        raise AssertionError(
            'Expected strategy to be either "forward-mode" or "reverse-mode". '
            f"Got {strategy!r}."
        )
    with enable_grad():
        many_in, xs = _inputs(inputs, "jacobian", create_graph)
        many_out, outputs = _outputs(func(*xs), "jacobian")
        _check_strict(outputs, strict)
        rows = [_jacobian_rows(o, xs, create_graph, strict) for o in outputs]
    rows = tuple(_finished(row, many_in, create_graph) for row in rows)
    return rows if many_out else rows[0]


def hessian(
    func,
    inputs,
    create_graph=False,
    strict=False,
    vectorize=False,
    outer_jacobian_strategy="reverse-mode",
):
    """The second derivatives of a scalar func, [*input.shape, *input.shape].

    A tensor for one input, else a tuple of tuples. Source:
    torch.autograd.functional.hessian.
    """
    many, _ = _tensors(inputs, "inputs given to", "hessian")

    def gradient(*xs):
        output = _scalar(func(*xs), "hessian")
        _check_strict([output], strict)
        return _pulled([output], xs, [_ones(output)], True, strict)

    result = jacobian(
        gradient, tuple(inputs) if many else (inputs,), create_graph, strict
    )
    return result if many else result[0][0]


def _ones(like):
    return _C.ops.full(tuple(like.shape), 1, dtype=like.dtype)


def vjp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(*inputs), v^T J): one backward.

    v is like the outputs; None for a single element. Source:
    torch.autograd.functional.vjp.
    """
    with enable_grad():
        many_in, xs = _inputs(inputs, "vjp", create_graph)
        many_out, outputs = _outputs(func(*xs), "vjp")
        _check_strict(outputs, strict)
        what = "the user-provided function returns"
        vectors = _vectors(v, outputs, many_out, what)
        grads = _pulled(outputs, xs, vectors, create_graph, strict)
    return (
        _finished(outputs, many_out, create_graph),
        _finished(grads, many_in, create_graph),
    )


def jvp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(*inputs), J v): two backwards (see pushforward.py).

    v is like the inputs; None for a single element. Source:
    torch.autograd.functional.jvp.
    """
    with enable_grad():
        many_in, xs = _inputs(inputs, "jvp", create_graph)
        vectors = _vectors(v, xs, many_in, "the input to the user-provided function")
        many_out, outputs = _outputs(func(*xs), "jvp")
        _check_strict(outputs, strict)
        moved = Pushforward(outputs, xs)(vectors, create_graph)
        moved = tuple(_zeros(o) if t is None else t for t, o in zip(moved, outputs))
    return (
        _finished(outputs, many_out, create_graph),
        _finished(moved, many_out, create_graph),
    )


def _gradient(func, inputs, v, name, create_graph, strict):
    many, xs = _inputs(inputs, name, create_graph)
    vectors = _vectors(v, xs, many, "the input to the user-provided function")
    output = _scalar(func(*xs), name)
    _check_strict([output], strict)
    return many, xs, vectors, output, _pulled([output], xs, [_ones(output)], True)


def vhp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(*inputs), v^T H) of a scalar func: two backwards.

    v is like the inputs. Source: torch.autograd.functional.vhp.
    """
    with enable_grad():
        many, xs, vectors, output, first = _gradient(
            func, inputs, v, "vhp", create_graph, strict
        )
        result = _pulled(first, xs, vectors, create_graph, strict)
    return (
        _finished((output,), False, create_graph),
        _finished(result, many, create_graph),
    )


def hvp(func, inputs, v=None, create_graph=False, strict=False):
    """(func(*inputs), H v) of a scalar func: three backwards; vhp takes two and is
    equal where the Hessian is symmetric.

    v is like the inputs. Source: torch.autograd.functional.hvp.
    """
    with enable_grad():
        many, xs, vectors, output, first = _gradient(
            func, inputs, v, "hvp", create_graph, strict
        )
        result = Pushforward(first, xs)(vectors, create_graph)
        result = tuple(_zeros(x) if t is None else t for t, x in zip(result, xs))
    return (
        _finished((output,), False, create_graph),
        _finished(result, many, create_graph),
    )
