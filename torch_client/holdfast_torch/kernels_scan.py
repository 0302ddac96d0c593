# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Running sums and extremes."""

from holdfast import _C

from holdfast_torch.composites import (
    declare,
    declare_holdfast as composite,
    from_holdfast,
    to_holdfast,
)

_ops = _C.ops


@composite("_logcumsumexp")
def _logcumsumexp(self, dim):
    return _ops.logcumsumexp(self, dim)


def _extreme(name):
    """PyTorch asks for them in tensors that it has made."""

    @declare(f"_{name}_helper")
    def kernel(self, values, indices, dim):
        found = getattr(_ops, name)(to_holdfast(self), dim)
        for out, value in zip((values, indices), found):
            out.copy_(from_holdfast(value))


_extreme("cummax")
_extreme("cummin")
