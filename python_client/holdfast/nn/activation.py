# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Activations as modules. Formulas: nn.functional, same names in lower case."""

import holdfast

from . import functional as F
from .module import Module
from .parameter import Parameter


class _Inplace(Module):
    """An activation whose only argument is `inplace`."""

    def __init__(self, inplace=False):
        super().__init__()
        self.inplace = inplace

    def extra_repr(self):
        return "inplace=True" if self.inplace else ""


class ReLU(_Inplace):
    """max(input, 0)."""

    def forward(self, input):
        return F.relu(input, self.inplace)


class ReLU6(_Inplace):
    """input limited to [0, 6]."""

    def forward(self, input):
        return F.relu6(input, self.inplace)


class SiLU(_Inplace):
    """input * sigmoid(input)."""

    def forward(self, input):
        return F.silu(input, self.inplace)


class Mish(_Inplace):
    """input * tanh(softplus(input))."""

    def forward(self, input):
        return F.mish(input, self.inplace)


class SELU(_Inplace):
    """Self-normalising ELU."""

    def forward(self, input):
        return F.selu(input, self.inplace)


class Hardswish(_Inplace):
    """input * relu6(input + 3) / 6."""

    def forward(self, input):
        return F.hardswish(input, self.inplace)


class Hardsigmoid(_Inplace):
    """relu6(input + 3) / 6."""

    def forward(self, input):
        return F.hardsigmoid(input, self.inplace)


class LeakyReLU(Module):
    """input where positive, else negative_slope * input."""

    def __init__(self, negative_slope=0.01, inplace=False):
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input):
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    def extra_repr(self):
        inplace = ", inplace=True" if self.inplace else ""
        return f"negative_slope={self.negative_slope}{inplace}"


class ELU(Module):
    """input where positive, else alpha * (exp(input) - 1)."""

    def __init__(self, alpha=1.0, inplace=False):
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input):
        return F.elu(input, self.alpha, self.inplace)

    def extra_repr(self):
        return f"alpha={self.alpha}" + (", inplace=True" if self.inplace else "")


class CELU(ELU):
    """Continuously differentiable ELU."""

    def forward(self, input):
        return F.celu(input, self.alpha, self.inplace)


class Hardtanh(Module):
    """input limited to [min_val, max_val]."""

    def __init__(
        self, min_val=-1.0, max_val=1.0, inplace=False, min_value=None, max_value=None
    ):
        # Names of old versions that PyTorch still takes.
        min_val = min_val if min_value is None else min_value
        max_val = max_val if max_value is None else max_value
        super().__init__()
        if max_val <= min_val:
            raise AssertionError("max_val must be above min_val")
        self.min_val = min_val
        self.max_val = max_val
        self.inplace = inplace

    def forward(self, input):
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    def extra_repr(self):
        inplace = ", inplace=True" if self.inplace else ""
        return f"min_val={self.min_val}, max_val={self.max_val}{inplace}"


class Threshold(Module):
    """input where above threshold, else value."""

    def __init__(self, threshold, value, inplace=False):
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input):
        return F.threshold(input, self.threshold, self.value, self.inplace)

    def extra_repr(self):
        inplace = ", inplace=True" if self.inplace else ""
        return f"threshold={self.threshold}, value={self.value}{inplace}"


class PReLU(Module):
    """LeakyReLU with a learned slope (He et al. 2015)."""

    def __init__(self, num_parameters=1, init=0.25, device=None, dtype=None):
        super().__init__()
        self.num_parameters = num_parameters
        self.weight = Parameter(
            holdfast.full((num_parameters,), init, device=device, dtype=dtype)
        )

    def forward(self, input):
        return F.prelu(input, self.weight)

    def extra_repr(self):
        return f"num_parameters={self.num_parameters}"


class RReLU(Module):
    """LeakyReLU with slopes drawn from [lower, upper) in training."""

    def __init__(self, lower=1.0 / 8, upper=1.0 / 3, inplace=False):
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input):
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    def extra_repr(self):
        inplace = ", inplace=True" if self.inplace else ""
        return f"lower={self.lower}, upper={self.upper}{inplace}"


class GELU(Module):
    """input * Phi(input)."""

    def __init__(self, approximate="none"):
        super().__init__()
        self.approximate = approximate

    def forward(self, input):
        return F.gelu(input, self.approximate)

    def extra_repr(self):
        return f"approximate={self.approximate!r}"


class Sigmoid(Module):
    """1 / (1 + exp(-input))."""

    def forward(self, input):
        return F.sigmoid(input)


class Tanh(Module):
    """Hyperbolic tangent."""

    def forward(self, input):
        return F.tanh(input)


class Tanhshrink(Module):
    """input - tanh(input)."""

    def forward(self, input):
        return F.tanhshrink(input)


class LogSigmoid(Module):
    """log(sigmoid(input))."""

    def forward(self, input):
        return F.logsigmoid(input)


class Softsign(Module):
    """input / (1 + |input|)."""

    def forward(self, input):
        return F.softsign(input)


class Softplus(Module):
    """log(1 + exp(beta * input)) / beta."""

    def __init__(self, beta: float = 1, threshold: float = 20):
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input):
        return F.softplus(input, self.beta, self.threshold)

    def extra_repr(self):
        return f"beta={self.beta}, threshold={self.threshold}"


class Hardshrink(Module):
    """input where |input| > lambd, else 0."""

    def __init__(self, lambd=0.5):
        super().__init__()
        self.lambd = lambd

    def forward(self, input):
        return F.hardshrink(input, self.lambd)

    def extra_repr(self):
        return f"{self.lambd}"


class Softshrink(Hardshrink):
    """input moved towards 0 by lambd."""

    def forward(self, input):
        return F.softshrink(input, self.lambd)


class GLU(Module):
    """a * sigmoid(b), a and b the halves of input along dim."""

    def __init__(self, dim=-1):
        super().__init__()
        self.dim = dim

    def forward(self, input):
        return F.glu(input, self.dim)

    def extra_repr(self):
        return f"dim={self.dim}"


class Softmax(Module):
    """exp(input) normalised to sum 1 along dim."""

    def __init__(self, dim=None):
        super().__init__()
        self.dim = dim

    def forward(self, input):
        return F.softmax(input, self.dim, _stacklevel=5)

    def extra_repr(self):
        return f"dim={self.dim}"


class Softmin(Softmax):
    """softmax(-input)."""

    def forward(self, input):
        return F.softmin(input, self.dim, _stacklevel=5)


class LogSoftmax(Softmax):
    """Logarithm of softmax along dim."""

    def forward(self, input):
        return F.log_softmax(input, self.dim, _stacklevel=5)


class Softmax2d(Module):
    """Softmax over the channels of [N, C, H, W] or [C, H, W]."""

    def forward(self, input):
        if input.dim() not in (3, 4):
            raise ValueError(
                f"Softmax2d: expected input to be 3D or 4D, got {input.dim()}D instead"
            )
        return F.softmax(input, -3)
