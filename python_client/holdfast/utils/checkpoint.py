# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Activation checkpointing: memory for time, as torch.utils.checkpoint.

The graph of a checkpointed function is dropped as soon as it has run. When backward
comes to it, it runs again from the same inputs and the same random state, and a
backward of its own gives the gradients.
"""

import warnings

from holdfast import _C, autograd, random
from holdfast.amp.autocast_mode import Surroundings
from holdfast.autograd import backward_pass, saved_tensors
from holdfast.autograd.function import Function
from holdfast.autograd.grad_mode import enable_grad, no_grad
from holdfast.utils._pytree import tree_flatten, tree_unflatten

__all__ = ["checkpoint", "checkpoint_sequential"]

Tensor = _C.Tensor


class _Call:
    """One checkpointed call: what is needed to make it again."""

    def __init__(self, function, leaves, spec, preserve_rng_state):
        self.function, self.spec = function, spec
        # Tensors are kept by the Function, which watches for changes.
        self.constants = [None if isinstance(x, Tensor) else x for x in leaves]
        self.places = [i for i, x in enumerate(leaves) if isinstance(x, Tensor)]
        self.state = random.get_rng_state() if preserve_rng_state else None
        self.result_spec = None
        self.surroundings = Surroundings()

    def run(self, tensors):
        """The results' leaves."""
        leaves = list(self.constants)
        for i, tensor in zip(self.places, tensors):
            leaves[i] = tensor
        args, kwargs = tree_unflatten(leaves, self.spec)
        results, self.result_spec = tree_flatten(self.function(*args, **kwargs))
        return results

    def run_again(self, tensors):
        """With the random numbers and autocast of the first time; the stream stays."""
        with self.surroundings:
            return self._run_with_numbers(tensors)

    def _run_with_numbers(self, tensors):
        if self.state is None:
            return self.run(tensors)
        before = random.get_rng_state()
        random.set_rng_state(self.state)
        try:
            return self.run(tensors)
        finally:
            random.set_rng_state(before)


class _Checkpoint(Function):
    @staticmethod
    def forward(ctx, call, anchor, *tensors):
        ctx.call = call
        ctx.set_materialize_grads(False)
        ctx.save_for_backward(*tensors)
        # With a graph, which dies with `results`: it tells which of them need a
        # gradient, and what else they depend on.
        with saved_tensors.off(), enable_grad():
            results = call.run(_inputs(tensors, False)[0])
        made = [x for x in results if isinstance(x, Tensor)]
        ctx.mark_non_differentiable(*[x for x in made if not x.requires_grad])
        ctx._behind = tuple(x for x in made if x.requires_grad)
        return tuple(results)

    @staticmethod
    def backward(ctx, *gradients):
        recorded = _C.is_grad_enabled()
        saved = ctx.saved_tensors
        with enable_grad():
            inputs, cut = _inputs(saved, recorded)
            results = ctx.call.run_again(inputs)
        pairs = [
            (x, g)
            for x, g in zip(results, gradients)
            if g is not None and isinstance(x, Tensor) and x.requires_grad
        ]
        if not pairs:
            if all(g is None for g in gradients):
                return (None,) * (2 + len(saved))
            raise RuntimeError(
                "none of output has requires_grad=True, this checkpoint() is not "
                "necessary"
            )
        wanted = [x for x, s in zip(inputs, saved) if s.requires_grad]
        cut.on = True
        found = iter(_nested(pairs, wanted, recorded))
        cut.on = False
        grads = [next(found) if s.requires_grad else None for s in saved]
        return (None, None, *grads)


class _Cut:
    """While on, gradients end at the inputs of a recomputed function."""

    on = False


class _Boundary(Function):
    """The identity, and no way for gradients while the cut is on."""

    @staticmethod
    def forward(ctx, x, cut):
        ctx.cut = cut
        return x.view_as(x)

    @staticmethod
    def backward(ctx, gradient):
        return (None if ctx.cut.on else gradient), None


def _inputs(saved, recorded):
    """Inputs to run again with. If the gradients are to be differentiated, they
    stay joined to the graph, by boundaries: what is behind them gets its gradient
    from the backward that is running."""
    cut = _Cut()
    inputs = []
    for x in saved:
        if not x.requires_grad:
            inputs.append(x)
        elif recorded:
            inputs.append(_Boundary.apply(x, cut))
        else:
            inputs.append(x.detach().requires_grad_())
    return inputs, cut


def _nested(pairs, wanted, recorded):
    """The gradients of `wanted`; what else the function used gets its own as the
    running backward would have given it."""
    outputs, weights = zip(*pairs)
    outer = backward_pass.current()
    targets = list(outer.targets) if outer is not None else []
    options = {"retain_graph": True, "create_graph": recorded}
    if not targets:
        for x in wanted:
            x.retain_grad()
        autograd.backward(outputs, weights, **options)
        return [x.grad for x in wanted]
    found = autograd.grad(
        outputs, wanted + targets, weights, allow_unused=True, **options
    )
    more = found[len(wanted) :]
    if outer.is_grad:
        outer.more.append(more)
    else:
        outer.afterwards.append(lambda: _accumulate(targets, more))
    return found[: len(wanted)]


def _accumulate(targets, gradients):
    for x, g in zip(targets, gradients):
        if g is not None:
            x.grad = g if x.grad is None else x.grad + g


def checkpoint(
    function,
    *args,
    use_reentrant=None,
    preserve_rng_state=True,
    context_fn=None,
    determinism_check="default",
    debug=False,
    **kwargs,
):
    """function(*args, **kwargs), of which only the arguments are kept for backward.

    Gradients are those of the plain call, also of leaves that function closes over,
    and also by autograd.grad(). With use_reentrant (the default, as of old
    PyTorch) some argument must require a gradient, and there are no keyword
    arguments; use_reentrant=False also takes functions of which only the
    parameters do. preserve_rng_state: random numbers are the same the second
    time. The other arguments are accepted as torch.utils.checkpoint.checkpoint
    has them; context_fn is refused.
    """
    reentrant = use_reentrant is None or bool(use_reentrant)
    if context_fn is not None:
        from holdfast.errors import UnsupportedError

        raise UnsupportedError("holdfast has no checkpoint(context_fn=...).")
    if reentrant and kwargs:
        raise ValueError(
            "Unexpected keyword arguments: " + ",".join(arg for arg in kwargs)
        )
    if not _C.is_grad_enabled():
        return function(*args, **kwargs)
    leaves, spec = tree_flatten((args, kwargs))
    tensors = [x for x in leaves if isinstance(x, Tensor)]
    anchor = None
    if not any(x.requires_grad for x in tensors):
        if reentrant:
            warnings.warn(
                "None of the inputs have requires_grad=True. Gradients will be None",
                stacklevel=2,
            )
            with no_grad():
                return function(*args)
        # It makes apply() record the call.
        anchor = _C.ops.full((), 0.0).requires_grad_()
    call = _Call(function, leaves, spec, preserve_rng_state)
    results = _Checkpoint.apply(call, anchor, *tensors)
    return tree_unflatten(results, call.result_spec)


def checkpoint_sequential(
    functions, segments, input, use_reentrant=None, preserve_rng_state=True, **kwargs
):
    """A Sequential (or list of functions) in `segments` checkpointed parts.

    The last part is not checkpointed: backward needs it first. As
    torch.utils.checkpoint.checkpoint_sequential.
    """
    if kwargs:
        raise ValueError(
            "Unexpected keyword arguments: " + ",".join(arg for arg in kwargs)
        )
    children = getattr(functions, "children", None)
    functions = list(functions if children is None else children())
    if not 1 <= segments <= max(1, len(functions)):
        raise ValueError(
            f"checkpoint_sequential: segments must be 1 to {len(functions)}. Got "
            f"{segments}."
        )

    def part(start, end):
        def run(x):
            for function in functions[start:end]:
                x = function(x)
            return x

        return run

    size = len(functions) // segments
    end = 0
    for start in range(0, size * (segments - 1), size):
        end = start + size
        input = checkpoint(
            part(start, end),
            input,
            use_reentrant=use_reentrant,
            preserve_rng_state=preserve_rng_state,
        )
    return part(end, len(functions))(input)
