# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Activations. Float tensors of any shape; the result has the same."""

import math
import warnings

import holdfast
from holdfast import _C

__all__ = [
    "celu",
    "celu_",
    "elu",
    "elu_",
    "gelu",
    "glu",
    "gumbel_softmax",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hardtanh_",
    "leaky_relu",
    "leaky_relu_",
    "log_softmax",
    "logsigmoid",
    "mish",
    "prelu",
    "rrelu",
    "rrelu_",
    "relu",
    "relu6",
    "relu_",
    "selu",
    "selu_",
    "sigmoid",
    "silu",
    "softmax",
    "softmin",
    "softplus",
    "softshrink",
    "softsign",
    "tanh",
    "tanhshrink",
    "threshold",
    "threshold_",
]

_ops = _C.ops


def _finish(input, output, inplace):
    return input.copy_(output) if inplace else output


def _kept(input, inplace):
    """What the function saves for backward: in place, the elements as they were."""
    recorded = inplace and input.requires_grad and holdfast.is_grad_enabled()
    return _ops.clone(input) if recorded else input


def relu(input, inplace=False):
    """max(input, 0)."""
    return input.relu_() if inplace else _ops.relu(input)


def relu_(input):
    """relu in place."""
    return input.relu_()


def hardtanh(input, min_val=-1.0, max_val=1.0, inplace=False):
    """input limited to [min_val, max_val]."""
    if not input.is_floating_point():
        # The limits become integers too, as in PyTorch.
        limited = _ops.clamp(input, int(min_val), int(max_val))
        return _finish(input, limited, inplace)
    return _finish(
        input, _ops.hardtanh(_kept(input, inplace), min_val, max_val), inplace
    )


def relu6(input, inplace=False):
    """input limited to [0, 6]."""
    return hardtanh(input, 0, 6, inplace)


def leaky_relu(input, negative_slope=0.01, inplace=False):
    """input where positive, else negative_slope * input."""
    return _finish(
        input, _ops.leaky_relu(_kept(input, inplace), negative_slope), inplace
    )


def prelu(input, weight):
    """leaky_relu with a learned slope: one, or one per channel (dimension 1)."""
    if weight.numel() != 1:
        if input.dim() < 2 or input.shape[1] != weight.numel():
            raise RuntimeError(
                "Mismatch of parameter numbers and input channel size. Found "
                f"parameter numbers = {weight.numel()} and input "
                f"{tuple(input.shape)}."
            )
        weight = weight.reshape([1, -1] + [1] * (input.dim() - 2))
    elif input.dim() == 0:
        weight = weight.reshape(())
    result = holdfast.where(input > 0, input, input * weight)
    return _C.show_as(result, "PreluBackward0", input, weight)


def threshold(input, threshold, value, inplace=False):
    """input where above threshold, else value."""
    if not input.is_floating_point():
        output = holdfast.where(input > int(threshold), input, int(value))
        return _finish(input, output, inplace)
    return _finish(
        input, _ops.threshold(_kept(input, inplace), threshold, value), inplace
    )


def elu(input, alpha=1.0, inplace=False):
    """input where positive, else alpha * (exp(input) - 1) (Clevert et al. 2016)."""
    return _finish(input, _ops.elu(_kept(input, inplace), alpha), inplace)


def celu(input, alpha=1.0, inplace=False):
    """Continuously differentiable elu (Barron 2017); alpha must not be 0."""
    if alpha == 0:
        raise RuntimeError("ZeroDivisionError: alpha cannot be 0 for CELU")
    return _finish(
        input, _ops.elu(_kept(input, inplace), alpha, 1.0, 1.0 / alpha), inplace
    )


def selu(input, inplace=False):
    """Self-normalising elu (Klambauer et al. 2017)."""
    alpha, scale = 1.6732632423543772, 1.0507009873554805
    return _finish(input, _ops.elu(_kept(input, inplace), alpha, scale), inplace)


def rrelu(input, lower=1.0 / 8, upper=1.0 / 3, training=False, inplace=False):
    """leaky_relu with slopes drawn from [lower, upper) (Xu et al. 2015).

    Outside of training the slope is their mean.
    """
    if lower > upper:
        raise RuntimeError(
            "Lower bound should be less than or equal to the upper bound"
        )
    if not training:
        return leaky_relu(input, (lower + upper) / 2, inplace)
    slope = holdfast.empty(tuple(input.shape), dtype=input.dtype)
    slope.uniform_(lower, upper)
    output = holdfast.where(input >= 0, input, input * slope)
    return _finish(input, output, inplace)


def gelu(input, approximate="none"):
    """input * Phi(input), Phi the normal distribution (Hendrycks & Gimpel 2016).

    approximate="tanh" uses the paper's approximation.
    """
    return _ops.gelu(input, approximate)


def silu(input, inplace=False):
    """input * sigmoid(input)."""
    return _finish(input, _ops.silu(_kept(input, inplace)), inplace)


def mish(input, inplace=False):
    """input * tanh(softplus(input)) (Misra 2019)."""
    return _finish(input, _ops.mish(_kept(input, inplace)), inplace)


def hardsigmoid(input, inplace=False):
    """relu6(input + 3) / 6."""
    return _finish(input, _ops.hardsigmoid(_kept(input, inplace)), inplace)


def hardswish(input, inplace=False):
    """input * relu6(input + 3) / 6 (Howard et al. 2019)."""
    return _finish(input, _ops.hardswish(_kept(input, inplace)), inplace)


def sigmoid(input):
    """1 / (1 + exp(-input))."""
    return _ops.sigmoid(input)


def tanh(input):
    """Hyperbolic tangent."""
    return _ops.tanh(input)


def tanhshrink(input):
    """input - tanh(input)."""
    return input - input.tanh()


def hardshrink(input, lambd=0.5):
    """input where |input| > lambd, else 0."""
    return _ops.hardshrink(input, lambd)


def softshrink(input, lambd=0.5):
    """input moved towards 0 by lambd, and 0 where it would pass it."""
    return _ops.softshrink(input, lambd)


def softplus(input, beta: float = 1, threshold: float = 20):
    """log(1 + exp(beta * input)) / beta; linear where beta * input > threshold."""
    return _ops.softplus(input, beta, threshold)


def softsign(input):
    """input / (1 + |input|)."""
    if not input.is_floating_point():
        return input / (_ops.abs(input) + 1)
    return _ops.softsign(input)


def logsigmoid(input):
    """log(sigmoid(input)), without overflow."""
    result = _ops.softplus(input, -1.0, math.inf)
    return _C.show_as(result, "LogSigmoidBackward0", input)


def glu(input, dim=-1):
    """a * sigmoid(b), a and b the halves of input along dim (Dauphin et al. 2017)."""
    size = input.shape[dim]
    if size % 2 != 0:
        raise RuntimeError(
            f"Halving dimension must be even, but dimension {dim} is size {size}"
        )
    result = input.narrow(dim, 0, size // 2) * (
        input.narrow(dim, size // 2, size // 2).sigmoid()
    )
    return _C.show_as(result, "GluBackward0", input)


def softmax(input, dim=None, _stacklevel=3, dtype=None):
    """exp(input) normalised to sum 1 along dim."""
    return _ops.softmax(
        input, _softmax_dim("softmax", input, dim, _stacklevel), dtype=dtype
    )


def softmin(input, dim=None, _stacklevel=3, dtype=None):
    """softmax(-input)."""
    return _ops.softmax(
        -input, _softmax_dim("softmin", input, dim, _stacklevel), dtype=dtype
    )


def log_softmax(input, dim=None, _stacklevel=3, dtype=None):
    """Logarithm of softmax along dim, without overflow."""
    return _ops.log_softmax(
        input, _softmax_dim("log_softmax", input, dim, _stacklevel), dtype=dtype
    )


def _softmax_dim(name, input, dim, stacklevel):
    if dim is not None:
        return dim
    # What PyTorch does, with the warning that it gives.
    import warnings

    warnings.warn(
        f"Implicit dimension choice for {name} has been deprecated. Change the call "
        "to include dim=X as an argument.",
        stacklevel=stacklevel,
    )
    return 0 if input.dim() in (0, 1, 3) else 1


def gumbel_softmax(logits, tau: float = 1, hard=False, eps=1e-10, dim=-1):
    """Sample of a relaxed categorical distribution (Jang et al. 2017).

    `hard`: one-hot values with the gradient of the relaxed ones.
    """
    if eps != 1e-10:
        warnings.warn("`eps` parameter is deprecated and has no effect.", stacklevel=2)
    drawn = holdfast.empty(tuple(logits.shape), dtype=logits.dtype).exponential_()
    # A 0 among them would make all of a row NaN.
    noise = -drawn.clamp(min=holdfast.finfo(logits.dtype).tiny).log()
    soft = ((logits + noise) / tau).softmax(dim)
    if not hard:
        return soft
    index = soft.argmax(dim, keepdim=True)
    one_hot = holdfast.zeros(tuple(logits.shape), dtype=logits.dtype)
    return one_hot.scatter(dim, index, 1.0) - soft.detach() + soft


def _inplace_of(f):
    def inplace(input, *args, **kwargs):
        return f(input, *args, inplace=True, **kwargs)

    inplace.__name__ = inplace.__qualname__ = f.__name__ + "_"
    inplace.__doc__ = f"{f.__name__} in place."
    return inplace


celu_ = _inplace_of(celu)
elu_ = _inplace_of(elu)
hardtanh_ = _inplace_of(hardtanh)
leaky_relu_ = _inplace_of(leaky_relu)
rrelu_ = _inplace_of(rrelu)
selu_ = _inplace_of(selu)
threshold_ = _inplace_of(threshold)
