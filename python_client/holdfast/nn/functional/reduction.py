# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The `reduction` argument that every loss takes."""

import warnings

KINDS = ("none", "mean", "sum")


def reduction_of(reduction, size_average=None, reduce=None):
    """The reduction meant, with PyTorch's older boolean arguments applied."""
    if size_average is not None or reduce is not None:
        size_average = True if size_average is None else size_average
        reduce = True if reduce is None else reduce
        reduction = ("mean" if size_average else "sum") if reduce else "none"
        warnings.warn(
            "size_average and reduce args will be deprecated, please use "
            f"reduction='{reduction}' instead.",
            stacklevel=4,
        )
    if reduction not in KINDS:
        raise ValueError(f"{reduction} is not a valid value for reduction")
    return reduction


def reduced(loss, reduction):
    """`loss` as it is, its mean, or its sum."""
    if reduction == "mean":
        return loss.mean()
    return loss.sum() if reduction == "sum" else loss
