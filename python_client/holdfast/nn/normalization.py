# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Normalisation layers."""

import holdfast

from . import functional as F
from . import init
from .module import Module
from .parameter import Parameter


class _NormBase(Module):
    """Scale, shift and running statistics of batch and instance normalisation."""

    _version = 2  # since it counts batches
    # What input must look like: numbers of dimensions.
    _dims = ()

    def __init__(
        self,
        num_features,
        eps=1e-5,
        momentum=0.1,
        affine=True,
        track_running_stats=True,
        device=None,
        dtype=None,
    ):
        super().__init__()
        options = {"device": device, "dtype": dtype}
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        if affine:
            self.weight = Parameter(holdfast.empty((num_features,), **options))
            self.bias = Parameter(holdfast.empty((num_features,), **options))
        else:
            self.register_parameter("weight", None)
            self.register_parameter("bias", None)
        mean = var = batches = None
        if track_running_stats:
            mean = holdfast.zeros((num_features,), **options)
            var = holdfast.ones((num_features,), **options)
            batches = holdfast.zeros((), dtype=holdfast.int64, device=device)
        self.register_buffer("running_mean", mean)
        self.register_buffer("running_var", var)
        self.register_buffer("num_batches_tracked", batches)
        self.reset_parameters()

    def reset_running_stats(self):
        """Forgets the running statistics."""
        if self.track_running_stats:
            self.running_mean.zero_()
            self.running_var.fill_(1)
            self.num_batches_tracked.zero_()

    def reset_parameters(self):
        """Sets weight to one, bias to zero, and forgets the statistics."""
        self.reset_running_stats()
        if self.affine:
            init.ones_(self.weight)
            init.zeros_(self.bias)

    def _load_from_state_dict(self, state_dict, prefix, local_metadata, *others):
        counter = prefix + "num_batches_tracked"
        old = (local_metadata.get("version") or 1) < 2
        if old and self.track_running_stats and counter not in state_dict:
            state_dict[counter] = holdfast.tensor(0)
        super()._load_from_state_dict(state_dict, prefix, local_metadata, *others)

    def extra_repr(self):
        return (
            f"{self.num_features}, eps={self.eps}, momentum={self.momentum}, "
            f"affine={self.affine}, track_running_stats={self.track_running_stats}"
        )


class _BatchNorm(_NormBase):
    """Batch normalisation (Ioffe & Szegedy 2015) over all dimensions but 1.

    weight starts at one and bias at zero. In training, statistics come from the
    batch and move running_mean and running_var by `momentum` (None: their
    plain average); in evaluation the running ones are used.
    """

    def forward(self, input):
        if input.dim() not in self._dims:
            expected = " or ".join(f"{n}D" for n in self._dims)
            raise ValueError(f"expected {expected} input (got {input.dim()}D input)")
        momentum = 0.0 if self.momentum is None else self.momentum
        if self.training and self.num_batches_tracked is not None:
            self.num_batches_tracked.add_(1)
            if self.momentum is None:
                momentum = 1.0 / self.num_batches_tracked.item()
        use_running = not self.training or self.track_running_stats
        return F.batch_norm(
            input,
            self.running_mean if use_running else None,
            self.running_var if use_running else None,
            self.weight,
            self.bias,
            self.training or self.running_mean is None,
            momentum,
            self.eps,
        )


class BatchNorm1d(_BatchNorm):
    """Batch normalisation of [N, C] or [N, C, L]."""

    __doc__ += _BatchNorm.__doc__.partition("\n")[2]
    _dims = (2, 3)


class BatchNorm2d(_BatchNorm):
    """Batch normalisation of [N, C, H, W]."""

    __doc__ += _BatchNorm.__doc__.partition("\n")[2]
    _dims = (4,)


class BatchNorm3d(_BatchNorm):
    """Batch normalisation of [N, C, D, H, W]."""

    __doc__ += _BatchNorm.__doc__.partition("\n")[2]
    _dims = (5,)


class SyncBatchNorm(_BatchNorm):
    """Batch normalisation over a group of processes: with one, that of its batch."""

    _dims = tuple(range(2, 65))

    def __init__(
        self,
        num_features,
        eps=1e-5,
        momentum=0.1,
        affine=True,
        track_running_stats=True,
        process_group=None,
        device=None,
        dtype=None,
    ):
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype
        )
        self.process_group = process_group

    @classmethod
    def convert_sync_batchnorm(cls, module, process_group=None):
        """The module with every BatchNorm in it as a SyncBatchNorm of the same
        parameters and statistics."""
        made = module
        if isinstance(module, _BatchNorm) and not isinstance(module, SyncBatchNorm):
            made = cls(
                module.num_features,
                module.eps,
                module.momentum,
                module.affine,
                module.track_running_stats,
                process_group,
            )
            made._parameters.update(module._parameters)
            made._buffers.update(module._buffers)
            made.training = module.training
        for name, child in module.named_children():
            made.add_module(name, cls.convert_sync_batchnorm(child, process_group))
        return made


class _InstanceNorm(_NormBase):
    """Each channel of each sample normalised by itself.

    One dimension fewer is one sample. Without `affine` (the default) there is no
    weight and bias, without `track_running_stats` the statistics of the input
    count in evaluation too.
    """

    def __init__(
        self,
        num_features,
        eps=1e-5,
        momentum=0.1,
        affine=False,
        track_running_stats=False,
        device=None,
        dtype=None,
    ):
        super().__init__(
            num_features, eps, momentum, affine, track_running_stats, device, dtype
        )

    def forward(self, input):
        rank = self._dims[-1]
        if input.dim() not in (rank - 1, rank):
            raise ValueError(
                f"expected {rank - 1}D or {rank}D input (got {input.dim()}D input)"
            )
        batched = input if input.dim() == rank else input.unsqueeze(0)
        if self.affine and batched.shape[1] != self.num_features:
            raise ValueError(
                f"expected input's size at dim=1 to match num_features "
                f"({self.num_features}), but got: {batched.shape[1]}."
            )
        result = F.instance_norm(
            batched,
            self.running_mean,
            self.running_var,
            self.weight,
            self.bias,
            self.training or not self.track_running_stats,
            0.0 if self.momentum is None else self.momentum,
            self.eps,
        )
        return result if input.dim() == rank else result.squeeze(0)


class InstanceNorm1d(_InstanceNorm):
    """Instance normalisation of [N, C, L] or [C, L]."""

    __doc__ += _InstanceNorm.__doc__.partition("\n")[2]
    _dims = (3,)


class InstanceNorm2d(_InstanceNorm):
    """Instance normalisation of [N, C, H, W] or [C, H, W]."""

    __doc__ += _InstanceNorm.__doc__.partition("\n")[2]
    _dims = (4,)


class InstanceNorm3d(_InstanceNorm):
    """Instance normalisation of [N, C, D, H, W] or [C, D, H, W]."""

    __doc__ += _InstanceNorm.__doc__.partition("\n")[2]
    _dims = (5,)


class LayerNorm(Module):
    """Layer normalisation (Ba et al. 2016) over the last dimensions.

    weight (ones) and bias (zeros) have the shape `normalized_shape`.
    """

    def __init__(
        self,
        normalized_shape,
        eps=1e-5,
        elementwise_affine=True,
        bias=True,
        device=None,
        dtype=None,
    ):
        super().__init__()
        if isinstance(normalized_shape, int):
            normalized_shape = (normalized_shape,)
        self.normalized_shape = tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        options = {"device": device, "dtype": dtype}
        weight = offset = None
        if elementwise_affine:
            weight = Parameter(holdfast.empty(self.normalized_shape, **options))
            if bias:
                offset = Parameter(holdfast.empty(self.normalized_shape, **options))
        self.register_parameter("weight", weight)
        self.register_parameter("bias", offset)
        self.reset_parameters()

    def reset_parameters(self):
        """Sets weight to one and bias to zero."""
        if self.weight is not None:
            init.ones_(self.weight)
        if self.bias is not None:
            init.zeros_(self.bias)

    def forward(self, input):
        return F.layer_norm(
            input, self.normalized_shape, self.weight, self.bias, self.eps
        )

    def extra_repr(self):
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}"
        )


class RMSNorm(Module):
    """input over the root of its mean square (Zhang & Sennrich 2019).

    weight (ones) has the shape `normalized_shape`; eps None is the type's machine
    epsilon.
    """

    def __init__(
        self,
        normalized_shape,
        eps=None,
        elementwise_affine=True,
        device=None,
        dtype=None,
    ):
        super().__init__()
        if isinstance(normalized_shape, int):
            normalized_shape = (normalized_shape,)
        self.normalized_shape = tuple(normalized_shape)
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        weight = None
        if elementwise_affine:
            weight = holdfast.empty(self.normalized_shape, device=device, dtype=dtype)
            weight = Parameter(weight)
        self.register_parameter("weight", weight)
        self.reset_parameters()

    def reset_parameters(self):
        """Sets weight to one."""
        if self.elementwise_affine:
            init.ones_(self.weight)

    def forward(self, input):
        return F.rms_norm(input, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self):
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}"
        )


class GroupNorm(Module):
    """Group normalisation (Wu & He 2018) of [N, C, ...]; weight and bias are [C]."""

    def __init__(
        self, num_groups, num_channels, eps=1e-5, affine=True, device=None, dtype=None
    ):
        super().__init__()
        if num_channels % num_groups != 0:
            raise ValueError("num_channels must be divisible by num_groups")
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        weight = bias = None
        if affine:
            options = {"device": device, "dtype": dtype}
            weight = Parameter(holdfast.empty((num_channels,), **options))
            bias = Parameter(holdfast.empty((num_channels,), **options))
        self.register_parameter("weight", weight)
        self.register_parameter("bias", bias)
        self.reset_parameters()

    def reset_parameters(self):
        """Sets weight to one and bias to zero."""
        if self.affine:
            init.ones_(self.weight)
            init.zeros_(self.bias)

    def forward(self, input):
        return F.group_norm(input, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self):
        return (
            f"{self.num_groups}, {self.num_channels}, eps={self.eps}, "
            f"affine={self.affine}"
        )
