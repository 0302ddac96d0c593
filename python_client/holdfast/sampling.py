# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Random numbers of further distributions, from the session's stream."""

import math

from holdfast import _C
from holdfast._registry import both, function, method, reject

_ops = _C.ops
Tensor = _C.Tensor

# A uniform number below 1 by at least this has a finite logarithm of 1 - u.
_TINY = 2.0**-1022


def _uniform(shape, dtype):
    """Uniform in (0, 1]: its logarithm is finite."""
    return 1.0 - _ops.rand(tuple(shape), dtype=dtype)


def _require(name, input, condition, what):
    if not input.is_floating_point():
        raise RuntimeError(f"{name} needs a floating point tensor. Got {input.dtype}.")
    if not condition:
        raise RuntimeError(f"{name} expects {what}")


@method
def exponential_(self, lambd=1.0, *, generator=None):
    """Fills with exponential random numbers of rate lambd > 0."""
    reject("exponential_", generator=generator)
    _require("exponential_", self, lambd > 0, f"lambda > 0.0, but found lambda={lambd}")
    return self.copy_(_ops.log(_uniform(self.shape, self.dtype)) * (-1.0 / lambd))


@method
def geometric_(self, p, *, generator=None):
    """Fills with the number of trials (1, 2, ...) up to the first success."""
    reject("geometric_", generator=generator)
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p}")
    dtype = self.dtype if self.is_floating_point() else _C.float64
    trials = _ops.ceil(_ops.log(_uniform(self.shape, dtype)) / math.log1p(-p))
    return self.copy_(_ops.clamp(trials, 1))


@method
def cauchy_(self, median=0.0, sigma=1.0, *, generator=None):
    """Fills with Cauchy random numbers."""
    reject("cauchy_", generator=generator)
    _require("cauchy_", self, sigma > 0, f"sigma > 0.0, but found sigma={sigma}")
    turn = (_ops.rand(tuple(self.shape), dtype=self.dtype) - 0.5) * math.pi
    return self.copy_(_ops.tan(turn) * sigma + median)


@method
def log_normal_(self, mean=1.0, std=2.0, *, generator=None):
    """Fills with exp of normal random numbers of this mean and std."""
    reject("log_normal_", generator=generator)
    _require("log_normal_", self, std > 0, f"std > 0.0, but found std={std}")
    normal = _ops.randn(tuple(self.shape), dtype=self.dtype)
    return self.copy_(_ops.exp(normal * std + mean))


@both
def multinomial(input, num_samples, replacement=False, *, generator=None):
    """Indices (int64) drawn by the weights in each row of input [C] or [N, C].

    Without replacement each index appears once (the largest num_samples keys of
    log w + Gumbel noise: Efraimidis & Spirakis 2006); rows need that many
    weights above zero.
    """
    reject("multinomial", generator=generator)
    _require("multinomial", input, True, "")
    if input.dim() not in (1, 2):
        raise RuntimeError(f"prob_dist must be 1 or 2 dim. Got {input.dim()} dims.")
    if num_samples <= 0:
        raise RuntimeError(f"cannot sample n_sample <= 0 samples. Got {num_samples}.")
    if not replacement and num_samples > input.size(-1):
        raise RuntimeError(
            "cannot sample n_sample > prob_dist.size(-1) samples without "
            f"replacement. Got {num_samples} > {input.size(-1)}."
        )
    from holdfast import searchsorted, topk

    weights = input.detach().double()
    if replacement:
        steps = _ops.cumsum(weights, -1)
        total = _ops.select(steps, -1, -1)
        draws = _ops.rand((*input.shape[:-1], num_samples), dtype=_C.float64)
        index = searchsorted(steps, draws * _ops.unsqueeze(total, -1), right=True)
        return _ops.clamp(index, None, input.size(-1) - 1)
    noise = -_ops.log(_uniform(weights.shape, _C.float64) + _TINY)
    return topk(_ops.log(weights) - _ops.log(noise), num_samples, -1)[1]


@function
def poisson(input, generator=None):
    """Poisson random numbers of the rates in input: arrivals counted, so the cost
    grows with the largest rate; above 64 by the rounded normal limit."""
    reject("poisson", generator=generator)
    _require("poisson", input, True, "")
    rate = input.detach()
    small = _ops.clamp(rate, None, 64.0)
    count, elapsed = _ops.mul(rate, 0.0), _ops.mul(rate, 0.0)
    top = small.amax().item() if rate.numel() else 0.0
    for _ in range(int(top + 12 * math.sqrt(top) + 12)):
        gap = _ops.log(_uniform(rate.shape, rate.dtype)) * -1.0
        elapsed = elapsed + gap
        count = count + _ops.to(_ops.lt(elapsed, small), rate.dtype)
    normal = _ops.randn(tuple(rate.shape), dtype=rate.dtype) * _ops.sqrt(rate) + rate
    return _ops.where(_ops.gt(rate, 64.0), _ops.clamp(_ops.round(normal), 0), count)
