# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Operators of PyTorch whose arguments or results differ from the functions of
holdfast that compute them, a file for each of the daemon's families of ops. Functions
marked `composite` get and return holdfast's tensors, `declare` PyTorch's."""

from holdfast_torch import (  # noqa: F401
    kernels_activation,
    kernels_amp,
    kernels_conv,
    kernels_conversion,
    kernels_count,
    kernels_creation,
    kernels_elementwise,
    kernels_embedding_bag,
    kernels_fft,
    kernels_index,
    kernels_linalg,
    kernels_loss,
    kernels_norm,
    kernels_optim,
    kernels_pad,
    kernels_pool,
    kernels_random,
    kernels_reduce,
    kernels_resample,
    kernels_scan,
    kernels_softmax,
    kernels_sort,
    kernels_transformer,
    kernels_view,
    kernels_vision,
    out_variants,
)
