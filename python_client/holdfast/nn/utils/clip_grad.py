# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Limits on gradients, in place."""

import warnings

import holdfast
from holdfast import _C


def _with_gradients(parameters):
    if isinstance(parameters, holdfast.Tensor):
        parameters = [parameters]
    return [p.grad for p in parameters if p.grad is not None]


def _stacked(numbers):
    """Of all devices, on the first one's."""
    first = numbers[0]._device_number
    return holdfast.stack([_C.move_to(number, first) for number in numbers])


def get_total_norm(tensors, norm_type=2.0, error_if_nonfinite=False, foreach=None):
    """The norm of all tensors as one vector, a 0-d tensor, without waiting for it;
    `error_if_nonfinite` waits and raises RuntimeError on inf and nan."""
    tensors = [tensors] if isinstance(tensors, holdfast.Tensor) else list(tensors)
    norm_type = float(norm_type)
    if not tensors:
        return holdfast.tensor(0.0)
    with holdfast.no_grad():
        if norm_type == float("inf"):
            norm = _stacked([g.abs().max() for g in tensors]).max()
        elif norm_type == 2.0:
            norm = _stacked([(g * g).sum() for g in tensors]).sum().sqrt()
        else:
            parts = [(g.abs() ** norm_type).sum() for g in tensors]
            norm = _stacked(parts).sum() ** (1.0 / norm_type)
    if error_if_nonfinite and not holdfast.isfinite(norm).item():
        raise RuntimeError(
            f"The total norm of order {norm_type} for gradients from `parameters` "
            "is non-finite, so it cannot be clipped. To disable this error and "
            "scale the gradients by the non-finite norm anyway, set "
            "`error_if_nonfinite=False`"
        )
    return norm


def clip_grads_with_norm_(parameters, max_norm, total_norm, foreach=None):
    """Scales all gradients as if their joint norm were total_norm: to max_norm at
    most."""
    with holdfast.no_grad():
        factor = (float(max_norm) / (total_norm + 1e-6)).clamp(max=1.0)
        for grad in _with_gradients(parameters):
            grad.mul_(_C.move_to(factor, grad._device_number))


def clip_grad_norm_(
    parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None
):
    """Scales all gradients so that their joint norm is at most max_norm.

    Returns the norm before, a 0-d tensor, without waiting for it;
    `error_if_nonfinite` waits and raises RuntimeError on inf and nan.
    """
    if not isinstance(parameters, holdfast.Tensor):
        parameters = list(parameters)
    norm = get_total_norm(_with_gradients(parameters), norm_type, error_if_nonfinite)
    clip_grads_with_norm_(parameters, max_norm, norm)
    return norm


def clip_grad_value_(parameters, clip_value, foreach=None):
    """Limits every element of every gradient to [-clip_value, clip_value]."""
    clip_value = float(clip_value)
    with holdfast.no_grad():
        for grad in _with_gradients(parameters):
            grad.clamp_(-clip_value, clip_value)


def clip_grad_norm(
    parameters, max_norm, norm_type=2.0, error_if_nonfinite=False, foreach=None
):
    """clip_grad_norm_(), by its old name; warns."""
    warnings.warn(
        "torch.nn.utils.clip_grad_norm is now deprecated in favor of "
        "torch.nn.utils.clip_grad_norm_.",
        stacklevel=2,
    )
    return clip_grad_norm_(parameters, max_norm, norm_type, error_if_nonfinite, foreach)
