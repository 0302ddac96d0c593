# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""grad, vjp, jvp and Jacobians of functions. As torch.func has them.

Arguments and results may be nested tuples, lists and dicts of tensors.
"""

import functools

from holdfast import _C
from holdfast.autograd import grad as _autograd_grad
from holdfast.autograd.grad_mode import enable_grad
from holdfast.autograd.pushforward import Pushforward
from holdfast.shapes import stack
from holdfast.utils._pytree import tree_flatten, tree_map, tree_unflatten

TYPE_CHECKING = False  # to checkers it is typing's, whose import takes its time
if TYPE_CHECKING:
    from typing import Any

Tensor = _C.Tensor


def _name(func):
    return getattr(func, "__name__", type(func).__name__)


def _zeros(like):
    return _C.ops.full(tuple(like.shape), 0, dtype=like.dtype)


def _detached(tree):
    return tree_map(lambda x: x.detach() if isinstance(x, Tensor) else x, tree)


class _Point:
    """The differentiated arguments of one call, and whether results need a history.

    Enter it to run the function: ops are recorded.
    """

    def __init__(self, args, name):
        self.recording = _C.is_grad_enabled()
        self.originals, self.spec = tree_flatten(args)
        for x in self.originals:
            if not isinstance(x, Tensor):
                raise ValueError(
                    f"{name}(f, *args): expected all differentiated arguments to be "
                    f"Tensors, got {type(x).__name__}."
                )
        with enable_grad():
            self.tensors = tuple(
                x.view_as(x)
                if self.recording and x.requires_grad
                else x.detach().requires_grad_()
                for x in self.originals
            )
        self.args = tree_unflatten(self.tensors, self.spec)
        self._mode = enable_grad()

    def __enter__(self):
        self._mode.__enter__()
        return self

    def __exit__(self, *error):
        self._mode.__exit__(*error)

    def needs_history(self, outputs):
        """Whether somebody outside may differentiate what comes of the outputs."""
        if not self.recording:
            return False
        if any(x.requires_grad for x in self.originals):
            return True
        live = tuple(o for o in outputs if o.requires_grad)
        return _C.depends_on_others(live, self.tensors)

    def pull(self, outputs, weights, create_graph, retain_graph=True):
        """Gradients of the weighted outputs, like the arguments; zeros for none."""
        live = [(o, w) for o, w in zip(outputs, weights) if o.requires_grad]
        grads = [None] * len(self.tensors)
        if live and self.tensors:
            grads = _autograd_grad(
                [o for o, _ in live],
                self.tensors,
                [w for _, w in live],
                retain_graph=retain_graph,
                create_graph=create_graph,
                allow_unused=True,
            )
        return [_zeros(x) if g is None else g for g, x in zip(grads, self.tensors)]


def _split_aux(result, name):
    if not (isinstance(result, tuple) and len(result) == 2):
        raise RuntimeError(
            f"{name}: output of function f should be a tuple: (output, aux) if "
            f"has_aux is True. Got {type(result).__name__}."
        )
    return result


def _outputs(result, name):
    leaves, spec = tree_flatten(result)
    for x in leaves:
        if not isinstance(x, Tensor):
            raise RuntimeError(
                f"{name}: expected f(*args) to return only tensors, got unsupported "
                f"type {type(x)}"
            )
    return leaves, spec


def _chosen(args, argnums, name):
    """(positions, the arguments there: one, or a tuple if argnums is one)."""
    many = isinstance(argnums, tuple)
    places = []
    for n in argnums if many else (argnums,):
        if not isinstance(n, int) or isinstance(n, bool):
            raise RuntimeError(f"{name}: argnums must be int or Tuple[int, ...]: {n!r}")
        if not -len(args) <= n < len(args):
            raise RuntimeError(
                f"Got argnum={n}, but only {len(args)} positional inputs"
            )
        places.append(n % len(args))
    if len(set(places)) != len(places):
        raise RuntimeError(f"argnums elements must be unique, got {argnums}")
    if not places:
        raise RuntimeError("Got an empty argnums")
    return places, tuple(args[i] for i in places) if many else args[places[0]]


def _replaced(args, places, argnums, values):
    args = list(args)
    for i, value in zip(places, values if isinstance(argnums, tuple) else (values,)):
        args[i] = value
    return args


def grad_and_value(func, argnums=0, has_aux=False) -> "Any":
    """A function that returns (gradient, value) of a func with a scalar result.

    argnums: the positions differentiated, an int or a tuple of them. With has_aux,
    func returns (value, aux), and the function (gradient, (value, aux)). As
    torch.func.grad_and_value.
    """

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        places, values = _chosen(args, argnums, "grad_and_value")
        with _Point(values, "grad_and_value") as point:
            value = func(*_replaced(args, places, argnums, point.args), **kwargs)
            aux = None
            if has_aux:
                value, aux = _split_aux(value, "grad_and_value(f)(*args)")
            if not isinstance(value, Tensor):
                raise RuntimeError(
                    "grad_and_value(f)(*args): Expected f(*args) to return tensor, "
                    f"got {type(value)}"
                )
            if value.dim() != 0:
                raise RuntimeError(
                    "grad_and_value(f)(*args): Expected f(*args) to return a scalar "
                    f"tensor, got tensor with {value.dim()} dims. Maybe you wanted to "
                    "use the vjp or jacrev APIs instead?"
                )
            history = point.needs_history([value])
            one = _C.ops.full((), 1, dtype=value.dtype)
            grads = point.pull([value], [one], history)
        result = value, aux
        if not history:
            result = _detached(result)
        gradient = tree_unflatten(grads, point.spec)
        return gradient, result if has_aux else result[0]

    return wrapper


def grad(func, argnums=0, has_aux=False) -> "Any":
    """A function that returns the gradient of a func with a scalar result.

    With has_aux: (gradient, aux). Arguments as of grad_and_value; as
    torch.func.grad.
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        gradient, value = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return wrapper


def _with_aux(result, aux, has_aux):
    return (*result, aux) if has_aux else result


def vjp(func, *primals, has_aux=False) -> "Any":
    """(func(*primals), vjp_fn): vjp_fn(cotangents) is a tuple of v^T J per primal.

    Cotangents are like func's result; vjp_fn may be called many times. With
    has_aux, func returns (output, aux), and vjp (output, vjp_fn, aux). As
    torch.func.vjp.
    """
    point = _Point(primals, "vjp")
    with point:
        result, aux = func(*point.args), None
        if has_aux:
            result, aux = _split_aux(result, "vjp(f, *primals)")
        outputs, spec = _outputs(result, "vjp(f, *primals)")
    history = point.needs_history(outputs)

    def vjp_fn(cotangents, retain_graph=True, create_graph=None):
        weights, got = tree_flatten(cotangents)
        if got != spec:
            raise RuntimeError(
                "Expected pytree structure of cotangents to be the same as pytree "
                f"structure of outputs to the function. cotangents: {got}, primal "
                f"output: {spec}"
            )
        if create_graph is None:
            create_graph = _C.is_grad_enabled() and (
                history or any(w.requires_grad for w in weights)
            )
        grads = point.pull(outputs, weights, create_graph, retain_graph)
        return tree_unflatten(grads, point.spec)

    if not history:
        result, aux = _detached((result, aux))
    return _with_aux((result, vjp_fn), aux, has_aux)


def _push(func, primals, name, has_aux=False):
    """(point, outputs, their spec, aux, the Pushforward)."""
    if not isinstance(primals, tuple) or not primals:
        raise RuntimeError(
            f"{name}: expected primals to be a non-empty tuple of tensors. Got "
            f"{type(primals).__name__}."
        )
    point = _Point(primals, name)
    with point:
        result, aux = func(*point.args), None
        if has_aux:
            result, aux = _split_aux(result, name)
        outputs, spec = _outputs(result, name)
        push = Pushforward(outputs, point.tensors)
    return point, outputs, spec, aux, push


def _tangents(tangents, point, name):
    vectors, spec = tree_flatten(tangents)
    if spec != point.spec:
        raise RuntimeError(
            f"{name}: Expected primals and tangents to have the same python structure. "
            f"Got {point.spec} and {spec}."
        )
    for vector, x in zip(vectors, point.tensors):
        if vector.shape != x.shape:
            raise RuntimeError(
                f"{name}: tangents must have the primals' shapes. Got "
                f"{list(vector.shape)} for {list(x.shape)}."
            )
    return vectors


def _pushed(push, vectors, outputs, create_graph):
    moved = push(vectors, create_graph)
    return [_zeros(o) if t is None else t for t, o in zip(moved, outputs)]


def jvp(func, primals, tangents, *, strict=False, has_aux=False) -> "Any":
    """(func(*primals), J tangents): tangents is a tuple like primals.

    Two backwards (see autograd/pushforward.py). With has_aux also func's aux. As
    torch.func.jvp.
    """
    name = "jvp(f, primals, tangents)"
    point, outputs, spec, aux, push = _push(func, primals, name, has_aux)
    vectors = _tangents(tangents, point, name)
    if strict and not all(o.requires_grad for o in outputs):
        raise RuntimeError(f"{name}: an output is independent of every primal.")
    history = point.needs_history(outputs) or (
        point.recording and any(v.requires_grad for v in vectors)
    )
    moved = _pushed(push, vectors, outputs, history)
    result = tree_unflatten(outputs, spec)
    if not history:
        result, aux = _detached((result, aux))
    return _with_aux((result, tree_unflatten(moved, spec)), aux, has_aux)


def linearize(func, *primals) -> "Any":
    """(func(*primals), jvp_fn): jvp_fn(*tangents) is J tangents at that point.

    func runs once, and each jvp_fn is one backward. As torch.func.linearize.
    """
    point, outputs, spec, _, push = _push(func, primals, "linearize")
    history = point.needs_history(outputs)

    def jvp_fn(*tangents):
        vectors = _tangents(tangents, point, "linearize")
        create_graph = history or (
            _C.is_grad_enabled() and any(v.requires_grad for v in vectors)
        )
        return tree_unflatten(_pushed(push, vectors, outputs, create_graph), spec)

    result = tree_unflatten(outputs, spec)
    return result if history else _detached(result), jvp_fn


def _basis(x):
    """Every one-hot tensor like x."""
    eye = _C.ops.eye(x.numel(), dtype=x.dtype)
    return [row.reshape(tuple(x.shape)) for row in eye.unbind(0)]


def jacrev(func, argnums=0, *, has_aux=False, chunk_size=None) -> "Any":
    """A function that returns Jacobians, [*output.shape, *input.shape].

    One backward per element of the outputs, one after the other. Results nest as
    func's outputs do, and inside them as the chosen arguments. chunk_size is
    accepted; as torch.func.jacrev.
    """

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        places, values = _chosen(args, argnums, "jacrev")
        with _Point(values, "jacrev") as point:
            result = func(*_replaced(args, places, argnums, point.args), **kwargs)
            aux = None
            if has_aux:
                result, aux = _split_aux(result, "jacrev")
            outputs, spec = _outputs(result, "jacrev")
            history = point.needs_history(outputs)
            jacobians = []
            for output in outputs:
                rows = [point.pull([output], [w], history) for w in _basis(output)]
                parts = [
                    _assembled(
                        [row[i] for row in rows], 0, tuple(output.shape), tuple(x.shape)
                    )
                    if rows
                    else _C.ops.full(
                        tuple(output.shape) + tuple(x.shape), 0, dtype=x.dtype
                    )
                    for i, x in enumerate(point.tensors)
                ]
                jacobians.append(tree_unflatten(parts, point.spec))
        jacobian = tree_unflatten(jacobians, spec)
        if not has_aux:
            return jacobian
        return jacobian, aux if history else _detached(aux)

    return wrapper


def _assembled(slices, dim, output_shape, input_shape):
    return stack(slices, dim).reshape(output_shape + input_shape)


def jacfwd(
    func, argnums=0, has_aux=False, *, randomness="error", chunk_size=None
) -> "Any":
    """A function that returns Jacobians as jacrev does, a column at a time.

    func runs once; one backward per element of the chosen arguments, which pays
    where they have fewer elements than the outputs. As torch.func.jacfwd.
    """

    @functools.wraps(func)
    def wrapper(*args, **kwargs):
        places, values = _chosen(args, argnums, "jacfwd")

        def of_chosen(chosen):
            return func(*_replaced(args, places, argnums, chosen), **kwargs)

        point, outputs, spec, aux, push = _push(of_chosen, (values,), "jacfwd", has_aux)
        history = point.needs_history(outputs)
        jacobians = [[] for _ in outputs]
        for i, x in enumerate(point.tensors):
            vectors = [None] * len(point.tensors)
            columns = []
            for vectors[i] in _basis(x):
                columns.append(_pushed(push, vectors, outputs, history))
            for j, output in enumerate(outputs):
                shapes = tuple(output.shape), tuple(x.shape)
                jacobians[j].append(
                    _assembled([c[j] for c in columns], -1, *shapes)
                    if columns
                    else _C.ops.full(shapes[0] + shapes[1], 0, dtype=output.dtype)
                )
        parts = [tree_unflatten(j, point.spec)[0] for j in jacobians]
        jacobian = tree_unflatten(parts, spec)
        if not has_aux:
            return jacobian
        return jacobian, aux if history else _detached(aux)

    return wrapper


def hessian(func, argnums=0) -> "Any":
    """A function that returns second derivatives: jacfwd(jacrev(func)).

    As torch.func.hessian.
    """
    return jacfwd(jacrev(func, argnums), argnums)
