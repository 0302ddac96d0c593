# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Random numbers of further distributions."""

import math

from holdfast import _C
from holdfast._registry import both, function, method, overload
from holdfast.autograd import no_grad
from holdfast.shapes import broadcast_shapes

_ops = _C.ops
Tensor = _C.Tensor

# Added to a uniform number it keeps the logarithm finite.
_TINY = 2.0**-1022


def _uniform(like, dtype, generator):
    """Uniform in (0, 1] in the shape of `like`: its logarithm is finite."""
    return 1.0 - _ops.rand(tuple(like.shape), dtype=dtype, generator=generator)


def _require(name, input, condition=True, what=""):
    if not input.is_floating_point():
        raise RuntimeError(f"{name} needs a floating point tensor. Got {input.dtype}.")
    if not condition:
        raise RuntimeError(f"{name} expects {what}")


@method
def exponential_(self, lambd=1.0, *, generator=None):
    """Fills with exponential random numbers of rate lambd > 0."""
    _require("exponential_", self, lambd > 0, f"lambda > 0.0, but found lambda={lambd}")
    uniform = _uniform(self, self.dtype, generator)
    return self.copy_(_ops.log(uniform) * (-1.0 / lambd))


@method
def geometric_(self, p, *, generator=None):
    """Fills with the number of trials (1, 2, ...) up to the first success."""
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p}")
    dtype = self.dtype if self.is_floating_point() else _C.float64
    uniform = _uniform(self, dtype, generator)
    return self.copy_(_ops.clamp(_ops.ceil(_ops.log(uniform) / math.log1p(-p)), 1))


@method
def cauchy_(self, median=0.0, sigma=1.0, *, generator=None):
    """Fills with Cauchy random numbers."""
    _require("cauchy_", self, sigma > 0, f"sigma > 0.0, but found sigma={sigma}")
    uniform = _ops.rand(tuple(self.shape), dtype=self.dtype, generator=generator)
    return self.copy_(_ops.tan((uniform - 0.5) * math.pi) * sigma + median)


@method
def log_normal_(self, mean=1.0, std=2.0, *, generator=None):
    """Fills with exp of normal random numbers of this mean and std."""
    _require("log_normal_", self, std > 0, f"std > 0.0, but found std={std}")
    normal = _ops.randn(tuple(self.shape), dtype=self.dtype, generator=generator)
    return self.copy_(_ops.exp(normal * std + mean))


@both(out=True)
def multinomial(input, num_samples, replacement=False, *, generator=None):
    """Indices (int64) drawn by the weights in each row of input [C] or [N, C].

    Without replacement each index appears once (the largest num_samples keys of
    log w + Gumbel noise: Efraimidis & Spirakis 2006). Weights need not sum to 1.
    RuntimeError where they are negative or not finite, or where a row has too
    few above zero; finding out waits for the values.
    """
    _require("multinomial", input)
    if input.dim() not in (1, 2):
        raise RuntimeError(f"prob_dist must be 1 or 2 dim. Got {input.dim()} dims.")
    if num_samples <= 0:
        raise RuntimeError(f"cannot sample n_sample <= 0 samples. Got {num_samples}.")
    if not replacement and num_samples > input.size(-1):
        raise RuntimeError(
            "cannot sample n_sample > prob_dist.size(-1) samples without "
            f"replacement. Got {num_samples} > {input.size(-1)}."
        )
    from holdfast import topk

    weights = input.detach().double()
    _check_weights(weights, 1 if replacement else num_samples)
    if replacement:
        return drawn_with_replacement(weights, num_samples, generator)
    noise = -_ops.log(_uniform(weights, _C.float64, generator)) + _TINY
    return topk(_ops.log(weights) - _ops.log(noise), num_samples, -1)[1]


def drawn_with_replacement(weights, num_samples, generator=None):
    """multinomial() with replacement of weights that need no check: where they are
    negative or not finite the indices are any of 0 .. C-1."""
    from holdfast import searchsorted

    steps = _ops.cumsum(_ops.to(weights, _C.float64), -1)
    total = _ops.unsqueeze(_ops.select(steps, -1, -1), -1)
    draws = _ops.rand(
        (*weights.shape[:-1], num_samples), dtype=_C.float64, generator=generator
    )
    # Rounding must not reach the total, which no index lies behind.
    draws = _ops.minimum(draws * total, _ops.nextafter(total, 0.0))
    found = searchsorted(steps, draws, right=True)
    return _ops.clamp(found, 0, weights.shape[-1] - 1)


def _check_weights(weights, needed):
    """RuntimeError unless each row has that many above zero, all finite."""
    if not weights.numel():
        if weights.size(-1) or weights.dim() == 1:
            return
        raise RuntimeError(f"multinomial: no weights. Got {list(weights.shape)}.")
    valid = _ops.logical_and(_ops.ge(weights, 0), _ops.isfinite(weights))
    enough = _ops.ge(_ops.sum(_ops.gt(weights, 0), -1), needed)
    if (valid.all() & enough.all()).item():
        return
    if not valid.all().item():
        raise RuntimeError(
            "probability tensor contains either `inf`, `nan` or element < 0"
        )
    raise RuntimeError(
        "invalid multinomial distribution: every row needs at least "
        f"{needed} weights above zero."
    )


@function(out=True)
def normal(mean, std=1.0, size=None, *, generator=None, **options):
    """Normal random numbers; mean and std are numbers (with a size) or tensors that
    broadcast, in whose type the numbers come. Gradients to them are zeros: rsample()
    of a distribution has others. RuntimeError for a number std < 0."""
    tensors = [v for v in (mean, std) if isinstance(v, Tensor)]
    if not isinstance(std, Tensor) and std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std}")
    if size is None:
        if not tensors:
            raise TypeError("normal() needs a size where mean and std are numbers")
        size = broadcast_shapes(*(tuple(t.shape) for t in tensors))
        options.setdefault("dtype", tensors[0].dtype)
    with no_grad():
        drawn = _ops.randn(size, generator=generator, **options) * std + mean
    for tensor in tensors:
        if tensor.requires_grad:
            # Takes part in the graph, and gets zeros.
            drawn = _ops.where(_C.tensor(True), drawn, tensor)
    return drawn


@function
def binomial(count, prob, generator=None):
    """Binomial random numbers in the shape and type of prob, outside the graph:
    successes of `count` (a tensor of whole numbers >= 0, of that shape) trials."""
    from holdfast.distributions.binomial import draw

    _refuse_generator("binomial", generator)
    _require("binomial", prob)
    return draw(count, prob)


@function(names=("_standard_gamma",))
def _standard_gamma(input, generator=None):
    """Gamma random numbers of rate 1 and shape parameters `input`, with gradients."""
    from holdfast.distributions.gamma_sampling import standard_gamma

    _refuse_generator("_standard_gamma", generator)
    return standard_gamma(input)


@function(names=("_sample_dirichlet",))
def _sample_dirichlet(input, generator=None):
    """Dirichlet random vectors [..., K] of concentrations `input`, with gradients."""
    from holdfast.distributions.gamma_sampling import dirichlet

    _refuse_generator("_sample_dirichlet", generator)
    return dirichlet(input)


def _refuse_generator(name, generator):
    if generator is not None:
        raise NotImplementedError(
            f"{name}() draws from the default generator only. Got {generator}; "
            "seed it with manual_seed()."
        )


@overload("poisson")
def _poisson(input, generator=None, *, out=None, inplace_=False):
    return _ops.poisson(input, generator=generator, out=out)
