# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.functional: the functions that PyTorch has in that file, which are all
torch's own, too."""

import holdfast
from holdfast.missing import module_getattr

__all__ = """
    atleast_1d atleast_2d atleast_3d align_tensors block_diag broadcast_shapes
    broadcast_tensors cartesian_prod cdist chain_matmul einsum istft lu meshgrid norm
    split stft tensordot unique unique_consecutive
""".split()
__all__ = [name for name in __all__ if hasattr(holdfast, name)]
globals().update((name, getattr(holdfast, name)) for name in __all__)

__getattr__ = module_getattr("torch.functional")
