# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Copies of what are views to PyTorch."""

import torch

from holdfast_torch.composites import declare


@declare("narrow_copy")
def narrow_copy(self, dim, start, length):
    if dim >= self.dim():  # narrow() refuses the others, by an IndexError
        raise RuntimeError(
            f"narrow_copy: Expected dim {dim} to be one of the {self.dim()} of the "
            "tensor"
        )
    return self.narrow(dim, start, length).clone()


@declare("unbind_copy.int")
def unbind_copy(self, dim=0):
    return [part.clone() for part in torch.unbind(self, dim)]
