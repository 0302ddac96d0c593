# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Random numbers: of the daemon's stream, whatever generator a call names."""

import holdfast as hf
import torch
from holdfast import _C

from holdfast_torch.composites import (
    declare,
    declare_holdfast as composite,
    from_holdfast,
    to_holdfast,
)

_ops = _C.ops


def _fill(base, overload):
    @declare(f"{base}_.{overload}" if overload else f"{base}_")
    def kernel(self, *args, generator=None, **kwargs):
        drawn = hf.empty(tuple(self.shape), dtype=to_holdfast(self.dtype))
        getattr(drawn, base + "_")(*[a for a in args if a is not None], **kwargs)
        return self.copy_(from_holdfast(drawn))


for _name in (
    "exponential log_normal geometric cauchy uniform normal random random.to "
    "random.from bernoulli.float"
).split():
    _fill(*_name.partition(".")[::2])


@declare("bernoulli_.Tensor")
def bernoulli_(self, p, *, generator=None):
    return self.copy_(torch.bernoulli(p.to(self.device).expand_as(self)))


@declare("randperm.generator_out")
def randperm_out(n, *, generator=None, out):
    drawn = from_holdfast(hf.randperm(n, dtype=to_holdfast(out.dtype)))
    return out.resize_(drawn.shape).copy_(drawn)


@composite("multinomial")
def multinomial(self, num_samples, replacement=False):
    return hf.multinomial(self, num_samples, replacement)


@composite("poisson")
def poisson(self):
    return hf.poisson(self)


@composite("binomial")
def binomial(count, prob):
    return hf.binomial(count, prob)


@declare("rrelu_with_noise")
def rrelu_with_noise(
    self, noise, lower=0.125, upper=1 / 3, training=False, generator=None
):
    if not training:
        return torch.where(self >= 0, self, self * ((lower + upper) / 2))
    noise.copy_(torch.empty_like(self).uniform_(lower, upper))
    noise.masked_fill_(self > 0, 1)
    return self * noise


@declare("rrelu_with_noise_")
def rrelu_with_noise_(self, *args, **kwargs):
    return self.copy_(rrelu_with_noise(self, *args, **kwargs))


@declare("native_dropout")
def native_dropout(input, p, train):
    if train is False or p == 0:
        return input.clone(), torch.ones_like(input, dtype=torch.bool)
    return _dropout(input, p)


@composite()
def _dropout(input, p):
    return _ops.dropout(input, p)


@composite("native_dropout_backward")
def native_dropout_backward(grad_output, mask, scale):
    return grad_output * _ops.to(mask, grad_output.dtype) * scale
