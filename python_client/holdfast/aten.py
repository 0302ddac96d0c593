# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.ops.aten: PyTorch's operators by the names of its dispatcher.

An operator that is a function of the package or a method of tensors under the same
name is that, with any overload's name behind it (`aten.add.Tensor`). Those that are not
public elsewhere are here. Names that only torch.nn.functional has are not looked up:
its functions may have another order of arguments.
"""

import sys
import types

import holdfast as _hf
from holdfast import _C
from holdfast.constants import in_graph_of
from holdfast.errors import MissingAttributeError

_ops = _C.ops


class _Operator:
    """A function with overloads, all of which are the function itself."""

    def __init__(self, function, name=None):
        self._function = function
        self.__name__ = name or function.__name__
        self.__doc__ = function.__doc__

    def __call__(self, *args, **kwargs):
        return self._function(*args, **kwargs)

    def __getattr__(self, overload):
        if overload.startswith("__"):
            raise AttributeError(f"operator {self.__name__} has no {overload}")
        return self

    def __repr__(self):
        return f"aten.{self.__name__}"


@_Operator
def slice(self, dim=0, start=None, end=None, step=1):
    """self[start:end:step] along dim, a view."""
    return _ops.slice(self, dim, start, end, step)


@_Operator
def _softmax_backward_data(grad_output, output, dim, input_dtype):
    """The gradient of softmax()'s input, given its output; in input_dtype."""
    product = grad_output * output
    result = product - output * _ops.sum(product, (dim,), True)
    return _ops.to(result, input_dtype)


@_Operator
def _log_softmax_backward_data(grad_output, output, dim, input_dtype):
    """The gradient of log_softmax()'s input, given its output; in input_dtype."""
    total = _ops.sum(grad_output, (dim,), True)
    return _ops.to(grad_output - _ops.exp(output) * total, input_dtype)


@_Operator
def _safe_softmax(self, dim, dtype=None):
    """softmax() that is 0 and not NaN where all elements along dim are -inf."""
    self = self if dtype is None else _ops.to(self, dtype)
    none = _ops.eq(_ops.amax(self.detach(), dim, True), -float("inf"))
    # The elements are taken away, so that no NaN enters the gradient.
    safe = _ops.softmax(_ops.where(none, 0.0, self), dim)
    return _ops.where(none, 0.0, safe)


@_Operator
def native_dropout_backward(grad_output, mask, scale):
    """grad_output * mask * scale."""
    return grad_output * _ops.to(mask, grad_output.dtype) * scale


@_Operator
def max_pool2d_with_indices_backward(
    grad_output, self, kernel_size, stride, padding, dilation, ceil_mode, indices
):
    """The gradient of max_pool2d()'s input: grad_output added at the indices. In the
    graph of the input, on whose numbers it does not depend."""
    sizes = tuple(self.shape)
    planes = (grad_output, indices)
    if self.dim() == 3:
        planes = (x.unsqueeze(0) for x in planes)
    result = _ops.max_pool2d_backward(*planes, (1,) * (4 - self.dim()) + sizes)
    return in_graph_of(result.reshape(sizes), self)


@_Operator
def _scaled_dot_product_flash_attention_for_cpu(
    query,
    key,
    value,
    dropout_p=0.0,
    is_causal=False,
    *,
    attn_mask=None,
    scale=None,
):
    """(scaled_dot_product_attention(), logsumexp of the scores), the latter [..., L]
    in at least float32 and without gradient."""
    if dropout_p != 0:
        raise RuntimeError(
            "_scaled_dot_product_flash_attention: Currently do not support dropout > 0"
            f". Got dropout_p={dropout_p}."
        )
    output = _hf.nn.functional.scaled_dot_product_attention(
        query, key, value, attn_mask, 0.0, is_causal, scale
    )
    wide = _C.float64 if query.dtype is _C.float64 else _C.float32
    query, key = (_ops.to(x.detach(), wide) for x in (query, key))
    scale = query.size(-1) ** -0.5 if scale is None else scale
    scores = (query * scale) @ key.mT
    if is_causal:
        allowed = _ops.full(tuple(scores.shape[-2:]), 1, dtype=wide).tril() > 0
        scores = _ops.where(allowed, scores, -float("inf"))
    if attn_mask is not None and attn_mask.dtype is _C.bool:
        scores = _ops.where(attn_mask, scores, -float("inf"))
    elif attn_mask is not None:
        scores = scores + attn_mask.detach()
    return output, _hf.logsumexp(scores, -1)


@_Operator
def _upsample_bilinear2d_aa(self, output_size, align_corners, *scales, **named):
    """interpolate(mode="bilinear", antialias=True) to output_size, or by scale_factors
    where that is None; scales_h and scales_w only place the positions."""
    return _upsampled(self, output_size, align_corners, "linear", scales, named)


@_Operator
def _upsample_bicubic2d_aa(self, output_size, align_corners, *scales, **named):
    """interpolate(mode="bicubic", antialias=True), as _upsample_bilinear2d_aa()."""
    return _upsampled(self, output_size, align_corners, "cubic", scales, named)


def _upsampled(self, output_size, align_corners, mode, scales, named):
    unknown = set(named) - {"scale_factors", "scales_h", "scales_w"}
    if unknown or len(scales) > 2 or (scales and named):
        raise TypeError(f"unexpected arguments {scales} {sorted(named)}")
    factors = named.get("scale_factors")
    if len(scales) == 1 and isinstance(scales[0], (tuple, list)):
        factors, scales = scales[0], ()
    if (output_size is None) == (factors is None):
        raise RuntimeError("Must specify exactly one of output_size and scale_factors")
    if output_size is None:
        sizes = self.shape[2:]
        output_size = [int(n * f) for n, f in zip(sizes, factors)]
        scales = factors
    elif not scales:
        scales = named.get("scales_h"), named.get("scales_w")
    scales = [float(s or 0) for s in (*scales, None, None)][:2]
    return _ops.resample2d(
        self, tuple(output_size), f"{mode}-antialias", bool(align_corners), *scales
    )


# Prefix of an operator's name -> the module that has it without.
_FAMILIES = {"linalg_": "linalg", "fft_": "fft", "special_": "special"}


def _places(name):
    """(module or class, attribute) where the operator `name` may be."""
    yield _hf, name
    yield _hf.Tensor, name
    for prefix, module in _FAMILIES.items():
        if name.startswith(prefix):
            yield getattr(_hf, module), name[len(prefix) :]


def __getattr__(name):
    for place, attribute in () if name.startswith("__") else _places(name):
        found = getattr(place, attribute, None)
        if callable(found) and not isinstance(found, (type, types.ModuleType)):
            operator = _Operator(found, name)
            setattr(sys.modules[__name__], name, operator)
            return operator
    if name.startswith("__"):
        raise AttributeError(f"module 'holdfast.aten' has no attribute '{name}'")
    raise MissingAttributeError(f"holdfast has no torch.ops.aten.{name}")
