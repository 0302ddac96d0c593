# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Local response normalisation (Krizhevsky, Sutskever & Hinton 2012)."""

from .pooling import avg_pool2d
from .padding import pad

__all__ = ["local_response_norm"]


def local_response_norm(input, size, alpha=1e-4, beta=0.75, k=1.0):
    """input / (k + alpha * mean of squares over `size` channels) ** beta.

    input [N, C, ...]; the channels around each one, with zeros beyond the ends.
    """
    if input.dim() < 3:
        raise ValueError(
            "Expected 3D or higher dimensionality input (got "
            f"{input.dim()} dimensions)"
        )
    if input.numel() == 0:
        return input
    n, c = input.shape[:2]
    rows = (input * input).reshape(n, 1, c, input.numel() // (n * c))
    rows = pad(rows, (0, 0, size // 2, (size - 1) // 2))
    mean = avg_pool2d(rows, (size, 1), stride=1).reshape(input.shape)
    return input / (mean * alpha + k).pow(beta)
