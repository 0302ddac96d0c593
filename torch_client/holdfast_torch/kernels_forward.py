# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Operators of PyTorch whose arguments or results differ from the functions of
holdfast that compute them. Functions marked `holdfast` get and return holdfast's
tensors, the others PyTorch's."""

import math

import holdfast as hf
import torch
from holdfast import _C

from holdfast_torch.composites import declare, declare_holdfast as composite

F = hf.nn.functional
_ops = _C.ops
_REDUCTIONS = ("none", "mean", "sum")


# ---- filling


@declare("zero_")
def zero_(self):
    return self.fill_(0)


@declare("masked_fill_.Scalar", "masked_fill_.Tensor")
def masked_fill_(self, mask, value):
    return self.copy_(torch.where(mask, value, self))


@declare("arange.start_out")
def arange_out(start, end, step=1, *, out):
    kwargs = {} if out.dtype is None else {"dtype": out.dtype}
    return _give(out, torch.arange(start, end, step, **kwargs))


@declare("linspace.out")
def linspace_out(start, end, steps, *, out):
    return _give(out, torch.linspace(start, end, steps, dtype=out.dtype))


@declare("logspace.out")
def logspace_out(start, end, steps, base=10.0, *, out):
    return _give(out, torch.logspace(start, end, steps, base, dtype=out.dtype))


@declare("complex.out")
def complex_out(real, imag, *, out):
    return _give(out, _complex(real, imag))


@declare("polar.out")
def polar_out(abs, angle, *, out):
    return _give(out, _polar(abs, angle))


def _give(out, value):
    if out.shape != value.shape:
        out.resize_(value.shape)
    return out.copy_(value)


@composite()
def _complex(real, imag):
    return hf.complex(real, imag)


@composite()
def _polar(abs, angle):
    return hf.polar(abs, angle)


# ---- random


def _fill_random(name):
    @declare(name + "_")
    def kernel(self, *args, generator=None, **kwargs):
        drawn = hf.empty(tuple(self.shape), dtype=_dtype(self))
        getattr(drawn, name + "_")(*args, **kwargs)
        return self.copy_(_torch().from_holdfast(drawn))

    return kernel


def _torch():
    from holdfast_torch import _torch

    return _torch


def _dtype(tensor):
    from holdfast_torch.composites import to_holdfast

    return to_holdfast(tensor.dtype)


for _name in (
    "exponential log_normal geometric cauchy uniform normal random random.to "
    "random.from bernoulli.float"
).split():
    _base, _, _overload = _name.partition(".")

    def _make(base, overload):
        @declare(base + "_" + ("." + overload if overload else ""))
        def kernel(self, *args, generator=None, **kwargs):
            drawn = hf.empty(tuple(self.shape), dtype=_dtype(self))
            getattr(drawn, base + "_")(*[a for a in args if a is not None], **kwargs)
            return self.copy_(_torch().from_holdfast(drawn))

        return kernel

    _make(_base, _overload)


@declare("native_dropout")
def native_dropout(input, p, train):
    if train is False or p == 0:
        return input.clone(), torch.ones_like(input, dtype=torch.bool)
    return _dropout(input, p)


@composite()
def _dropout(input, p):
    return _ops.dropout(input, p)


@composite("native_dropout_backward")
def native_dropout_backward(grad_output, mask, scale):
    return grad_output * _ops.to(mask, grad_output.dtype) * scale


# ---- activations and softmax


@composite("_softmax")
def _softmax(self, dim, half_to_float):
    return _ops.softmax(self, dim, dtype=_C.float32 if half_to_float else None)


@composite("_log_softmax")
def _log_softmax(self, dim, half_to_float):
    return _ops.log_softmax(self, dim, dtype=_C.float32 if half_to_float else None)


@composite("_softmax_backward_data")
def _softmax_backward_data(grad_output, output, dim, input_dtype):
    return _ops.to(_ops.softmax_backward(grad_output, output, dim), input_dtype)


@composite("_log_softmax_backward_data")
def _log_softmax_backward_data(grad_output, output, dim, input_dtype):
    return _ops.to(_ops.log_softmax_backward(grad_output, output, dim), input_dtype)


@composite("log_sigmoid_forward")
def log_sigmoid_forward(self):
    return F.logsigmoid(self), hf.empty((0,), dtype=self.dtype)


@composite("_prelu_kernel")
def _prelu_kernel(self, weight):
    return hf.where(self > 0, self, weight * self)


@composite("glu")
def glu(self, dim=-1):
    return F.glu(self, dim)


@composite("threshold_backward")
def threshold_backward(grad_output, self, threshold):
    return hf.where(
        self <= threshold, hf.zeros((), dtype=grad_output.dtype), grad_output
    )


# ---- pooling and resampling


@composite("max_pool2d_with_indices")
def max_pool2d_with_indices(
    self, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False
):
    return F.max_pool2d(
        self,
        kernel_size,
        stride or None,
        padding,
        dilation,
        ceil_mode,
        return_indices=True,
    )


@composite("max_pool3d_with_indices")
def max_pool3d_with_indices(
    self, kernel_size, stride=(), padding=0, dilation=1, ceil_mode=False
):
    return F.max_pool3d(
        self,
        kernel_size,
        stride or None,
        padding,
        dilation,
        ceil_mode,
        return_indices=True,
    )


@composite("max_unpool2d")
def max_unpool2d(self, indices, output_size):
    return _unpool(self, indices, output_size, 2)


@composite("max_unpool3d")
def max_unpool3d(self, indices, output_size, stride, padding):
    return _unpool(self, indices, output_size, 3)


def _unpool(self, indices, output_size, dims):
    lead = tuple(self.shape[:-dims])
    places = math.prod(output_size)
    flat = hf.zeros((*lead, places), dtype=self.dtype)
    result = flat.scatter(-1, indices.reshape(*lead, -1), self.reshape(*lead, -1))
    return result.reshape(*lead, *output_size)


@composite("avg_pool2d")
def avg_pool2d(
    self,
    kernel_size,
    stride=(),
    padding=0,
    ceil_mode=False,
    count_include_pad=True,
    divisor_override=None,
):
    return F.avg_pool2d(
        self,
        kernel_size,
        stride or None,
        padding,
        ceil_mode,
        count_include_pad,
        divisor_override,
    )


@composite("avg_pool3d")
def avg_pool3d(
    self,
    kernel_size,
    stride=(),
    padding=0,
    ceil_mode=False,
    count_include_pad=True,
    divisor_override=None,
):
    return F.avg_pool3d(
        self,
        kernel_size,
        stride or None,
        padding,
        ceil_mode,
        count_include_pad,
        divisor_override,
    )


@composite("_adaptive_avg_pool2d")
def _adaptive_avg_pool2d(self, output_size):
    return F.adaptive_avg_pool2d(self, tuple(output_size))


@composite("_adaptive_avg_pool3d")
def _adaptive_avg_pool3d(self, output_size):
    return F.adaptive_avg_pool3d(self, tuple(output_size))


@composite("adaptive_max_pool2d")
def adaptive_max_pool2d(self, output_size):
    return F.adaptive_max_pool2d(self, tuple(output_size), return_indices=True)


@composite("adaptive_max_pool3d")
def adaptive_max_pool3d(self, output_size):
    return F.adaptive_max_pool3d(self, tuple(output_size), return_indices=True)


def _resample(name, mode, aligned):
    @composite(name)
    def kernel(self, output_size, *rest, **named):
        align = {"align_corners": bool(rest[0])} if aligned else {}
        return F.interpolate(self, tuple(output_size), mode=mode, **align)

    return kernel


for _name, _mode, _aligned in (
    ("upsample_nearest1d", "nearest", False),
    ("upsample_nearest2d", "nearest", False),
    ("upsample_nearest3d", "nearest", False),
    ("_upsample_nearest_exact1d", "nearest-exact", False),
    ("_upsample_nearest_exact2d", "nearest-exact", False),
    ("_upsample_nearest_exact3d", "nearest-exact", False),
    ("upsample_linear1d", "linear", True),
    ("upsample_bilinear2d", "bilinear", True),
    ("upsample_bicubic2d", "bicubic", True),
    ("upsample_trilinear3d", "trilinear", True),
):
    _resample(_name, _mode, _aligned)


def _pad(name, mode):
    @composite(name)
    def kernel(self, padding):
        return F.pad(self, tuple(padding), mode=mode)

    return kernel


for _mode, _name in (("reflect", "reflection"), ("replicate", "replication")):
    for _dims in (1, 2, 3):
        _pad(f"{_name}_pad{_dims}d", _mode)


# ---- losses


def _loss(name, function):
    @composite(name)
    def kernel(self, target, *args, reduction=1, **kwargs):
        return function(self, target, *args, reduction=reduction, **kwargs)

    return kernel


@composite("mse_loss")
def mse_loss(self, target, reduction=1):
    return F.mse_loss(self, target, reduction=_REDUCTIONS[reduction])


@composite("smooth_l1_loss")
def smooth_l1_loss(self, target, reduction=1, beta=1.0):
    return F.smooth_l1_loss(self, target, reduction=_REDUCTIONS[reduction], beta=beta)


@composite("huber_loss")
def huber_loss(self, target, reduction=1, delta=1.0):
    return F.huber_loss(self, target, reduction=_REDUCTIONS[reduction], delta=delta)


@composite("binary_cross_entropy")
def binary_cross_entropy(self, target, weight=None, reduction=1):
    return F.binary_cross_entropy(
        self, target, weight, reduction=_REDUCTIONS[reduction]
    )


@composite("multi_margin_loss")
def multi_margin_loss(self, target, p=1, margin=1, weight=None, reduction=1):
    return F.multi_margin_loss(
        self, target, p, margin, weight, reduction=_REDUCTIONS[reduction]
    )


@composite("nll_loss_forward")
def nll_loss_forward(self, target, weight, reduction, ignore_index):
    return _ops.nll_loss(self, target, weight, _REDUCTIONS[reduction], ignore_index)


@composite("nll_loss2d_forward")
def nll_loss2d_forward(self, target, weight, reduction, ignore_index):
    return _ops.nll_loss(self, target, weight, _REDUCTIONS[reduction], ignore_index)


@composite("nll_loss_backward", "nll_loss2d_backward")
def nll_loss_backward(
    grad_output, self, target, weight, reduction, ignore_index, total_weight
):
    return _ops.nll_loss_backward(
        grad_output,
        target,
        weight,
        total_weight,
        tuple(self.shape),
        _REDUCTIONS[reduction],
        ignore_index,
    )


# ---- indices


@composite("index.Tensor")
def index(self, indices):
    key = tuple(slice(None) if i is None else i for i in indices)
    return self[key]


@declare("_index_put_impl_", "index_put_")
def index_put_(self, indices, values, accumulate=False, unsafe=False):
    return self.copy_(_index_put(self, indices, values, accumulate))


@composite()
def _index_put(self, indices, values, accumulate):
    result = self.clone()
    key = tuple(slice(None) if i is None else i for i in indices)
    if accumulate:
        return _accumulate(result, indices, values)
    result[key] = values
    return result


def _accumulate(result, indices, values):
    if all(i is not None for i in indices):
        return result.index_put(tuple(indices), values, accumulate=True)
    whole = [
        i if i is not None else hf.arange(result.shape[d]).reshape(-1)
        for d, i in enumerate(indices)
    ]
    return result.index_put(tuple(whole), values, accumulate=True)


@declare("index_fill_.int_Scalar", "index_fill_.int_Tensor")
def index_fill_(self, dim, index, value):
    return self.copy_(_index_fill(self, dim, index, value))


@composite()
def _index_fill(self, dim, index, value):
    if isinstance(value, hf.Tensor):
        value = value.item()
    return self.index_fill(dim, index, value)


@declare("masked_scatter_")
def masked_scatter_(self, mask, source):
    return self.copy_(_masked_scatter(self, mask, source))


@composite()
def _masked_scatter(self, mask, source):
    return self.masked_scatter(mask, source)


@declare("put_")
def put_(self, index, source, accumulate=False):
    return self.copy_(_put(self, index, source, accumulate))


@composite()
def _put(self, index, source, accumulate):
    return hf.put(self, index, source, accumulate)


@composite("_unique2")
def _unique2(self, sorted=True, return_inverse=False, return_counts=False):
    values, inverse, counts = _ops.unique(self.reshape(-1), sorted, True, True)
    return values, inverse.reshape(self.shape), counts


# ---- linear algebra, transforms


@composite("_linalg_svd")
def _linalg_svd(A, full_matrices=False, compute_uv=True, *, driver=None):
    if compute_uv:
        return tuple(hf.linalg.svd(A, full_matrices))
    none = hf.empty((0,), dtype=A.dtype)
    return none, hf.linalg.svdvals(A), none


@composite("_linalg_eigh")
def _linalg_eigh(A, UPLO="L", compute_v=True):
    if compute_v:
        return tuple(hf.linalg.eigh(A, UPLO))
    return hf.linalg.eigvalsh(A, UPLO), hf.empty((0,), dtype=A.dtype)


def _scale(shape, dim, normalization):
    count = math.prod(shape[d] for d in dim)
    return (1.0, count**-0.5, 1.0 / count)[normalization]


@composite("_fft_c2c")
def _fft_c2c(self, dim, normalization, forward):
    scale = _scale(self.shape, dim, normalization)
    return _ops.fft_c2c(self, tuple(dim), scale, forward)


@composite("_fft_r2c")
def _fft_r2c(self, dim, normalization, onesided):
    scale = _scale(self.shape, dim, normalization)
    if onesided:
        return _ops.fft_r2c(self, tuple(dim), scale)
    wide = hf.complex(self, hf.zeros_like(self))
    return _ops.fft_c2c(wide, tuple(dim), scale, True)


@composite("_fft_c2r")
def _fft_c2r(self, dim, normalization, last_dim_size):
    sizes = list(self.shape)
    sizes[dim[-1]] = last_dim_size
    scale = _scale(sizes, dim, normalization)
    return _ops.fft_c2r(self, tuple(dim), scale, last_dim_size)


# ---- statistics


@composite("var.correction")
def var(self, dim=None, *, correction=None, keepdim=False):
    return _moments(self, dim, correction, keepdim)[0]


@composite("std.correction")
def std(self, dim=None, *, correction=None, keepdim=False):
    return hf.sqrt(_moments(self, dim, correction, keepdim)[0])


@composite("var_mean.correction")
def var_mean(self, dim=None, *, correction=None, keepdim=False):
    return _moments(self, dim, correction, keepdim)


@composite("std_mean.correction")
def std_mean(self, dim=None, *, correction=None, keepdim=False):
    variance, mean = _moments(self, dim, correction, keepdim)
    return hf.sqrt(variance), mean


def _moments(self, dim, correction, keepdim):
    correction = 1.0 if correction is None else float(correction)
    dim = None if dim is None or len(dim) == 0 else tuple(dim)
    return _ops.var_mean(self, dim, correction, keepdim)


# ---- convolutions


@composite("convolution_overrideable")
def convolution(
    input, weight, bias, stride, padding, dilation, transposed, output_padding, groups
):
    dims = input.dim() - 2
    if transposed:
        function = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)
        return function[dims - 1](
            input,
            weight,
            bias,
            tuple(stride),
            tuple(padding),
            tuple(output_padding),
            groups,
            tuple(dilation),
        )
    function = (F.conv1d, F.conv2d, F.conv3d)
    return function[dims - 1](
        input, weight, bias, tuple(stride), tuple(padding), tuple(dilation), groups
    )


@declare("convolution_backward_overrideable")
def convolution_backward(
    grad_output,
    input,
    weight,
    stride,
    padding,
    dilation,
    transposed,
    output_padding,
    groups,
    output_mask,
):
    return _convolution_backward(
        grad_output,
        input,
        weight,
        stride,
        padding,
        dilation,
        transposed,
        output_padding,
        groups,
        output_mask,
    )


@composite()
def _convolution_backward(
    grad_output,
    input,
    weight,
    stride,
    padding,
    dilation,
    transposed,
    output_padding,
    groups,
    output_mask,
):
    dims = input.dim() - 2
    stride, padding, dilation = map(tuple, (stride, padding, dilation))
    lift = dims == 1
    grad, x, w = grad_output, input, weight
    if lift:
        grad, x, w = (t.unsqueeze(2) for t in (grad, x, w))
        stride, padding, dilation = (1, *stride), (0, *padding), (1, *dilation)
    rank = max(dims, 2)
    to_input = _ops.conv2d_backward_input if rank == 2 else _ops.conv3d_backward_input
    to_weight = (
        _ops.conv2d_backward_weight if rank == 2 else _ops.conv3d_backward_weight
    )
    forward = _ops.conv2d if rank == 2 else _ops.conv3d
    rest = (stride, padding, dilation, groups)
    results = [None, None, None]
    if output_mask[0]:
        # A transposed convolution is the gradient of a plain one, and the reverse.
        results[0] = (
            forward(grad, w, None, *rest)
            if transposed
            else to_input(grad, w, tuple(x.shape), *rest)
        )
    if output_mask[1]:
        results[1] = (
            to_weight(x, grad, tuple(w.shape), *rest)
            if transposed
            else to_weight(grad, x, tuple(w.shape), *rest)
        )
    if lift:
        results = [None if r is None else r.squeeze(2) for r in results]
    if output_mask[2]:
        over = (0, *range(2, grad_output.dim()))
        results[2] = grad_output.sum(over)
    return tuple(results)


# ---- normalisation


@composite("native_batch_norm_backward")
def native_batch_norm_backward(
    grad_out,
    input,
    weight,
    running_mean,
    running_var,
    save_mean,
    save_invstd,
    train,
    eps,
    output_mask,
):
    if train:
        variance = save_invstd**-2 - eps
        mean = save_mean
    else:
        mean, variance = running_mean, running_var
    grads = _ops.batch_norm_backward(
        grad_out, input, weight, mean, variance, eps, train
    )
    return tuple(g if wanted else None for g, wanted in zip(grads, output_mask))


@declare("native_batch_norm")
def native_batch_norm(
    input, weight, bias, running_mean, running_var, training, momentum, eps
):
    if not training:
        output = _batch_norm_by(input, weight, bias, running_mean, running_var, eps)
        none = input.new_empty(0)
        return output, none, none
    output, mean, var = _batch_norm(input, weight, bias, eps)
    count = input.numel() // max(input.shape[1], 1)
    if running_mean is not None:
        running_mean.mul_(1 - momentum).add_(mean, alpha=momentum)
        unbiased = count / max(count - 1, 1)
        running_var.mul_(1 - momentum).add_(var, alpha=momentum * unbiased)
    return output, mean, torch.rsqrt(var + eps)


@composite()
def _batch_norm(input, weight, bias, eps):
    return _ops.batch_norm(input, weight, bias, None, None, eps)


@composite()
def _batch_norm_by(input, weight, bias, mean, var, eps):
    return _ops.batch_norm(input, weight, bias, mean, var, eps)[0]


@composite("native_layer_norm")
def native_layer_norm(input, normalized_shape, weight, bias, eps):
    return hf.native_layer_norm(input, tuple(normalized_shape), weight, bias, eps)


@composite("native_layer_norm_backward")
def native_layer_norm_backward(
    grad_out, input, normalized_shape, mean, rstd, weight, bias, output_mask
):
    grads = _ops.group_norm_backward(
        grad_out, input, weight, mean, rstd, 1, len(normalized_shape), True
    )
    return tuple(g if wanted else None for g, wanted in zip(grads, output_mask))


@composite("native_group_norm_backward")
def native_group_norm_backward(
    grad_out, input, mean, rstd, weight, N, C, HxW, group, output_mask
):
    grads = _ops.group_norm_backward(
        grad_out, input, weight, mean, rstd, group, input.dim() - 1, True
    )
    return tuple(g if wanted else None for g, wanted in zip(grads, output_mask))


# ---- embeddings


@composite("embedding_dense_backward")
def embedding_dense_backward(
    grad_output, indices, num_weights, padding_idx, scale_grad_by_freq
):
    width = grad_output.shape[-1]
    rows = grad_output.reshape(-1, width)
    places = indices.reshape(-1)
    if scale_grad_by_freq:
        counts = hf.bincount(places, minlength=num_weights)
        rows = rows / counts[places].to(rows.dtype).unsqueeze(1)
    if padding_idx >= 0:
        rows = rows * (places != padding_idx).to(rows.dtype).unsqueeze(1)
    zeros = hf.zeros((num_weights, width), dtype=rows.dtype)
    return _ops.index_add(zeros, 0, places, rows)
