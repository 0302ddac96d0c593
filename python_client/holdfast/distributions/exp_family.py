# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Distributions of the form h(x) exp(eta . t(x) - A(eta))."""

import holdfast
from holdfast import _C
from holdfast.distributions.distribution import Distribution
from holdfast.distributions.parameters import sum_rightmost

_ops = _C.ops


class ExponentialFamily(Distribution):
    """A distribution that names its natural parameters and A, the log normaliser.

    Where it also has the mean of log h, entropy() follows by differentiation
    (Nielsen & Nock 2010).
    """

    @property
    def _natural_params(self):
        """eta: a tuple of tensors."""
        raise NotImplementedError

    def _log_normalizer(self, *natural_params):
        """A(eta)."""
        raise NotImplementedError

    @property
    def _mean_carrier_measure(self):
        """The mean of log h(x)."""
        raise NotImplementedError

    def entropy(self):
        """A(eta) - eta . grad A(eta) - mean of log h, batch_shape."""
        parameters, normalizer, slopes = natural_slopes(self)
        result = normalizer - self._mean_carrier_measure
        for parameter, slope in zip(parameters, slopes):
            result = result - sum_rightmost(
                parameter * slope, parameter.dim() - normalizer.dim()
            )
        return result


def natural_slopes(distribution):
    """(natural parameters, A, gradients of A), inside the graph."""
    with holdfast.enable_grad():
        parameters = [
            parameter if parameter.requires_grad else parameter.detach().clone()
            for parameter in distribution._natural_params
        ]
        for parameter in parameters:
            if not parameter.requires_grad:
                parameter.requires_grad_()
        normalizer = distribution._log_normalizer(*parameters)
        slopes = holdfast.autograd.grad(normalizer.sum(), parameters, create_graph=True)
    return parameters, normalizer, slopes
