# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.channels_last and its like, torch.strided and its like: how elements lie.

contiguous(), clone(), is_contiguous() and empty_like() and its like do what a format
says. Elsewhere one is accepted wherever PyTorch takes it, and tensors keep their
strides.
"""


class _Name:
    def __init__(self, name):
        self._name = name

    def __repr__(self):
        return f"torch.{self._name}"

    def __reduce__(self):
        return self._name


class memory_format(_Name):
    """The type of channels_last, contiguous_format and preserve_format."""


class layout(_Name):
    """The type of strided and sparse_coo."""


channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")
contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
strided = layout("strided")
sparse_coo = layout("sparse_coo")


# Dimensions from the outermost to the innermost, by the name of the format.
_ORDERS = {"channels_last": (0, 2, 3, 1), "channels_last_3d": (0, 2, 3, 4, 1)}


def _named_order(format, rank):
    """None for row-major order. RuntimeError where the rank does not fit."""
    order = _ORDERS.get(format._name)
    if order is not None and len(order) != rank:
        raise RuntimeError(
            f"required rank {len(order)} tensor to use {format._name} format"
        )
    return order


def _order_of_strides(shape, strides):
    """Row-major order, changed where the strides tell another; one of 0 tells
    nothing. As KeepOrder in ops/infer_rule.h has it for results of ops."""
    order = list(range(len(shape)))
    for first in reversed(range(len(shape) - 1)):
        moving = first
        for place in range(first + 1, len(shape)):
            outer, inner = order[moving], order[place]
            if 0 in (strides[outer], strides[inner]):
                continue
            if strides[outer] > strides[inner]:
                break
            if strides[outer] < strides[inner] or shape[inner] > shape[outer]:
                order[moving], order[place] = inner, outer
                moving = place
    return order


def order_of(input, format):
    """The order of dimensions, from the outermost to the innermost, of a new tensor
    that is to lie as the format says, or as input does; None for row-major."""
    if format is None or format is preserve_format:
        if input.is_contiguous():
            return None
        order = _order_of_strides(tuple(input.shape), input.stride())
        return None if order == sorted(order) else tuple(order)
    return _named_order(format, input.dim())


def in_order(tensor, order):
    """`tensor`, whose dimensions are in `order`, with them in their own."""
    places = [0] * len(order)
    for place, dim in enumerate(order):
        places[dim] = place
    return tensor.permute(places)


def contiguous(input, memory_format=contiguous_format):
    """Tensor.contiguous(memory_format=...)."""
    if memory_format is preserve_format:
        raise RuntimeError(
            "preserve memory format is unsupported by the contiguous operator"
        )
    order = _named_order(memory_format, input.dim())
    if order is None:
        return input.contiguous()
    if input.permute(order).is_contiguous():
        return input
    return in_order(input.permute(order).contiguous(), order)


def is_contiguous(input, memory_format=contiguous_format):
    """Tensor.is_contiguous(memory_format=...)."""
    order = _ORDERS.get(memory_format._name)
    if order is None:
        return input.is_contiguous()
    return len(order) == input.dim() and input.permute(order).is_contiguous()
