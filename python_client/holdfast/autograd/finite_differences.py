# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Jacobians by finite differences and by backward, and their comparison.

They are of real numbers, NumPy arrays [coordinates of an output, coordinates of an
input]; a complex element counts as two coordinates. PyTorch's gradient of a complex
z = x + iy is dL/dx + i dL/dy, so that its coordinates are those of the real
gradient.
"""

import numpy as np

from holdfast import _C, autograd
from holdfast.autograd import forward_ad
from holdfast.autograd.function import Function
from holdfast.autograd.gradcheck import GradcheckError, as_tuple
from holdfast.shapes import stack

Tensor = _C.Tensor


def _tensor(array):
    return _C.from_numpy(np.array(array, order="C"))


def _coordinates(tensor):
    """The elements as real numbers, float64 [n]: a copy."""
    flat = np.array(tensor.detach().numpy()).reshape(-1)
    if flat.dtype.kind == "c":
        flat = flat.view(flat.real.dtype)
    return flat.astype(np.float64)


def _shaped(coordinates, like):
    """Coordinates as an array of the tensor's shape and dtype."""
    dtype = np.dtype(like.dtype.name)
    if dtype.kind == "c":
        part = np.float32 if dtype == np.complex64 else np.float64
        flat = np.ascontiguousarray(coordinates, part).view(dtype)
    else:
        flat = np.asarray(coordinates, dtype)
    return flat.reshape(tuple(like.shape))


def _count(tensor):
    return tensor.numel() * (2 if tensor.is_complex() else 1)


def _one_hot(tensor, at):
    coordinates = np.zeros(_count(tensor))
    coordinates[at] = 1.0
    return _tensor(_shaped(coordinates, tensor))


class _UndefinedGrad(Function):
    """The identity, whose input gets no gradient: autograd's None."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, gradient):
        return None


class Check:
    """One call of gradcheck: the function, its inputs and the tolerances."""

    def __init__(self, func, inputs, eps, atol, rtol, nondet_tol):
        self.func, self.inputs = func, inputs
        self.eps, self.atol, self.rtol, self.nondet_tol = eps, atol, rtol, nondet_tol
        self.places = [
            i for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.requires_grad
        ]
        self.wanted = [inputs[i] for i in self.places]

    def run(self):
        self.all_outputs = as_tuple(self.func(*self.inputs))
        for output in self.all_outputs:
            if not isinstance(output, Tensor):
                raise ValueError(
                    "gradcheck expects the function to return a Tensor or a tuple of "
                    f"them. Got {type(output).__name__}."
                )
        self.outputs = [o for o in self.all_outputs if o.requires_grad]

    def values(self):
        """Coordinates of every output that can have a gradient."""
        return [
            _coordinates(o)
            for o in as_tuple(self.func(*self.inputs))
            if o.dtype.is_floating_point or o.is_complex()
        ]

    def differentiable(self):
        """Which of values() require a gradient."""
        return [
            o.requires_grad
            for o in self.all_outputs
            if o.dtype.is_floating_point or o.is_complex()
        ]

    def along(self, x, direction):
        """Central differences of all outputs along a direction [coordinates]."""
        before = np.array(x.detach().numpy())
        start = _coordinates(x)
        # Through .data: what was saved for backward does not notice.
        memory = x.data
        sides = []
        try:
            for sign in (1, -1):
                moved = start + sign * self.eps * direction
                memory.copy_(_tensor(_shaped(moved, x)))
                sides.append(self.values())
        finally:
            memory.copy_(_tensor(before))
        return [(p - m) / (2 * self.eps) for p, m in zip(*sides)]

    def numerical(self, x):
        """A Jacobian per output in values()."""
        columns = []
        for at in range(_count(x)):
            direction = np.zeros(_count(x))
            direction[at] = 1.0
            columns.append(self.along(x, direction))
        if not columns:
            return [np.zeros((_count(o), 0)) for o in self.outputs]
        return [np.stack(c, axis=1) for c in zip(*columns)]

    def gradients(self, output, weight, check_dtypes=False):
        """Coordinates of the gradients of every wanted input."""
        grads = autograd.grad(
            output, self.wanted, weight, retain_graph=True, allow_unused=True
        )
        rows = []
        for gradient, x in zip(grads, self.wanted):
            if gradient is None:
                rows.append(np.zeros(_count(x)))
                continue
            if check_dtypes and gradient.dtype != x.dtype:
                raise GradcheckError("Gradient has dtype mismatch")
            if gradient.shape != x.shape:
                raise GradcheckError("Analytical gradient has incorrect size")
            rows.append(_coordinates(gradient))
        return rows

    def repeatable(self, first, second):
        for a, b in zip(first, second):
            if a.size and not np.max(np.abs(a - b)) <= self.nondet_tol:
                if np.isnan(a).any() or np.isnan(b).any():
                    continue  # the comparison with finite differences says so
                raise GradcheckError(
                    "Backward is not reentrant, i.e., running backward with same "
                    "input and grad_output multiple times gives different values. "
                    f"The tolerance for nondeterminism was {self.nondet_tol}."
                )

    def analytical(self, output, check_dtypes):
        """A Jacobian per wanted input."""
        rows = []
        for at in range(_count(output)):
            weight = _one_hot(output, at)
            rows.append(self.gradients(output, weight, check_dtypes))
            self.repeatable(rows[-1], self.gradients(output, weight))
        if not rows:
            return [np.zeros((0, _count(x))) for x in self.wanted]
        return [np.stack(r) for r in zip(*rows)]

    def compare(self, analytical, numerical, output, place, atol, mode=""):
        if np.allclose(analytical, numerical, rtol=self.rtol, atol=atol):
            return
        raise GradcheckError(
            f"Jacobian {mode}mismatch for output {output} with respect to input "
            f"{place},\nnumerical:{numerical}\nanalytical:{analytical}\n"
        )

    # ---- the checks

    def without_outputs(self):
        for x in self.wanted:
            for jacobian in self.numerical(x):
                if np.any(np.abs(jacobian) > self.eps):
                    raise GradcheckError(
                        "Numerical gradient for function expected to be zero"
                    )

    def slow(self, check_dtypes):
        analytical = [self.analytical(o, check_dtypes) for o in self.outputs]
        for i, (place, x) in enumerate(zip(self.places, self.wanted)):
            numerical = self.numerical(x)
            if x.numel():
                chosen = self.differentiable()
                numerical = [n for n, d in zip(numerical, chosen) if d]
            for j, n in enumerate(numerical):
                self.compare(analytical[j][i], n, j, place, self.atol)

    def fast(self, check_dtypes):
        """One random direction per input, one random weight per output."""
        random = np.random.RandomState(2147483647)

        def vector(tensor):
            v = random.rand(_count(tensor))
            norm = np.linalg.norm(v)
            return v / norm if norm else v

        u = [vector(x) for x in self.wanted]
        v = [vector(o) for o in self.outputs]
        analytical = []
        for output, weight in zip(self.outputs, v):
            weight = _tensor(_shaped(weight, output))
            analytical.append(self.gradients(output, weight, check_dtypes))
            self.repeatable(analytical[-1], self.gradients(output, weight))
        for i, (place, x) in enumerate(zip(self.places, self.wanted)):
            numerical = self.along(x, u[i])
            numerical = [n for n, d in zip(numerical, self.differentiable()) if d]
            for j, n in enumerate(numerical):
                # A whole Jacobian within atol moves the product by no more.
                atol = self.atol * u[i].sum() * v[j].sum()
                got, expected = analytical[j][i] @ u[i], n @ v[j]
                self.compare(got, expected, j, place, max(atol, self.atol))

    def forward_mode(self):
        for place, x in zip(self.places, self.wanted):
            columns = []
            for at in range(_count(x)):
                inputs = list(self.inputs)
                with forward_ad.dual_level():
                    inputs[place] = forward_ad.make_dual(x.detach(), _one_hot(x, at))
                    outputs = as_tuple(self.func(*inputs))
                    column = []
                    for output, first in zip(outputs, self.all_outputs):
                        if not first.requires_grad:
                            continue
                        tangent = forward_ad.unpack_dual(output).tangent
                        column.append(
                            np.zeros(_count(output))
                            if tangent is None
                            else _coordinates(tangent)
                        )
                columns.append(column)
            numerical = [
                n for n, d in zip(self.numerical(x), self.differentiable()) if d
            ]
            mode = "computed with forward mode "
            for j, column in enumerate(zip(*columns)):
                analytical = np.stack(column, axis=1)
                self.compare(analytical, numerical[j], j, place, self.atol, mode)

    def zero_weights(self):
        weights = [o.detach() * 0 for o in self.outputs]
        grads = autograd.grad(
            self.outputs, self.wanted, weights, retain_graph=True, allow_unused=True
        )
        for gradient, x in zip(grads, self.wanted):
            if gradient is None:
                continue
            if not (gradient == 0).all():
                raise GradcheckError("backward not multiplied by grad_output")
            if gradient.dtype != x.dtype:
                raise GradcheckError("grad is incorrect type")
            if gradient.shape != x.shape:
                raise GradcheckError("grad is incorrect size")

    def undefined(self):
        """No gradient at some or all outputs must count as zero."""
        outputs = [
            o
            for o in as_tuple(self.func(*self.inputs))
            if isinstance(o, Tensor) and o.requires_grad
        ]
        every = [frozenset(range(len(outputs)))]
        if len(outputs) > 1:
            every += [frozenset((j,)) for j in range(len(outputs))]
        for hidden in every:
            roots = [
                _UndefinedGrad.apply(o) if j in hidden else o
                for j, o in enumerate(outputs)
            ]
            try:
                grads = autograd.grad(
                    roots,
                    self.wanted,
                    [o.detach() * 0 for o in outputs],
                    retain_graph=True,
                    allow_unused=True,
                )
                zero = all(g is None or bool((g == 0).all()) for g in grads)
            except (RuntimeError, TypeError) as error:
                raise GradcheckError(
                    "Expected backward function to handle undefined output grads. "
                    f"Got {error}"
                ) from error
            if not zero:
                raise GradcheckError(
                    "Expected all input grads to be undefined or zero when all output "
                    "grads are undefined or zero."
                )


def random_like(outputs, non_contiguous):
    """Weights that require a gradient; the session's random stream stays."""
    random = np.random.RandomState(0)
    weights = []
    for output in outputs:
        weight = _tensor(_shaped(random.uniform(-1, 1, _count(output)), output))
        if non_contiguous:
            pair = stack((weight, weight), -1)
            weight = pair[..., 0]
        weights.append(weight.requires_grad_())
    return tuple(weights)
