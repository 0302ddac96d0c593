# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""What programs take from torch._utils: several tensors as one vector, and back."""

import holdfast

__all__ = ["_flatten_dense_tensors", "_unflatten_dense_tensors"]


def _flatten_dense_tensors(tensors):
    """The elements of all tensors in one 1-D tensor."""
    return holdfast.cat([t.reshape(-1) for t in tensors])


def _unflatten_dense_tensors(flat, tensors):
    """Parts of a 1-D tensor in the shapes of `tensors`, one after the other."""
    parts, start = [], 0
    for tensor in tensors:
        parts.append(flat[start : start + tensor.numel()].view(tensor.shape))
        start += tensor.numel()
    return tuple(parts)
