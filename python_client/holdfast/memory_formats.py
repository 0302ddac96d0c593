# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.channels_last and its like, torch.strided and its like: how elements lie.

Holdfast decides that by itself: a format is accepted wherever PyTorch takes one, and
tensors keep their strides.
"""


class _Name:
    def __init__(self, name):
        self._name = name

    def __repr__(self):
        return f"torch.{self._name}"

    def __reduce__(self):
        return self._name


class memory_format(_Name):
    """The type of channels_last, contiguous_format and preserve_format."""


class layout(_Name):
    """The type of strided and sparse_coo."""


channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")
contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
strided = layout("strided")
sparse_coo = layout("sparse_coo")
