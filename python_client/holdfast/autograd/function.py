# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Functions with a gradient of their own, by PyTorch's names.

The daemon records such a function as one node. When a backward reaches it, the
daemon asks the client, and the thread that called backward runs
`Function.backward`; the ops in it travel like any others.
"""

import functools

from holdfast import _C
from holdfast._device import device_of_number
from holdfast.autograd import saved_tensors
from holdfast.autograd.grad_mode import no_grad

TYPE_CHECKING = False  # to checkers it is typing's, whose import takes its time
if TYPE_CHECKING:
    from typing import Any

_ops = _C.ops
Tensor = _C.Tensor


def _zeros(shape, dtype, number):
    return _ops.full(shape, 0, dtype=dtype, device=device_of_number(number))


class _Saved:
    """A tensor kept for backward, with the version it had."""

    __slots__ = ("packed", "tensor", "version", "output")

    def __init__(self, tensor, output=None):
        self.output = output
        hooks = saved_tensors.current()
        self.packed = hooks and saved_tensors.PackedTensor(tensor, hooks)
        if self.packed:
            return
        # An output would own the node that owns this.
        self.tensor = tensor if output is None else _ops.detach(tensor)
        self.version = self.tensor._version


class FunctionCtx:
    """What forward hands to backward; any attribute may be set on it."""

    _saved = ()
    _to_save = ()
    _dirty = ()
    _constant = ()
    _materialize = True
    # Results of forward with their history: forward used leaves that are no
    # arguments, and backward must run for those, too.
    _behind = ()
    needs_input_grad = ()

    def save_for_backward(self, *tensors):
        """Keeps inputs and outputs (or None) for `saved_tensors`.

        Tensors that are changed in place afterwards are an error in backward.
        """
        for tensor in tensors:
            if tensor is not None and not isinstance(tensor, Tensor):
                raise TypeError(
                    "save_for_backward can only save variables, but argument is of "
                    f"type {type(tensor).__name__}"
                )
        self._to_save = tensors

    def save_for_forward(self, *tensors):
        """Accepted for PyTorch's sake; forward mode needs no rule here."""

    def mark_dirty(self, *tensors):
        """These inputs are changed in place by forward, and returned by it."""
        self._dirty = tensors

    def mark_non_differentiable(self, *tensors):
        """These outputs take no gradient."""
        self._constant = tensors

    def set_materialize_grads(self, value):
        """False: backward gets None instead of zeros for unused outputs."""
        self._materialize = bool(value)

    @property
    def saved_tensors(self):
        """What save_for_backward kept, as a tuple."""
        return tuple(None if s is None else self._unpack(s) for s in self._saved)

    saved_variables = saved_tensors

    def _unpack(self, saved):
        if saved.packed:
            return self._restore(saved.packed.unpack(), saved.output)
        if saved.tensor._version != saved.version:
            raise RuntimeError(
                "one of the variables needed for gradient computation has been "
                "modified by an inplace operation: a tensor of shape "
                f"{list(saved.tensor.shape)} saved by {self.name()} is at version "
                f"{saved.tensor._version}; expected version {saved.version} instead."
            )
        return self._restore(saved.tensor, saved.output)

    def _restore(self, tensor, output):
        if output is None:
            return tensor
        alias = _ops.detach(tensor)
        if _C.is_grad_enabled() and self._running:
            _C.restore_output(alias, self, output)
        return alias

    # ---- the node, as Tensor.grad_fn shows it

    _running = False

    def name(self):
        return type(self).__name__

    @property
    def next_functions(self):
        return tuple((n, 0) for n in self._next)

    def _not_again(self, result):
        """The gradient as a result of this node: of the output that no one has."""
        if not isinstance(result, Tensor):
            return result
        alias = _ops.detach(result)
        _C.restore_output(alias, self, len(self._outputs))
        return alias

    def _run(self, gradients):
        """backward(): gradients per output to gradients per input."""
        if len(gradients) > len(self._outputs) and gradients[-1] is not None:
            raise RuntimeError(
                "trying to differentiate twice a function that was marked with "
                "@once_differentiable"
            )
        gradients = gradients[: len(self._outputs)]
        if self._materialize:
            gradients = tuple(
                g if g is not None or made is None else _zeros(*made)
                for g, made in zip(gradients, self._outputs)
            )
        self._running = True
        try:
            results = self._function.backward(self, *gradients)
        finally:
            self._running = False
        if not isinstance(results, tuple):
            results = (results,)
        return self._checked(results)

    def _checked(self, results):
        expected = len(self._inputs)
        if len(results) > expected and all(r is None for r in results[expected:]):
            results = results[:expected]
        if len(results) != expected:
            raise RuntimeError(
                f"function {self.name()} returned an incorrect number of gradients "
                f"(expected {expected}, got {len(results)})"
            )
        fitted = [
            self._fit(i, result, shape)
            for i, (result, shape) in enumerate(zip(results, self._inputs))
        ]
        return (*fitted, *(None,) * self._leaves_behind)

    def _fit(self, i, result, shape):
        if result is None:
            return None
        if not isinstance(result, Tensor):
            raise RuntimeError(
                f"function {self.name()} returned a gradient of type "
                f"{type(result).__name__} at position {i}; expected a Tensor or None"
            )
        if shape is None:
            raise RuntimeError(
                f"function {self.name()} returned a gradient different from None at "
                f"position {i + 1}, but the corresponding forward input was not a "
                "Variable"
            )
        if not self.needs_input_grad[i]:
            return None
        if tuple(result.shape) == shape:
            return result
        try:
            return result.sum_to_size(shape)
        except (RuntimeError, ValueError):
            raise RuntimeError(
                f"Function {self.name()} returned an invalid gradient at index {i} - "
                f"got {list(result.shape)} but expected shape compatible with "
                f"{list(shape)}"
            ) from None


class _FunctionType(type):
    """Gives each Function a class of contexts with its name."""

    def __init__(cls, name, bases, members):
        super().__init__(name, bases, members)
        cls._context = type(name + "Backward", (FunctionCtx,), {"_function": cls})


class Function(metaclass=_FunctionType):
    """Base of functions with a gradient of their own.

    Subclasses define static methods `forward(ctx, *args)` and
    `backward(ctx, *gradients)`, or `forward(*args)` with
    `setup_context(ctx, inputs, output)`; call them with `apply(*args)`. backward
    returns a gradient, or None, per argument of forward.
    """

    if TYPE_CHECKING:  # whatever parameters a subclass gives them
        forward: Any
        backward: Any

    @staticmethod
    def forward(ctx, *args, **kwargs):  # noqa: F811
        raise NotImplementedError(
            "You must implement the forward function for custom autograd.Function."
        )

    @staticmethod
    def setup_context(ctx, inputs, output):
        raise NotImplementedError("setup_context is not implemented.")

    @staticmethod
    def backward(ctx, *args, **kwargs):  # noqa: F811
        raise NotImplementedError(
            "You must implement either the backward or vjp method for your custom "
            "autograd.Function to use it with backward mode AD."
        )

    @classmethod
    def apply(cls, *args) -> "Any":
        """Runs forward, and records it as one node if an input needs a gradient."""
        ctx = cls._context()
        ctx.needs_input_grad = tuple(
            isinstance(a, Tensor) and a.requires_grad for a in args
        )
        with no_grad():
            if cls.setup_context is not Function.setup_context:
                output = cls.forward(*args)
                cls.setup_context(ctx, args, output)
            else:
                output = cls.forward(ctx, *args)
        outputs = output if isinstance(output, tuple) else (output,)
        if _C.is_grad_enabled() and any(ctx.needs_input_grad):
            outputs = _record(cls, ctx, args, outputs)
        return outputs if isinstance(output, tuple) else outputs[0]


def _identities(objects):
    return {id(o) for o in objects}


def _record(cls, ctx, args, outputs):
    made, results, written = [], [], []
    dirties, constants = _identities(ctx._dirty), _identities(ctx._constant)
    given = _identities(args)
    for output in outputs:
        if not isinstance(output, Tensor):
            made.append(output)
            results.append(None)
            written.append(False)
            continue
        dirty = id(output) in dirties
        constant = id(output) in constants
        if not dirty and (id(output) in given or output.requires_grad):
            output = _ops.detach(output)
        made.append(output)
        results.append(None if constant else output)
        written.append(dirty)
    if not dirties <= _identities(outputs):
        raise RuntimeError(
            f"{cls.__name__}: every tensor given to mark_dirty() must be returned "
            "by forward()"
        )
    ctx._inputs = [tuple(a.shape) if isinstance(a, Tensor) else None for a in args]
    ctx._outputs = [
        (tuple(o.shape), o.dtype, o._device_number) if isinstance(o, Tensor) else None
        for o in made
    ]
    ctx._next = [
        a.grad_fn if isinstance(a, Tensor) and a.requires_grad else None for a in args
    ]
    inputs = tuple(a if isinstance(a, Tensor) else None for a in args)
    if getattr(cls.backward, "_once", False):
        results.append(None)
        written.append(False)
    ctx._leaves_behind = _C.record_function(
        ctx, cls.__name__, inputs, tuple(results), tuple(written), ctx._behind
    )
    ctx._behind = ()
    # Now that writes are counted.
    places = _places(outputs, given, dirties) if ctx._to_save else {}
    ctx._saved = tuple(
        None if t is None else _Saved(t, places.get(id(t))) for t in ctx._to_save
    )
    ctx._to_save = ()
    return tuple(made)


def _places(outputs, given, dirties):
    """By identity: the places of the outputs that forward made or wrote."""
    places = {}
    for i, output in enumerate(outputs):
        if id(output) not in given or id(output) in dirties:
            places.setdefault(id(output), i)
    return places


def once_differentiable(backward):
    """Decorator of Function.backward: its result cannot be differentiated."""

    @functools.wraps(backward)
    def wrapper(ctx, *gradients):
        with no_grad():
            results = backward(ctx, *gradients)
        if not _C.is_grad_enabled():
            return results
        if not isinstance(results, tuple):
            return ctx._not_again(results)
        return tuple(ctx._not_again(r) for r in results)

    wrapper._once = True
    return wrapper
