# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Window arguments (one int or two), and refusals of what is not supported."""

from holdfast.errors import UnsupportedError


def pair(value):
    """(value, value), or the two values of a sequence; ValueError otherwise."""
    if isinstance(value, int):
        return (value, value)
    values = tuple(value)
    if len(values) == 1:
        return values * 2
    if len(values) != 2:
        raise ValueError(f"one int or two are expected. Got {value!r}.")
    return values


def same_padding(padding, kernel_size, stride, dilation):
    """(top, bottom, left, right) for padding "same" or "valid"."""
    if padding not in ("same", "valid"):
        raise ValueError(
            f"Invalid padding string '{padding}', should be one of 'valid', 'same'"
        )
    if padding == "valid":
        return (0, 0, 0, 0)
    if any(step != 1 for step in stride):
        raise ValueError("padding='same' is not supported for strided convolutions")
    sides = []
    for size, spread in zip(kernel_size, dilation):
        total = spread * (size - 1)
        # The extra row or column goes to the end, as in PyTorch.
        sides += [total // 2, total - total // 2]
    return tuple(sides)


def refuse(owner, **arguments):
    """NotImplementedError naming the first argument that is set."""
    for name, value in arguments.items():
        if value is not None and value is not False:
            raise UnsupportedError(
                f"holdfast has no {owner}({name}={value!r}); leave {name} out."
            )
