# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Normalisation, as composites over means."""

import holdfast

__all__ = ["batch_norm", "group_norm", "instance_norm", "layer_norm"]


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
    dims = [d for d in range(input.dim()) if d != 1]
    shape = [1, -1] + [1] * (input.dim() - 2)
    if training:
        count = input.numel() // input.shape[1]
        if count <= 1:
            raise ValueError(
                "Expected more than 1 value per channel when training, got input "
                f"size {tuple(input.shape)}"
            )
        mean = input.mean(dims, keepdim=True)
        centred = input - mean
        var = (centred * centred).mean(dims, keepdim=True)
        if running_mean is not None:
            with holdfast.no_grad():
                running_mean.mul_(1 - momentum)
                running_mean.add_(mean.detach().reshape(-1) * momentum)
                running_var.mul_(1 - momentum)
                unbiased = momentum * count / (count - 1)
                running_var.add_(var.detach().reshape(-1) * unbiased)
    else:
        if running_mean is None or running_var is None:
            raise RuntimeError(
                "Expected running_mean and running_var to be defined when "
                "training=False"
            )
        centred = input - running_mean.reshape(shape)
        var = running_var.reshape(shape)
    scale = (var + eps).rsqrt()
    if weight is not None:
        scale = scale * weight.reshape(shape)
    result = centred * scale
    return result if bias is None else result + bias.reshape(shape)


def layer_norm(input, normalized_shape, weight=None, bias=None, eps=1e-5):
    """Layer normalisation (Ba et al. 2016) over the last dimensions.

    `normalized_shape` must equal the input's last sizes; weight and bias have
    that shape.
    """
    if isinstance(normalized_shape, int):
        normalized_shape = (normalized_shape,)
    normalized_shape = tuple(normalized_shape)
    count = len(normalized_shape)
    if count == 0 or tuple(input.shape)[-count:] != normalized_shape:
        raise RuntimeError(
            f"Given normalized_shape={list(normalized_shape)}, expected input with "
            f"shape [*, {', '.join(map(str, normalized_shape))}], but got input of "
            f"size{list(input.shape)}"
        )
    result = _standardize(input, list(range(-count, 0)), eps)
    if weight is not None:
        result = result * weight
    return result if bias is None else result + bias


def group_norm(input, num_groups, weight=None, bias=None, eps=1e-5):
    """Group normalisation (Wu & He 2018): input [N, C, ...], weight and bias [C]."""
    batch, channels = input.shape[:2]
    if channels % num_groups != 0:
        raise RuntimeError(
            "Expected number of channels in input to be divisible by num_groups, but "
            f"got input of shape {list(input.shape)} and num_groups={num_groups}"
        )
    groups = input.reshape(batch, num_groups, -1)
    result = _standardize(groups, [-1], eps).reshape(input.shape)
    shape = [1, -1] + [1] * (input.dim() - 2)
    if weight is not None:
        result = result * weight.reshape(shape)
    return result if bias is None else result + bias.reshape(shape)


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
        return batch_norm(
            input, running_mean, running_var, weight, bias, False, momentum, eps
        )
    if running_mean is not None:
        dims = list(range(2, input.dim()))
        with holdfast.no_grad():
            fresh = input.detach()
            mean = fresh.mean(dims, keepdim=True)
            count = input.numel() // (input.shape[0] * input.shape[1])
            var = ((fresh - mean) ** 2).mean(dims) * (count / (count - 1))
            mean = mean.reshape(input.shape[:2]).mean(0)
            running_mean.mul_(1 - momentum).add_(mean * momentum)
            running_var.mul_(1 - momentum).add_(var.mean(0) * momentum)
    return group_norm(input, input.shape[1], weight, bias, eps)


def _standardize(input, dims, eps):
    centred = input - input.mean(dims, keepdim=True)
    var = (centred * centred).mean(dims, keepdim=True)
    return centred * (var + eps).rsqrt()
