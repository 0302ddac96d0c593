# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Padding with an input's own elements."""

import holdfast as hf

from holdfast_torch.composites import declare_holdfast as composite, gradients

F = hf.nn.functional


def _pad(name, mode):
    @composite(name)
    def forward(self, padding):
        return F.pad(self, tuple(padding), mode=mode)

    @composite(name + "_backward")
    def backward(grad_output, self, padding):
        return gradients(
            lambda x: F.pad(x, tuple(padding), mode=mode), grad_output, self
        )[0]


for _mode, _name in (("reflect", "reflection"), ("replicate", "replication")):
    for _dims in (1, 2, 3):
        _pad(f"{_name}_pad{_dims}d", _mode)
