# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Shape changes as modules."""

from .module import Module


class Flatten(Module):
    """Merges dimensions start_dim .. end_dim into one."""

    def __init__(self, start_dim=1, end_dim=-1):
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input):
        return input.flatten(self.start_dim, self.end_dim)

    def extra_repr(self):
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Splits dimension `dim` into `unflattened_size`; one size may be -1."""

    def __init__(self, dim, unflattened_size):
        super().__init__()
        if not isinstance(dim, int):
            raise TypeError(f"unflatten: dim must be an int. Got {dim!r}.")
        if not all(isinstance(n, int) for n in unflattened_size):
            raise TypeError(
                "unflattened_size must be tuple of ints. Got "
                f"{tuple(unflattened_size)!r}."
            )
        self.dim = dim
        self.unflattened_size = unflattened_size

    def forward(self, input):
        dim = self.dim + input.dim() if self.dim < 0 else self.dim
        shape = tuple(input.shape)
        return input.reshape(
            shape[:dim] + tuple(self.unflattened_size) + shape[dim + 1 :]
        )

    def extra_repr(self):
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"
