# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The `reduction` argument that every loss takes."""

import warnings

from holdfast import _C

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


def reduced(loss, reduction, node=None, *inputs):
    """`loss` as it is, its mean, or its sum. With `node`, its grad_fn is shown as
    the node of that name of a function of `inputs`."""
    if reduction == "mean":
        loss = loss.mean()
    elif reduction == "sum":
        loss = loss.sum()
    return loss if node is None else _C.show_as(loss, node, *inputs)
