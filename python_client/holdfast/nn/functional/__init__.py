# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Layers and losses as functions, with PyTorch's names: `import ... as F`."""

from holdfast.missing import module_getattr

from .activation import *  # noqa: F401,F403
from .activation import __all__ as _activation
from .attention import *  # noqa: F401,F403
from .attention import __all__ as _attention
from .conv import *  # noqa: F401,F403
from .conv import __all__ as _conv
from .dropout import *  # noqa: F401,F403
from .dropout import __all__ as _dropout
from .embedding import *  # noqa: F401,F403
from .embedding import __all__ as _embedding
from .loss import *  # noqa: F401,F403
from .loss import __all__ as _loss
from .loss_binary import *  # noqa: F401,F403
from .loss_binary import __all__ as _loss_binary
from .normalization import *  # noqa: F401,F403
from .normalization import __all__ as _normalization
from .pooling import *  # noqa: F401,F403
from .pooling import __all__ as _pooling
from .sizes import refuse  # noqa: F401

__all__ = [
    *_activation,
    *_attention,
    *_conv,
    *_dropout,
    *_embedding,
    *_loss,
    *_loss_binary,
    *_normalization,
    *_pooling,
]

__getattr__ = module_getattr("torch.nn.functional")
