# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The Kullback-Leibler divergence, dispatched on both distributions' types."""

import functools
import warnings

from holdfast.distributions.distribution import Distribution

__all__ = ["kl_divergence", "register_kl"]

# (type of p, type of q) -> function of p and q.
_REGISTRY = {}


def register_kl(type_p, type_q):
    """Decorator: f(p, q) is KL(p || q) for these types and their subclasses.
    TypeError for what is no Distribution."""
    for kind in (type_p, type_q):
        if not isinstance(kind, type) or not issubclass(kind, Distribution):
            raise TypeError(f"Expected a subclass of Distribution. Got {kind!r}.")

    def register(f):
        _REGISTRY[type_p, type_q] = f
        _found.cache_clear()
        return f

    return register


@functools.lru_cache(maxsize=None)
def _found(type_p, type_q):
    """The function for the nearest registered types, None if there is none."""
    matches = [
        (p, q) for p, q in _REGISTRY if issubclass(type_p, p) and issubclass(type_q, q)
    ]
    if not matches:
        return None

    def far_p(match):
        return type_p.__mro__.index(match[0]), type_q.__mro__.index(match[1])

    def far_q(match):
        return type_q.__mro__.index(match[1]), type_p.__mro__.index(match[0])

    left, right = min(matches, key=far_p), min(matches, key=far_q)
    if _REGISTRY[left] is not _REGISTRY[right]:
        warnings.warn(
            f"Ambiguous kl_divergence({type_p.__name__}, {type_q.__name__}). Please "
            f"register_kl({left[0].__name__}, {right[1].__name__})",
            RuntimeWarning,
            stacklevel=3,
        )
    return _REGISTRY[left]


def kl_divergence(p, q):
    """KL(p || q) in nats: the mean under p of log p - log q, in the shape of the
    batch. NotImplementedError for pairs without a formula."""
    f = _found(type(p), type(q))
    if f is None:
        raise NotImplementedError(
            f"No KL(p || q) is implemented for p type {type(p).__name__} and q type "
            f"{type(q).__name__}"
        )
    return f(p, q)
