# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""What torch.amp.GradScaler asks a device. Nothing here reads a value: whether a
gradient was infinite stays on the daemon until the scaler's step asks for it."""

import torch

from holdfast_torch.composites import declare


@declare("_amp_foreach_non_finite_check_and_unscale_")
def _amp_foreach_non_finite_check_and_unscale_(self, found_inf, inv_scale):
    """found_inf (one float32) becomes 1 where a gradient has a number that is not
    finite; all gradients are multiplied by inv_scale (one float32)."""
    for gradient in self:
        infinite = torch.isfinite(gradient).all().logical_not()
        found_inf.copy_(torch.maximum(found_inf, infinite.to(found_inf.dtype)))
        gradient.mul_(inv_scale)


@declare("_amp_update_scale_")
def _amp_update_scale_(
    self, growth_tracker, found_inf, scale_growth_factor, scale_backoff_factor, interval
):
    """The next scale (`self`, one float32): smaller after an infinite gradient, larger
    after `interval` steps (counted in growth_tracker, one int32) without one."""
    failed = found_inf > 0
    steps = growth_tracker + 1
    grows = steps == interval
    larger = self * scale_growth_factor
    kept = torch.where(grows & torch.isfinite(larger), larger, self)
    self.copy_(torch.where(failed, self * scale_backoff_factor, kept))
    growth_tracker.copy_(torch.where(failed | grows, 0, steps))
    return self
