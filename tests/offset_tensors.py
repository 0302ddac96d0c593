# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Tensors at addresses that packs of 16 bytes do not fit, for tests of kernels."""


def tensor_at(torch, array, offset):
    """A contiguous tensor that begins `offset` elements into its storage."""
    whole = torch.zeros(array.size + offset, dtype=torch.from_numpy(array).dtype)
    whole[offset:] = torch.from_numpy(array.reshape(-1))
    return whole[offset:].view(array.shape)
