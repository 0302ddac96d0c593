# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Layers that learn the size of their input from the first one."""

import holdfast

from . import conv, linear, normalization
from .parameter import Parameter


class UninitializedTensorMixin:
    """A parameter or buffer that has no shape yet."""

    def materialize(self, shape, device=None, dtype=None):
        """Gives it memory; its values are arbitrary."""
        made = holdfast.empty(tuple(shape), dtype=dtype or self.dtype, device=device)
        self.data = made
        self.__class__ = self._becomes

    @property
    def shape(self):
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This "
            "error usually happens in `load_state_dict` when trying to load an "
            "uninitialized parameter into an initialized one. Call `forward` to "
            "initialize the parameters before accessing their attributes."
        )

    def __repr__(self):
        return f"<{type(self).__name__}>"


class UninitializedParameter(UninitializedTensorMixin, Parameter):
    """A parameter whose shape the first input tells."""

    _becomes = Parameter

    def __new__(cls, requires_grad=True, device=None, dtype=None):
        data = holdfast.empty((0,), dtype=dtype, device=device)
        return holdfast.Tensor._make_subclass(cls, data, requires_grad)

    def __init__(self, requires_grad=True, device=None, dtype=None):
        pass

    def __deepcopy__(self, memo):
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, dtype=self.dtype)
        return memo[id(self)]

    def __reduce_ex__(self, protocol):
        return type(self), (self.requires_grad, None, self.dtype)


def is_lazy(tensor):
    """Whether it has no shape yet."""
    return isinstance(tensor, UninitializedTensorMixin)


class LazyModuleMixin:
    """A module whose `initialize_parameters(*args)` the first call runs; then it
    becomes a `cls_to_become`."""

    cls_to_become = None

    def has_uninitialized_params(self):
        """Whether the first input has not come yet."""
        return any(is_lazy(p) for p in self._parameters.values())

    def __call__(self, *args, **kwargs):
        if self.has_uninitialized_params():
            self.initialize_parameters(*args, **kwargs)
        if self.cls_to_become is not None:
            self.__class__ = self.cls_to_become
        return self(*args, **kwargs)

    def _load_from_state_dict(self, state_dict, prefix, *args):
        # A checkpoint tells the shapes, too.
        for name, parameter in self._parameters.items():
            saved = state_dict.get(prefix + name)
            if is_lazy(parameter) and saved is not None and not is_lazy(saved):
                parameter.materialize(saved.shape, dtype=saved.dtype)
        super()._load_from_state_dict(state_dict, prefix, *args)


class _LazyWeights(LazyModuleMixin):
    """Shared by layers that are made with a size of 0 and get weights of it."""

    def _make_lazy(self, bias, options):
        self.weight = UninitializedParameter(**options)
        if bias:
            self.bias = UninitializedParameter(**options)

    def reset_parameters(self):
        """Draws weight and bias anew, once they are there."""
        if not self.has_uninitialized_params() and self.weight.numel():
            super().reset_parameters()


class LazyLinear(_LazyWeights, linear.Linear):
    """Linear whose in_features are the last size of the first input."""

    cls_to_become = linear.Linear

    def __init__(self, out_features, bias=True, device=None, dtype=None):
        options = {"device": device, "dtype": dtype}
        super().__init__(0, 0, False, **options)
        self.out_features = out_features
        self._make_lazy(bias, options)

    def initialize_parameters(self, input):
        """Makes the weights for input."""
        with holdfast.no_grad():
            self.in_features = input.shape[-1]
            self.weight.materialize((self.out_features, self.in_features))
            if self.bias is not None:
                self.bias.materialize((self.out_features,))
            self.reset_parameters()


class _LazyConv(_LazyWeights):
    def __init__(self, out_channels, kernel_size, *args, bias=True, **options):
        # As if in_channels were there, to check the rest of the arguments.
        groups = options.get("groups", 1)
        super().__init__(groups, groups, kernel_size, *args, bias=False, **options)
        self.in_channels = 0
        self.out_channels = out_channels
        made = {k: options[k] for k in ("device", "dtype") if k in options}
        self._make_lazy(bias, made)

    def initialize_parameters(self, input, output_size=None):
        """Makes the weights for input."""
        batched = input.dim() == self.axes + 2
        channels = input.shape[1 if batched else 0]
        if channels % self.groups:
            raise ValueError("in_channels must be divisible by groups")
        self.in_channels = channels
        into, out = channels // self.groups, self.out_channels
        if self.transposed:
            into, out = out // self.groups, channels
        with holdfast.no_grad():
            self.weight.materialize((out, into, *self.kernel_size))
            if self.bias is not None:
                self.bias.materialize((self.out_channels,))
            self.reset_parameters()


class _LazyNorm(LazyModuleMixin):
    def __init__(
        self, eps=1e-5, momentum=0.1, affine=True, track_running_stats=True, **options
    ):
        super().__init__(0, eps, momentum, affine, track_running_stats, **options)
        self._options = options
        if self.affine:
            self.weight = UninitializedParameter(**options)
            self.bias = UninitializedParameter(**options)

    def has_uninitialized_params(self):
        return self.num_features == 0

    def initialize_parameters(self, input):
        """Makes weights and statistics for input."""
        channels = input.shape[1]
        self.num_features = channels
        with holdfast.no_grad():
            if self.affine:
                self.weight.materialize((channels,))
                self.bias.materialize((channels,))
            if self.track_running_stats:
                self.running_mean = holdfast.zeros((channels,), **self._options)
                self.running_var = holdfast.ones((channels,), **self._options)
            self.reset_parameters()
        del self._options


def _lazy(mixin, base, what):
    name = "Lazy" + base.__name__
    doc = f"{base.__name__} whose {what} the first input tells."
    return type(
        name,
        (mixin, base),
        {"cls_to_become": base, "__doc__": doc, "__module__": __name__},
    )


LazyConv1d = _lazy(_LazyConv, conv.Conv1d, "in_channels")
LazyConv2d = _lazy(_LazyConv, conv.Conv2d, "in_channels")
LazyConv3d = _lazy(_LazyConv, conv.Conv3d, "in_channels")
LazyConvTranspose1d = _lazy(_LazyConv, conv.ConvTranspose1d, "in_channels")
LazyConvTranspose2d = _lazy(_LazyConv, conv.ConvTranspose2d, "in_channels")
LazyConvTranspose3d = _lazy(_LazyConv, conv.ConvTranspose3d, "in_channels")
LazyBatchNorm1d = _lazy(_LazyNorm, normalization.BatchNorm1d, "num_features")
LazyBatchNorm2d = _lazy(_LazyNorm, normalization.BatchNorm2d, "num_features")
LazyBatchNorm3d = _lazy(_LazyNorm, normalization.BatchNorm3d, "num_features")
LazyInstanceNorm1d = _lazy(_LazyNorm, normalization.InstanceNorm1d, "num_features")
LazyInstanceNorm2d = _lazy(_LazyNorm, normalization.InstanceNorm2d, "num_features")
LazyInstanceNorm3d = _lazy(_LazyNorm, normalization.InstanceNorm3d, "num_features")
