# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Layers and losses as functions, with PyTorch's names: `import ... as F`."""

from holdfast.amp.autocast_mode import in_float32
from holdfast.distances import pdist  # noqa: F401
from holdfast._registry import name_for_pickle as _name_for_pickle
from holdfast import function_help
from holdfast.missing import module_getattr

from .activation import *  # noqa: F401,F403
from .activation import __all__ as _activation
from .attention import *  # noqa: F401,F403
from .attention import __all__ as _attention
from .attention import _scaled_dot_product_attention  # noqa: F401
from .conv import *  # noqa: F401,F403
from .conv import __all__ as _conv
from .dropouts import *  # noqa: F401,F403
from .dropouts import __all__ as _dropout
from .embedding import *  # noqa: F401,F403
from .embedding import __all__ as _embedding
from .local_response import *  # noqa: F401,F403
from .local_response import __all__ as _local_response
from .loss import *  # noqa: F401,F403
from .loss import __all__ as _loss
from .loss_binary import *  # noqa: F401,F403
from .loss_binary import __all__ as _loss_binary
from .loss_ctc import *  # noqa: F401,F403
from .loss_ctc import __all__ as _loss_ctc
from .loss_linear import *  # noqa: F401,F403
from .loss_linear import __all__ as _loss_linear
from .loss_margin import *  # noqa: F401,F403
from .loss_margin import __all__ as _loss_margin
from .normalization import *  # noqa: F401,F403
from .normalization import __all__ as _normalization
from .padding import *  # noqa: F401,F403
from .padding import __all__ as _padding
from .pooling import *  # noqa: F401,F403
from .pooling import __all__ as _pooling
from .pooling_adaptive import *  # noqa: F401,F403
from .pooling_adaptive import __all__ as _pooling_adaptive
from .pooling_fractional import *  # noqa: F401,F403
from .pooling_fractional import __all__ as _pooling_fractional
from .resampling import *  # noqa: F401,F403
from .resampling import __all__ as _resampling
from .sampling import *  # noqa: F401,F403
from .sampling import __all__ as _sampling
from .shuffling import *  # noqa: F401,F403
from .shuffling import __all__ as _shuffling
from .sizes import refuse  # noqa: F401

__all__ = [
    *_activation,
    *_attention,
    *_conv,
    *_dropout,
    *_embedding,
    *_local_response,
    *_loss,
    *_loss_binary,
    *_loss_ctc,
    *_loss_linear,
    *_loss_margin,
    *_normalization,
    *_padding,
    *_pooling,
    *_pooling_adaptive,
    *_pooling_fractional,
    *_resampling,
    *_sampling,
    *_shuffling,
]

# What autocast computes in float32 though it is made of other ops.
for _name in (
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "cosine_embedding_loss",
    "gaussian_nll_loss",
    "hinge_embedding_loss",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "margin_ranking_loss",
    "mse_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "poisson_nll_loss",
    "smooth_l1_loss",
    "soft_margin_loss",
    "triplet_margin_loss",
):
    globals()[_name] = in_float32(globals()[_name])
    _name_for_pickle({_name: globals()[_name]}, "holdfast.nn.functional")

function_help.add_pages(globals(), "torch.nn.functional")

__getattr__ = module_getattr("torch.nn.functional")
