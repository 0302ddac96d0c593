# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Forward-mode differentiation, by PyTorch's names.

There are no forward rules. A dual tensor requires a gradient, ops on it are
recorded, and unpack_dual computes the tangent with two backwards (see
pushforward.py). So a tangent costs about two backwards each time it is asked
for, every op on the way must be differentiable twice, and nothing is carried
through no_grad(), where PyTorch carries tangents on.
"""

import threading
from collections import namedtuple

from holdfast import _C
from holdfast.autograd.grad_mode import enable_grad
from holdfast.autograd.pushforward import Pushforward

__all__ = [
    "UnpackedDualTensor",
    "dual_level",
    "enter_dual_level",
    "exit_dual_level",
    "make_dual",
    "unpack_dual",
]

UnpackedDualTensor = namedtuple("UnpackedDualTensor", ["primal", "tangent"])


class _Level(threading.local):
    """The thread's dual level: None, or the (leaf, tangent) pairs made in it."""

    pairs = None


_level = _Level()


def enter_dual_level():
    """Enters the level in which make_dual works; returns its number, 0."""
    if _level.pairs is not None:
        raise RuntimeError(
            "Nested forward mode AD is not supported at the moment. If you need it, "
            "use holdfast.func.jvp, which nests."
        )
    _level.pairs = []
    return 0


def exit_dual_level(*, level=None):
    """Leaves the level: tangents made in it are gone."""
    if _level.pairs is None or level not in (None, 0):
        raise RuntimeError(
            "Trying to exit a forward AD level that was not the last one that was "
            f"created. Got level={level}."
        )
    _level.pairs = None


class dual_level:
    """Context manager and decorator: a level in which make_dual works."""

    def __enter__(self):
        return enter_dual_level()

    def __exit__(self, *error):
        exit_dual_level()

    def __call__(self, f):
        import functools

        @functools.wraps(f)
        def wrapper(*args, **kwargs):
            with dual_level():
                return f(*args, **kwargs)

        return wrapper


def make_dual(tensor, tangent, *, level=None):
    """A tensor with `tensor`'s values that carries `tangent`, of the same shape
    and dtype. RuntimeError outside a dual level. As
    torch.autograd.forward_ad.make_dual."""
    if _level.pairs is None:
        raise RuntimeError(
            "Trying to create a dual Tensor for forward AD but no level exists, make "
            "sure to enter_dual_level() first."
        )
    for what, x in (("tensor", tensor), ("tangent", tangent)):
        if not (x.dtype.is_floating_point or x.is_complex()):
            raise ValueError(
                f"Expected {what} to be floating point or complex, got: {x.dtype}"
            )
    if tensor.shape != tangent.shape:
        raise RuntimeError(
            "Trying to set a forward gradient that has a different size than that of "
            "the original Tensor, this is not supported. Tensor is of size "
            f"{list(tensor.shape)} while the given forward gradient is of size "
            f"{list(tangent.shape)}."
        )
    if tensor.dtype != tangent.dtype:
        raise RuntimeError(
            "Trying to set a forward gradient of another dtype. Tensor is "
            f"{tensor.dtype} while the given forward gradient is {tangent.dtype}."
        )
    with enable_grad():
        if tensor.requires_grad:
            leaf = tensor.view_as(tensor)
        else:
            leaf = tensor.detach().requires_grad_()
        _level.pairs.append((leaf, tangent))
        # Another one, so that in-place ops on it are no writes to a leaf.
        return leaf.view_as(leaf)


def unpack_dual(tensor, *, level=None):
    """(primal, tangent) of a tensor: named. The tangent is None if the tensor
    depends on no dual one, or outside a level. As
    torch.autograd.forward_ad.unpack_dual."""
    pairs = _level.pairs
    if not pairs or not tensor.requires_grad:
        return UnpackedDualTensor(tensor, None)
    leaves = [leaf for leaf, _ in pairs]
    tangents = [tangent for _, tangent in pairs]
    create_graph = _C.is_grad_enabled() and (
        any(t.requires_grad for t in tangents)
        or _C.depends_on_others((tensor,), tuple(leaves))
    )
    (tangent,) = Pushforward([tensor], leaves)(tangents, create_graph)
    return UnpackedDualTensor(tensor if create_graph else tensor.detach(), tangent)
