# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The von Mises distribution of angles."""

import math

import holdfast
from holdfast import _C
from holdfast.autograd.function import Function
from holdfast.distributions import constraints
from holdfast.distributions.distribution import Distribution
from holdfast.distributions.parameters import broadcast_scalars

_ops = _C.ops


class _LogBesselI0(Function):
    """log I0(x) for x >= 0, whose slope is I1(x) / I0(x)."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return _ops.log(_ops.special_function(x, "i0e")) + x

    @staticmethod
    def backward(ctx, gradient):
        (x,) = ctx.saved_tensors
        return gradient * _bessel_ratio(x)


def _bessel_ratio(x):
    """I1(x) / I0(x)."""
    return _ops.special_function(x, "i1e") / _ops.special_function(x, "i0e")


def _proposals(concentration):
    """(cosines, which of them count) for 1-D float64 concentrations > 0: a wrapped
    Cauchy number is taken or left (Best & Fisher 1979)."""
    count = tuple(concentration.shape)
    root = _ops.sqrt(1 + 4 * concentration**2)
    tau = 1 + root
    # (tau - sqrt(2 tau)) / (2 k), without cancellation where k is small.
    tau_rest = 4 * concentration**2 / (1 + root)  # tau - 2
    rho = tau_rest / (1 + _ops.sqrt(2 / tau)) / (2 * concentration)
    r = (1 + rho**2) / (2 * rho)
    z = _ops.cos(math.pi * _ops.rand(count, dtype=_C.float64))
    cosine = (1 + r * z) / (r + z)
    c = concentration * (r - cosine)
    drawn = 1 - _ops.rand(count, dtype=_C.float64)  # (0, 1]
    # c (2 - c) > u accepts less than this, and only saves the logarithm.
    return cosine, _ops.log(c / drawn) + 1 - c >= 0


def _angles(concentration):
    """Angles around 0 in [-pi, pi] for 1-D float64 concentrations, outside the
    graph; each round waits for how many are drawn again."""
    # Below it an angle is uniform to float64's last digit.
    safe = _ops.clamp(concentration, 1e-8, None)
    cosine, accepted = _proposals(safe)
    while not _ops.all(accepted).item():
        rejected = _ops.logical_not(accepted)
        again, counts = _proposals(safe[rejected])
        cosine[rejected] = again
        accepted[rejected] = counts
    side = _ops.rand(tuple(concentration.shape), dtype=_C.float64) - 0.5
    return _ops.where(side < 0, -1.0, 1.0) * _ops.acos(_ops.clamp(cosine, -1, 1))


class VonMises(Distribution):
    """Angles in [-pi, pi) around loc of density exp(concentration cos(x - loc)) /
    (2 pi I0(concentration)), concentration > 0, which broadcast to the batch; loc
    and values count modulo 2 pi. `variance` is the circular one, 1 - I1 / I0."""

    arg_constraints = {"loc": constraints.real, "concentration": constraints.positive}
    support = constraints.real
    has_rsample = False
    _batch_parameters = ("loc", "concentration")

    def __init__(self, loc, concentration, validate_args=None):
        parameters, batch_shape = broadcast_scalars(loc, concentration)
        self.loc, self.concentration = parameters
        super().__init__(batch_shape, validate_args=validate_args)

    @property
    def mean(self):
        """The circular mean."""
        return self.loc

    @property
    def mode(self):
        return self.loc

    @property
    def variance(self):
        return 1 - _bessel_ratio(self.concentration)

    def sample(self, sample_shape=()):
        shape = self._extended_shape(sample_shape)
        with holdfast.no_grad():
            wide = _ops.to(self.concentration.expand(shape), _C.float64)
            valid = _ops.logical_and(wide >= 0, _ops.isfinite(wide))
            angles = _angles(_ops.where(valid, wide, 1.0).reshape((-1,)))
            angles = _ops.where(valid, angles.reshape(tuple(shape)), math.nan)
            turned = _ops.remainder(angles + math.pi + self.loc, 2 * math.pi)
            return _ops.to(turned - math.pi, self.loc.dtype)

    def log_prob(self, value):
        if self._validate_args:
            self._validate_sample(value)
        height = self.concentration * _ops.cos(value - self.loc)
        normalizer = _LogBesselI0.apply(self.concentration)
        return height - math.log(2 * math.pi) - normalizer
