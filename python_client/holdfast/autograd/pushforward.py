# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Forward-mode derivatives out of two backwards.

v -> J^T v, which one backward computes, is linear in v, and its own transposed
is t -> J t: so the second backward, with respect to v, gives a directional
derivative at any v (zeros here). It costs about two backwards, and each rule on
the way must be differentiable itself.
"""

from holdfast import _C
from holdfast.autograd.grad_mode import enable_grad


class Pushforward:
    """t -> J t at one point: of `outputs` with respect to `inputs`.

    Both are sequences of tensors; the inputs require a gradient. Every call is
    one backward.
    """

    def __init__(self, outputs, inputs):
        from holdfast import autograd

        self._grad = autograd.grad
        self._count = len(outputs)
        # An output that depends on nothing has no tangent.
        self._places = [i for i, o in enumerate(outputs) if o.requires_grad]
        live = [outputs[i] for i in self._places]
        if not live:
            self._transposed = [None] * len(inputs)
            return
        with enable_grad():
            self._weights = [
                _C.ops.full(tuple(o.shape), 0, dtype=o.dtype).requires_grad_()
                for o in live
            ]
            self._transposed = self._grad(
                live, inputs, self._weights, create_graph=True, allow_unused=True
            )

    def __call__(self, tangents, create_graph=False):
        """A tangent, or None for zero, per output."""
        results = [None] * self._count
        pairs = [
            (g, t)
            for g, t in zip(self._transposed, tangents)
            if g is not None and t is not None and g.requires_grad
        ]
        if not pairs:
            return results
        with enable_grad():
            moved = self._grad(
                [g for g, _ in pairs],
                self._weights,
                [t for _, t in pairs],
                retain_graph=True,
                create_graph=create_graph,
                allow_unused=True,
            )
        for i, tangent in zip(self._places, moved):
            results[i] = tangent
        return results
