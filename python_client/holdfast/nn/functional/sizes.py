# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Window arguments (one int or several), and refusals of what is not supported."""

from holdfast.errors import UnsupportedError


def spread(value, count):
    """(value, ...) `count` times, or the values of a sequence of 1 or `count`."""
    if isinstance(value, int):
        return (value,) * count
    values = tuple(value)
    if len(values) == 1:
        return values * count
    if len(values) != count:
        raise ValueError(f"one int or {count} are expected. Got {value!r}.")
    return values


def pair(value):
    """(value, value), or the two values of a sequence; ValueError otherwise."""
    return spread(value, 2)


def same_padding(padding, kernel_size, stride, dilation):
    """((before, after), ...) per axis for padding "same" or "valid"."""
    if padding not in ("same", "valid"):
        raise ValueError(
            f"Invalid padding string '{padding}', should be one of 'valid', 'same'"
        )
    if padding == "valid":
        return tuple((0, 0) for _ in kernel_size)
    if any(step != 1 for step in stride):
        raise ValueError("padding='same' is not supported for strided convolutions")
    totals = [d * (size - 1) for size, d in zip(kernel_size, dilation)]
    # The extra row or column goes to the end, as in PyTorch.
    return tuple((total // 2, total - total // 2) for total in totals)


def shape_text(tensor):
    """ "[2, 3]", as PyTorch prints a shape."""
    return str(list(tensor.shape))


def refuse(owner, **arguments):
    """NotImplementedError naming the first argument that is set."""
    for name, value in arguments.items():
        if value is not None and value is not False:
            raise UnsupportedError(
                f"holdfast has no {owner}({name}={value!r}); leave {name} out."
            )
