# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Activations."""

import holdfast as hf
from holdfast import _C

from holdfast_torch.composites import declare_holdfast as composite

F = hf.nn.functional
_ops = _C.ops


def _slope(name, op=None, numbers=lambda: ()):
    """An operator `name`_backward that is activation_backward: `numbers` makes the
    op's of the operator's arguments behind the input."""

    @composite(name + "_backward")
    def kernel(grad_output, self, *rest, **named):
        kind, *values = numbers(*rest, **named) if op is None else (op, *numbers(*rest))
        if self.is_complex() or not self.is_floating_point():
            raise RuntimeError(f'"{name}_backward" not implemented for {self.dtype}')
        grad, x = _together(grad_output, self)
        return _ops.activation_backward(grad, x, kind, *(float(v) for v in values))


@composite("threshold")
def threshold(self, threshold, value):
    if self.is_floating_point():
        return _ops.threshold(self, float(threshold), float(value))
    value = hf.full((), int(value), dtype=self.dtype)
    return _ops.where(self > threshold, self, value)


@composite("hardtanh")
def hardtanh(self, min_val=-1, max_val=1):
    if self.is_floating_point():
        return _ops.hardtanh(self, float(min_val), float(max_val))
    return hf.clamp(self, int(min_val), int(max_val))


def _together(grad, x):
    if grad.dtype != x.dtype or tuple(grad.shape) != tuple(x.shape):
        grad, x = hf.broadcast_tensors(grad, x)
    return grad, x


def _gelu(approximate="none"):
    if approximate not in ("none", "tanh"):
        raise RuntimeError("approximate argument must be either none or tanh.")
    return ("gelu_tanh" if approximate == "tanh" else "gelu",)


_slope("gelu", numbers=_gelu)
_slope("silu", "silu")
_slope("mish", "mish")
_slope("softplus", "softplus", lambda beta, threshold: (beta, threshold))
_slope("hardswish", "hardswish")
_slope("hardsigmoid", "hardsigmoid")
_slope("hardtanh", "hardtanh", lambda least, most: (least, most))
_slope("hardshrink", "hardshrink", lambda lambd: (lambd,))
_slope("softshrink", "softshrink", lambda lambd: (lambd,))


@composite("leaky_relu_backward")
def leaky_relu_backward(grad_output, self, negative_slope, self_is_result):
    return _ops.where(self > 0, grad_output, grad_output * negative_slope)


@composite("elu_backward")
def elu_backward(grad_output, alpha, scale, input_scale, is_result, self_or_result):
    x = self_or_result
    if not is_result:
        return _ops.activation_backward(
            grad_output, x, "elu", float(alpha), float(scale), float(input_scale)
        )
    if alpha < 0:
        raise RuntimeError(
            "In-place elu backward calculation is triggered with a negative slope "
            f"which is not supported: alpha {alpha}"
        )
    low = grad_output * input_scale * (x + scale * alpha)
    return _ops.where(x <= 0, low, grad_output * scale)


@composite("log_sigmoid_backward")
def log_sigmoid_backward(grad_output, self, buffer):
    return grad_output * _ops.sigmoid(-self)


@composite("sigmoid_backward")
def sigmoid_backward(grad_output, output):
    return grad_output * (output * (1 - output)).conj()


@composite("tanh_backward")
def tanh_backward(grad_output, output):
    return grad_output * (1 - output * output).conj()


@composite("glu_backward")
def glu_backward(grad_output, self, dim):
    first, gate = hf.chunk(self, 2, dim)
    gate = _ops.sigmoid(gate)
    return hf.cat(
        [grad_output * gate, grad_output * first * gate * (1 - gate)], dim=dim
    )


@composite("glu_jvp")
def glu_jvp(glu, x, dx, dim):
    gate = _ops.sigmoid(hf.chunk(x, 2, dim)[1])
    first, second = hf.chunk(dx, 2, dim)
    return first * gate + glu * (second - gate * second)


@composite("glu_backward_jvp")
def glu_backward_jvp(grad_x, grad_glu, x, dgrad_glu, dx, dim):
    first, gate = hf.chunk(x, 2, dim)
    dfirst, dgate = hf.chunk(dx, 2, dim)
    s = _ops.sigmoid(gate)
    ds = s * (1 - s) * dgate
    slope, dslope = s * (1 - s), ds * (1 - 2 * s)
    return hf.cat(
        [
            dgrad_glu * s + grad_glu * ds,
            dgrad_glu * first * slope + grad_glu * (dfirst * slope + first * dslope),
        ],
        dim=dim,
    )


@composite("logit_backward")
def logit_backward(grad_output, self, eps=None):
    low, high = (0.0, 1.0) if eps is None else (eps, 1 - eps)
    inside = _ops.logical_and(self >= low, self <= high)
    outside = float("nan") if eps is None else 0.0
    return _ops.where(inside, grad_output / (self * (1 - self)), outside)


@composite("_prelu_kernel_backward")
def _prelu_kernel_backward(grad_output, self, weight):
    positive = self > 0
    to_input = _ops.where(positive, grad_output, weight * grad_output)
    return to_input, _ops.where(positive, 0.0, self * grad_output)


@composite("rrelu_with_noise_backward")
def rrelu_with_noise_backward(
    grad_output, self, noise, lower, upper, training, self_is_result
):
    if training and upper - lower > 1e-6:
        return grad_output * noise
    return _ops.where(self > 0, grad_output, grad_output * ((lower + upper) / 2))


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
