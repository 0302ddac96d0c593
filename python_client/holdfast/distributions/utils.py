# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.distributions.utils."""

import holdfast
from holdfast.distributions.parameters import (  # noqa: F401
    EULER as euler_constant,
    broadcast_all as broadcast_all,
    clamp_probs as clamp_probs,
    lazy_property as lazy_property,
    logits_to_probs as logits_to_probs,
    probs_to_logits as probs_to_logits,
)
from holdfast.missing import module_getattr


def tril_matrix_to_vec(mat, diag=0):
    """The lower triangle of matrices [..., n, n] up to diagonal `diag`, row by row."""
    n = mat.shape[-1]
    if not -n <= diag < n:
        raise ValueError(f"diag ({diag}) provided is outside [{-n}, {n - 1}].")
    rows, columns = holdfast.tril_indices(n, n, diag)
    return mat[..., rows, columns]


def vec_to_tril_matrix(vec, diag=0):
    """Matrices whose lower triangle tril_matrix_to_vec() would give as `vec`."""
    size = vec.shape[-1]
    below = 1 + 2 * diag
    n = (below**2 + 8 * size + 4 * abs(diag) * (diag + 1)) ** 0.5
    n = (n - below) / 2
    if round(n) != n:
        raise ValueError(
            f"The size of last dimension is {size} which cannot be expressed as the "
            "lower triangular part of a square D x D matrix."
        )
    n = round(n)
    matrix = vec.new_zeros(tuple(vec.shape[:-1]) + (n, n))
    rows, columns = holdfast.tril_indices(n, n, diag)
    matrix[..., rows, columns] = vec
    return matrix


__getattr__ = module_getattr("torch.distributions.utils")
