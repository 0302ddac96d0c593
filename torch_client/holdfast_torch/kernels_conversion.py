# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""What `Module.to` asks about tensors of two devices."""

import torch

from holdfast_torch.composites import declare


@declare("_has_compatible_shallow_copy_type")
def has_compatible_shallow_copy_type(self, other):
    """Whether `self.data = other` may make `self` a tensor of the device, or one of the
    device a tensor of the CPU. PyTorch's own answer names the backends that may, and
    no other device can be among them (c10/core/TensorImpl.h). Without this
    `Module.to` makes new parameters: weights that two modules share become two, and an
    optimizer made before keeps those of the CPU."""
    return self.layout == other.layout == torch.strided
