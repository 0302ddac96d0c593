# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Losses."""

import holdfast as hf
import holdfast.nn.functional.loss_ctc as _ctc
from holdfast import _C

from holdfast_torch.composites import declare_holdfast as composite, gradients

F = hf.nn.functional
_ops = _C.ops
_REDUCTIONS = ("none", "mean", "sum")


def _smooth_l1_slope(self, target, beta):
    error = self - target
    return _ops.sign(error) if beta == 0 else hf.clamp(error / beta, -1.0, 1.0)


def _soft_margin_slope(self, target):
    return -target * _ops.sigmoid(-target * self)


# Losses that are functions of the package: the names of their numbers, the derivative
# of an element.
_PLAIN = {
    "mse_loss": ((), lambda x, target: (x - target) * 2),
    "smooth_l1_loss": (("beta",), _smooth_l1_slope),
    "huber_loss": (
        ("delta",),
        lambda x, target, delta: hf.clamp(x - target, -delta, delta),
    ),
    "soft_margin_loss": ((), _soft_margin_slope),
}


def _plain(name, numbers, slope):
    function = getattr(F, name)

    @composite(name)
    def forward(self, target, reduction=1, *values):
        named = dict(zip(numbers, values))
        return function(self, target, reduction=_REDUCTIONS[reduction], **named)

    @composite(name + "_backward")
    def backward(grad_output, self, target, reduction, *values):
        # grad_output may have each element's own number whatever the reduction.
        result = slope(self, target, *values) * grad_output
        return result / result.numel() if reduction == 1 else result


for _name, (_numbers, _slope) in _PLAIN.items():
    _plain(_name, _numbers, _slope)


@composite("binary_cross_entropy")
def binary_cross_entropy(self, target, weight=None, reduction=1):
    return F.binary_cross_entropy(
        self, target, weight, reduction=_REDUCTIONS[reduction]
    )


@composite("binary_cross_entropy_backward")
def binary_cross_entropy_backward(grad_output, self, target, weight=None, reduction=1):
    slope = (self - target) / hf.clamp(self * (1 - self), min=1e-12)
    slope = slope if weight is None else slope * weight
    slope = slope / self.numel() if reduction == 1 else slope
    return slope * grad_output


@composite("multi_margin_loss")
def multi_margin_loss(self, target, p=1, margin=1, weight=None, reduction=1):
    return F.multi_margin_loss(
        self, target, p, margin, weight, reduction=_REDUCTIONS[reduction]
    )


@composite("multi_margin_loss_backward")
def multi_margin_loss_backward(
    grad_output, self, target, p, margin, weight=None, reduction=1
):
    def loss(x):
        return F.multi_margin_loss(
            x, target, p, margin, weight, reduction=_REDUCTIONS[reduction]
        )

    return gradients(loss, grad_output, self)[0]


@composite("multilabel_margin_loss_forward")
def multilabel_margin_loss_forward(self, target, reduction):
    if self.dim() > 2 or 0 in tuple(self.shape)[-1:]:
        raise RuntimeError(
            "Expected non-empty vector or matrix with optional 0-dim batch size, but "
            f"got: {list(self.shape)}"
        )
    loss = F.multilabel_margin_loss(self, target, reduction=_REDUCTIONS[reduction])
    # Labels end at the first negative one.
    counted = hf.cumprod((target >= 0).to(_C.int64), -1)
    zeros = hf.zeros(tuple(self.shape), dtype=_C.int64)
    marks = _ops.scatter_add(zeros, -1, hf.clamp(target, min=0), counted)
    return loss, _ops.to(marks > 0, self.dtype)


@composite("multilabel_margin_loss_backward")
def multilabel_margin_loss_backward(grad_output, self, target, reduction, is_target):
    def loss(x):
        return F.multilabel_margin_loss(x, target, reduction=_REDUCTIONS[reduction])

    return gradients(loss, grad_output, self)[0]


def _rows_of(planes):
    """[N, C, H, W] as [N * H * W, C]."""
    return planes.movedim(1, -1).reshape(-1, planes.shape[1])


@composite("nll_loss_forward")
def nll_loss_forward(self, target, weight, reduction, ignore_index):
    return _ops.nll_loss(self, target, weight, _REDUCTIONS[reduction], ignore_index)


@composite("nll_loss2d_forward")
def nll_loss2d_forward(self, target, weight, reduction, ignore_index):
    if self.dim() != 4 or target.dim() != 3:
        raise RuntimeError(
            "only batches of spatial targets supported (3D tensors) but got targets of "
            f"size: {list(target.shape)} and input of size: {list(self.shape)}"
        )
    loss, total = _ops.nll_loss(
        _rows_of(self),
        target.reshape(-1),
        weight,
        _REDUCTIONS[reduction],
        ignore_index,
    )
    return loss.reshape(target.shape) if reduction == 0 else loss, total


@composite("nll_loss_backward")
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


@composite("nll_loss2d_backward")
def nll_loss2d_backward(
    grad_output, self, target, weight, reduction, ignore_index, total_weight
):
    n, c, h, w = self.shape
    rows = _ops.nll_loss_backward(
        grad_output.reshape(-1) if reduction == 0 else grad_output,
        target.reshape(-1),
        weight,
        total_weight,
        (n * h * w, c),
        _REDUCTIONS[reduction],
        ignore_index,
    )
    return rows.reshape(n, h, w, c).movedim(-1, 1)


# ---- alignments (CTC)


def _ctc_inputs(log_probs, targets, input_lengths, target_lengths):
    """Batches: log_probs [T, N, C], targets int64 [N, S], lengths int64 [N]."""
    single = log_probs.dim() == 2
    lengths = [_ctc._lengths(x) for x in (input_lengths, target_lengths)]
    if single:
        log_probs = log_probs.unsqueeze(1)
    if targets.dim() == 1:
        targets = targets.unsqueeze(0) if single else _ctc._padded(targets, lengths[1])
    return log_probs, targets.to(_C.int64), *lengths


@composite("_ctc_loss", "_ctc_loss.Tensor")
def _ctc_loss(
    log_probs, targets, input_lengths, target_lengths, blank=0, zero_infinity=False
):
    batch = _ctc_inputs(log_probs, targets, input_lengths, target_lengths)
    loss, alpha = _ops.ctc_loss(*batch, blank)
    if log_probs.dim() == 2:
        loss, alpha = loss.squeeze(0), alpha.squeeze(0)
    return loss, alpha


@composite("_ctc_loss_backward", "_ctc_loss_backward.Tensor")
def _ctc_loss_backward(
    grad,
    log_probs,
    targets,
    input_lengths,
    target_lengths,
    neg_log_likelihood,
    log_alpha,
    blank,
    zero_infinity=False,
):
    batch = _ctc_inputs(log_probs, targets, input_lengths, target_lengths)
    loss, alpha = neg_log_likelihood, log_alpha
    if zero_infinity:
        grad = _ops.where(loss == float("inf"), 0.0, grad)
    if log_probs.dim() == 2:
        grad, loss, alpha = (x.unsqueeze(0) for x in (grad, loss, alpha))
    result = _ops.ctc_loss_backward(grad, *batch, loss, alpha, blank)
    return result.squeeze(1) if log_probs.dim() == 2 else result
