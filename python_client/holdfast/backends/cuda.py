# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.backends.cuda: how a GPU computes matrix products."""

from holdfast._numerics import switch


class _Matmul:
    """allow_tf32: float32 factors may be rounded to TF32 (10 bits after the point),
    which is faster; False at first. Sums of 16-bit products are float32 always."""

    allow_tf32 = switch("matmul_tf32")
    allow_fp16_reduced_precision_reduction = True
    allow_bf16_reduced_precision_reduction = True


matmul = _Matmul()


def is_built():
    """Whether this version can compute on a GPU: where a daemon has one."""
    return True
