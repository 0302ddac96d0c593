# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Normalisation. Inputs are float tensors; weight and bias have their type."""

import holdfast
from holdfast import _C

__all__ = [
    "batch_norm",
    "group_norm",
    "instance_norm",
    "layer_norm",
    "rms_norm",
]

_ops = _C.ops


def _mixed(input, *parameters):
    """Whether a 16-bit input meets float32 parameters, as under autocast: it is
    normalised in float32, and the result has the input's type."""
    return input.dtype in (holdfast.float16, holdfast.bfloat16) and any(
        p is not None and p.dtype is holdfast.float32 for p in parameters
    )


def batch_norm(
    input,
    running_mean,
    running_var,
    weight=None,
    bias=None,
    training=False,
    momentum=0.1,
    eps=1e-5,
):
    """Batch normalisation (Ioffe & Szegedy 2015) over all dimensions but 1.

    input [N, C, ...]; the other tensors are [C]. In training, statistics come
    from the batch (biased variance) and move the running ones by `momentum`
    (unbiased variance); otherwise the running ones are used.
    """
    if _mixed(input, running_mean, weight):
        wide = input.float()
        statistics = running_mean, running_var
        result = batch_norm(wide, *statistics, weight, bias, training, momentum, eps)
        return result.to(input.dtype)
    if input.dim() == 1 and input.numel() == 0:
        return input.clone()
    if not training:
        if running_mean is None or running_var is None:
            raise RuntimeError(
                "Expected running_mean and running_var to be defined when "
                "training=False"
            )
        return _ops.batch_norm(input, weight, bias, running_mean, running_var, eps)[0]
    shape = tuple(input.shape)
    count = input.numel() // shape[1] if len(shape) > 1 and shape[1] else 0
    if count == 1:
        raise ValueError(
            "Expected more than 1 value per channel when training, got input "
            f"size {input.shape}"
        )
    result, mean, var = _ops.batch_norm(input, weight, bias, None, None, eps)
    if running_mean is not None:
        with holdfast.no_grad():
            _move(running_mean, mean, momentum)
            _move(running_var, var, momentum, count / (count - 1) if count else 1.0)
    return result


def _move(running, fresh, momentum, factor=1.0):
    """running = (1 - momentum) running + momentum factor fresh."""
    running.mul_(1 - momentum)
    running.add_(fresh.detach() * (momentum * factor))


def _group_norm(input, weight, bias, groups, dims, eps, center=True):
    if _mixed(input, weight):
        wide = input.float()
        result = _ops.group_norm(wide, weight, bias, groups, dims, eps, center)[0]
        on = _C.autocast_is_on(input.is_cuda)
        return result if on and input.is_cuda else result.to(input.dtype)
    return _ops.group_norm(input, weight, bias, groups, dims, eps, center)[0]


def _normalized_shape(input, normalized_shape, **affine):
    """normalized_shape as a tuple, checked with PyTorch's words."""
    if isinstance(normalized_shape, int):
        normalized_shape = (normalized_shape,)
    shape = tuple(normalized_shape)
    count = len(shape)
    if count == 0:
        raise RuntimeError(
            "Expected normalized_shape to be at least 1-dimensional, i.e., "
            "containing at least one element, but got normalized_shape = []"
        )
    for name, tensor in affine.items():
        if tensor is not None and tuple(tensor.shape) != shape:
            raise RuntimeError(
                f"Expected {name} to be of same shape as normalized_shape, but got "
                f"{name} of shape {list(tensor.shape)} and normalized_shape = "
                f"{list(shape)}"
            )
    if tuple(input.shape)[-count:] != shape:
        raise RuntimeError(
            f"Given normalized_shape={list(shape)}, expected input with "
            f"shape [*, {', '.join(map(str, shape))}], but got input of "
            f"size{list(input.shape)}"
        )
    return shape


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    """Layer normalisation (Ba et al. 2016) over the last dimensions.

    `normalized_shape` must equal the input's last sizes; weight and bias have
    that shape.
    """
    shape = _normalized_shape(input, normalized_shape, weight=weight, bias=bias)
    return _group_norm(input, weight, bias, 1, len(shape), eps)


def rms_norm(input, normalized_shape, weight=None, eps=None):
    """input over the root of its mean square (Zhang & Sennrich 2019), times weight.

    As layer_norm otherwise; eps None is the type's machine epsilon.
    """
    shape = _normalized_shape(input, normalized_shape, weight=weight)
    if eps is None:
        eps = holdfast.finfo(input.dtype).eps
    return _group_norm(input, weight, None, 1, len(shape), eps, False)


def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5):
    """Group normalisation (Wu & He 2018): input [N, C, ...], weight and bias [C]."""
    if input.dim() < 2:
        raise RuntimeError(
            "Expected at least 2 dimensions for input tensor but received "
            f"{input.dim()}"
        )
    return _group_norm(input, weight, bias, num_groups, 0, eps)


def instance_norm(
    input,
    running_mean=None,
    running_var=None,
    weight=None,
    bias=None,
    use_input_stats=True,
    momentum=0.1,
    eps=1e-5,
):
    """Each channel of each sample normalised by itself; input [N, C, ...].

    With running statistics, they are averaged over the batch and moved, or,
    without `use_input_stats`, used.
    """
    if not use_input_stats:
        if running_mean is None or running_var is None:
            raise RuntimeError(
                "Expected running_mean and running_var to be defined when "
                "use_input_stats=False"
            )
        return batch_norm(
            input, running_mean, running_var, weight, bias, False, momentum, eps
        )
    shape = tuple(input.shape)
    count = 1
    for size in shape[2:]:
        count *= size
    if count == 1:
        raise ValueError(
            "Expected more than 1 spatial element when training, got input size "
            f"{input.shape}"
        )
    result, mean, rstd = _ops.group_norm(input, weight, bias, shape[1], 0, eps, True)
    if running_mean is not None and count:
        with holdfast.no_grad():
            var = (rstd.detach() ** -2 - eps).mean(0)
            _move(running_mean, mean.detach().mean(0), momentum)
            _move(running_var, var, momentum, count / (count - 1))
    return result
