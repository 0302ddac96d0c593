# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Initial values, written into tensors in place, outside the autograd graph.

Every function returns the tensor it was given.
"""

import functools
import math
import warnings

import holdfast


def calculate_gain(nonlinearity, param=None):
    """The factor by which a nonlinearity shrinks a normal signal's deviation."""
    if nonlinearity in ("linear", "sigmoid", "conv1d", "conv2d", "conv3d"):
        return 1
    if nonlinearity == "tanh":
        return 5.0 / 3
    if nonlinearity == "relu":
        return math.sqrt(2.0)
    if nonlinearity == "selu":
        return 3.0 / 4
    if nonlinearity == "leaky_relu":
        if param is None:
            slope = 0.01
        elif isinstance(param, (int, float)) and not isinstance(param, bool):
            slope = param
        else:
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + slope**2))
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


def uniform_(tensor, a=0.0, b=1.0, generator=None):
    """Uniform numbers in [a, b)."""
    with holdfast.no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor, mean=0.0, std=1.0, generator=None):
    """Normal numbers."""
    with holdfast.no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(tensor, mean=0.0, std=1.0, a=-2.0, b=2.0, generator=None):
    """Normal numbers limited to [a, b], by inverting the distribution function."""

    def phi(x):
        return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0

    low, high = phi((a - mean) / std), phi((b - mean) / std)
    with holdfast.no_grad():
        uniform = holdfast.empty(tuple(tensor.shape), dtype=tensor.dtype)
        uniform.uniform_(2 * low - 1, 2 * high - 1, generator=generator)
        values = uniform.erfinv() * (std * math.sqrt(2.0)) + mean
        return tensor.copy_(values.clamp(a, b))


def constant_(tensor, val):
    """`val` everywhere."""
    with holdfast.no_grad():
        return tensor.fill_(val)


def ones_(tensor):
    """One everywhere."""
    return constant_(tensor, 1.0)


def zeros_(tensor):
    """Zero everywhere."""
    with holdfast.no_grad():
        return tensor.zero_()


def eye_(tensor):
    """The identity; the tensor must be 2-D (ValueError)."""
    if tensor.dim() != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    with holdfast.no_grad():
        return tensor.copy_(holdfast.eye(*tensor.shape, dtype=tensor.dtype))


def dirac_(tensor, groups=1):
    """A convolution's weight [out, in, ...] of 3 to 5 dimensions that hands on as
    many input channels as it can, in each group. ValueError for other shapes."""
    if tensor.dim() not in (3, 4, 5):
        raise ValueError(
            "Only tensors with 3, 4, or 5 dimensions are supported. "
            f"Got {tensor.dim()} dimensions."
        )
    outputs, inputs, *window = tuple(tensor.shape)
    if groups < 1 or outputs % groups:
        raise ValueError(
            f"dim 0 must be divisible by groups. Got {outputs} and groups={groups}."
        )
    each = outputs // groups
    channels = holdfast.eye(each, inputs, dtype=tensor.dtype).repeat(groups, 1)
    with holdfast.no_grad():
        tensor.zero_()
        if tensor.numel():
            tensor[(..., *(size // 2 for size in window))] = channels
        return tensor


def orthogonal_(tensor, gain: float = 1, generator=None):
    """A (half) orthogonal matrix times gain: the rows, or the columns if there are
    more rows, are orthogonal, with all dimensions but the first as one (Saxe et al.
    2013). ValueError for fewer than 2 dimensions."""
    if tensor.dim() < 2:
        raise ValueError(
            "Only tensors with 2 or more dimensions are supported. "
            f"Got {tensor.dim()} dimensions."
        )
    if not tensor.numel():
        return tensor
    rows = tensor.shape[0]
    columns = tensor.numel() // rows
    # 16-bit floats have no factorisation.
    wide = tensor.dtype if tensor.dtype is holdfast.float64 else holdfast.float32
    size = (max(rows, columns), min(rows, columns))
    with holdfast.no_grad():
        normal = holdfast.randn(size, dtype=wide, generator=generator)
        q, r = holdfast.linalg.qr(normal)
        # Signs that make the distribution uniform (Mezzadri 2006).
        q = q * holdfast.where(r.diagonal() < 0, -1.0, 1.0)
        q = q if rows >= columns else q.mT
        return tensor.copy_((q * gain).reshape(tuple(tensor.shape)))


def sparse_(tensor, sparsity, std=0.01, generator=None):
    """Normal numbers, and ceil(sparsity * rows) zeros in each column of a matrix
    (Martens 2010). ValueError unless it is 2-D and 0 <= sparsity <= 1."""
    if tensor.dim() != 2:
        raise ValueError(
            "Only tensors with 2 dimensions are supported. "
            f"Got {tensor.dim()} dimensions."
        )
    if not 0 <= sparsity <= 1:
        raise ValueError(f"sparsity must be in [0, 1]. Got {sparsity}.")
    rows, columns = tensor.shape
    zeros = math.ceil(sparsity * rows)
    with holdfast.no_grad():
        tensor.normal_(0, std, generator=generator)
        # The ranks of random numbers are a permutation of each column.
        order = holdfast.rand((rows, columns), generator=generator).argsort(0)
        return tensor.masked_fill_(order < zeros, 0.0)


def xavier_uniform_(tensor, gain=1.0, generator=None):
    """Uniform numbers of the deviation that Glorot & Bengio 2010 derive."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    bound = math.sqrt(3.0) * gain * math.sqrt(2.0 / float(fan_in + fan_out))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor, gain=1.0, generator=None):
    """Normal numbers of the deviation that Glorot & Bengio 2010 derive."""
    fan_in, fan_out = _calculate_fan_in_and_fan_out(tensor)
    std = gain * math.sqrt(2.0 / float(fan_in + fan_out))
    return normal_(tensor, 0.0, std, generator)


def kaiming_uniform_(
    tensor, a: float = 0, mode="fan_in", nonlinearity="leaky_relu", generator=None
):
    """Uniform numbers of the deviation that He et al. 2015 derive."""
    if 0 in tuple(tensor.shape):
        return tensor
    gain = calculate_gain(nonlinearity, a)
    bound = math.sqrt(3.0) * gain / math.sqrt(_calculate_correct_fan(tensor, mode))
    return uniform_(tensor, -bound, bound, generator)


def kaiming_normal_(
    tensor, a: float = 0, mode="fan_in", nonlinearity="leaky_relu", generator=None
):
    """Normal numbers of the deviation that He et al. 2015 derive."""
    if 0 in tuple(tensor.shape):
        return tensor
    gain = calculate_gain(nonlinearity, a)
    std = gain / math.sqrt(_calculate_correct_fan(tensor, mode))
    return normal_(tensor, 0.0, std, generator)


def _calculate_fan_in_and_fan_out(tensor):
    """Inputs and outputs of one unit; ValueError for fewer than 2 dimensions."""
    if tensor.dim() < 2:
        raise ValueError(
            "Fan in and fan out can not be computed for tensor with fewer than 2 "
            "dimensions"
        )
    outputs, inputs, *window = tuple(tensor.shape)
    field = math.prod(window)
    return inputs * field, outputs * field


def _calculate_correct_fan(tensor, mode):
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(
            f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']"
        )
    return _calculate_fan_in_and_fan_out(tensor)[mode == "fan_out"]


def _deprecated(new):
    old = new.__name__[:-1]

    @functools.wraps(new)
    def function(*args, **kwargs):
        warnings.warn(
            f"nn.init.{old} is now deprecated in favor of nn.init.{new.__name__}.",
            stacklevel=2,
        )
        return new(*args, **kwargs)

    function.__name__ = function.__qualname__ = old
    function.__doc__ = f"{new.__name__}(), by its old name; warns."
    return function


uniform = _deprecated(uniform_)
normal = _deprecated(normal_)
constant = _deprecated(constant_)
eye = _deprecated(eye_)
dirac = _deprecated(dirac_)
orthogonal = _deprecated(orthogonal_)
sparse = _deprecated(sparse_)
xavier_uniform = _deprecated(xavier_uniform_)
xavier_normal = _deprecated(xavier_normal_)
kaiming_uniform = _deprecated(kaiming_uniform_)
kaiming_normal = _deprecated(kaiming_normal_)
