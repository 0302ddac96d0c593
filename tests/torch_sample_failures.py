# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Which of PyTorch's op samples differ under Holdfast, and why: the one table of
test_torch_samples.py, which fails for a difference that is not here and for a row
that no longer differs.
"""

import dataclasses
import re


@dataclasses.dataclass(frozen=True)
class Failure:
    """ops: names as torch_samples.op_infos() has them. what: "values", "gradients" or
    "" for both. torch: a pattern of the PyTorch versions that it is about."""

    ops: str
    reason: str
    what: str = ""
    torch: str = ""

    def covers(self, name, what, version):
        return (
            name in self.ops.split()
            and self.what in ("", what)
            and re.match(self.torch, version) is not None
        )


OLD = r"1\.13"
NEW = r"2\."

# Ops that draw numbers: the generators differ, so shapes and types are compared.
RANDOM = set(
    """
    bernoulli cauchy exponential geometric log_normal multinomial normal
    normal.in_place normal.number_mean rand_like randint randint_like randn randn_like
    uniform nn.functional.alpha_dropout nn.functional.dropout nn.functional.dropout2d
    nn.functional.dropout3d nn.functional.feature_alpha_dropout.with_train
    nn.functional.fractional_max_pool2d nn.functional.fractional_max_pool3d
    nn.functional.rrelu pca_lowrank svd_lowrank
    nn.functional.multi_head_attention_forward
    nn.functional.scaled_dot_product_attention
    nn.functional._scaled_dot_product_attention
    """.split()
)
# Their elements are what the memory held.
EMPTY = {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty"} | {
    "new_empty_strided"
}


def _svd(torch, result):
    """Singular vectors have a sign to choose, and the rows beyond the rank more than
    that: the values, and the product that they give."""
    U, S, V = result
    k = S.shape[-1]
    right = V if V.shape[-2] == k or type(result).__name__ != "svd" else V.mT
    return S, (U[..., :k] * S.unsqueeze(-2)) @ right[..., :k, :]


def _torch_svd(torch, result):
    U, S, V = result
    k = S.shape[-1]
    return S, (U[..., :k] * S.unsqueeze(-2)) @ V.mT[..., :k, :]


def _eigh(torch, result):
    """Eigenvectors have a sign to choose: the values, and the matrix they give."""
    L, Q = result
    if Q.dim() < 2:
        return L
    return L, (Q * L.unsqueeze(-2)) @ Q.mT


def _unique(torch, result):
    """Without `sorted`, the order is nobody's promise: sorted values, and how many
    there are of each. (With inverse: what the indices give back.)"""
    if isinstance(result, torch.Tensor):
        return torch.sort(result.reshape(-1))[0], tuple(result.shape)
    return torch.sort(result[0].reshape(-1))[0], [tuple(r.shape) for r in result[1:]]


# name -> what of a result is compared, where PyTorch leaves the rest open.
COMPARED_AS = {
    "svd": _torch_svd,
    "linalg.svd": _svd,
    "linalg.eigh": _eigh,
    "symeig": _eigh,
    "unique": _unique,
}

# (op, what) of which PyTorch 1.13 returns memory that nobody wrote.
UNDEFINED = {("sgn", "gradients"), ("as_strided_scatter", "gradients")}

FAILURES = [
    # ---- both
    Failure("sparse.sampled_addmm", "no compressed sparse tensors"),
    Failure("chalf", "no complex numbers of half precision"),
    Failure(
        "cholesky_inverse cholesky_solve",
        "only one triangle of the factor is read, and the other one has no gradient; "
        "PyTorch's formula fills it",
        "gradients",
    ),
    Failure(
        "linalg.pinv.hermitian",
        "the gradient is symmetric; PyTorch's is that of a matrix without symmetry. "
        "Through a symmetric input both give the same",
        "gradients",
    ),
    # ---- PyTorch 2
    Failure("sparse.mm.reduce", "no compressed sparse tensors", torch=NEW),
    Failure(
        "nn.functional.linear",
        "weight is a matrix; 2 also takes a vector, for one output",
        torch=NEW,
    ),
    Failure(
        "cov",
        "float32 weights of float64 numbers: PyTorch divides by their sum in float32",
        "gradients",
        NEW,
    ),
    Failure("hash_tensor", "no elements of type uint64", "values", NEW),
    # ---- PyTorch 1.13
    Failure(
        "__getitem__",
        "a list of lists is one index tensor, as in NumPy and later releases; 1.13 "
        "takes it for a tuple",
        torch=OLD,
    ),
    Failure(
        "linalg.lstsq",
        "the residuals have a gradient, as in later releases",
        "gradients",
        OLD,
    ),
    Failure("aminmax", "1.13 returns shape (1,) for a number", "values", OLD),
    Failure(
        "as_strided_scatter",
        "refuses elements of src that share a place: which one stays is undefined",
        "values",
        OLD,
    ),
    Failure(
        "histogramdd",
        "samples with edges out of order, whose counts mean nothing",
        "values",
        OLD,
    ),
    Failure(
        "native_layer_norm",
        "of one element the result is 0; PyTorch's rounding leaves 4e-4",
        "values",
        OLD,
    ),
    Failure(
        "__rpow__",
        "PyTorch copies the base, which loses its gradient",
        "gradients",
        OLD,
    ),
]
