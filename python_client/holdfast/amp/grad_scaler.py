# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""GradScaler: losses scaled up, so that gradients in float16 do not vanish
(Micikevicius et al. 2018, arXiv:1710.03740).

The scale halves when a gradient is inf or nan, whose step is left out, and doubles
after many steps without.
"""

import warnings

import holdfast
from holdfast import _C, cuda

TYPE_CHECKING = False  # to checkers it is typing's, whose import takes its time
if TYPE_CHECKING:
    from typing import Any

_READY, _UNSCALED, _STEPPED = "ready", "unscaled", "stepped"


class GradScaler:
    """`scaler.scale(loss).backward(); scaler.step(optimizer); scaler.update()`.

    Off, with a warning, where the daemon has no GPU; then it passes everything
    through. `step` waits for the daemon: it must know whether a gradient is inf.
    """

    def __init__(
        self,
        device="cuda",
        init_scale=2.0**16,
        growth_factor=2.0,
        backoff_factor=0.5,
        growth_interval=2000,
        enabled=True,
    ):
        if not isinstance(device, (str, holdfast.device)):
            # torch.cuda.amp's has no device.
            device, init_scale = "cuda", device
        self._on_gpu = str(device).startswith("cuda")
        if enabled and self._on_gpu and not cuda.is_available():
            warnings.warn(
                "torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  "
                "Disabling.",
                stacklevel=2,
            )
            enabled = False
        self._enabled = bool(enabled)
        if not self._enabled:
            return
        if growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._scale_now = float(init_scale)
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._growth_tracker = 0
        self._stages = {}  # of each optimizer since the last update, by id
        self._found = {}  # whether it has inf or nan: tensors, by id

    def is_enabled(self):
        """Whether it scales."""
        return self._enabled

    def scale(self, outputs) -> "Any":
        """A tensor, or lists and tuples of them, times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, holdfast.Tensor):
            return outputs * self._scale_now
        if not hasattr(outputs, "__iter__"):
            raise ValueError("outputs must be a Tensor or an iterable of Tensors")
        scaled = [self.scale(output) for output in outputs]
        return type(outputs)(scaled) if isinstance(outputs, (list, tuple)) else scaled

    def unscale_(self, optimizer):
        """Divides the gradients of the optimizer's parameters by the scale, for what
        looks at them before step(), such as clip_grad_norm_."""
        if not self._enabled:
            return
        stage = self._stages.get(id(optimizer), _READY)
        if stage is _UNSCALED:
            raise RuntimeError(
                "unscale_() has already been called on this optimizer since the last "
                "update()."
            )
        if stage is _STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        found = []
        with holdfast.no_grad():
            for group in optimizer.param_groups:
                for grad in (p.grad for p in group["params"] if p.grad is not None):
                    found.append(self._unscaled(grad))
            if not found:
                raise AssertionError("No inf checks were recorded for this optimizer.")
            together = holdfast.stack([_C.move_to(f, 0) for f in found]).any()
        self._found[id(optimizer)] = together
        self._stages[id(optimizer)] = _UNSCALED

    def _unscaled(self, grad):
        """Whether it has inf or nan, a 0-d tensor."""
        if grad.dtype is holdfast.float16:
            raise ValueError("Attempting to unscale FP16 gradients.")
        grad.mul_(1.0 / self._scale_now)
        return ~holdfast.isfinite(grad).all()

    def step(self, optimizer, *args, **kwargs):
        """unscale_() if that was not done, then optimizer.step(), unless a gradient is
        inf or nan; what that returns, or None."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError(
                "Closure use is not currently supported if GradScaler is enabled."
            )
        stage = self._stages.get(id(optimizer), _READY)
        if stage is _STEPPED:
            raise RuntimeError(
                "step() has already been called since the last update()."
            )
        if stage is _READY:
            self.unscale_(optimizer)
        self._stages[id(optimizer)] = _STEPPED
        if self._found[id(optimizer)].item():
            return None
        return optimizer.step(*args, **kwargs)

    def update(self, new_scale=None):
        """Moves the scale, or sets it: once, after the steps of all optimizers."""
        if not self._enabled:
            return
        if new_scale is not None:
            self._scale_now = float(new_scale)
        elif not self._found:
            raise AssertionError("No inf checks were recorded prior to update.")
        elif any(found.item() for found in self._found.values()):
            self._scale_now *= self._backoff_factor
            self._growth_tracker = 0
        else:
            self._growth_tracker += 1
            if self._growth_tracker == self._growth_interval:
                self._scale_now *= self._growth_factor
                self._growth_tracker = 0
        self._stages, self._found = {}, {}

    def get_scale(self):
        """The scale of now; 1.0 where it is off."""
        return self._scale_now if self._enabled else 1.0

    def get_growth_factor(self):
        """What the scale grows by."""
        return self._growth_factor

    def set_growth_factor(self, new_factor):
        """Changes it."""
        self._growth_factor = new_factor

    def get_backoff_factor(self):
        """What the scale shrinks by."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor):
        """Changes it."""
        self._backoff_factor = new_factor

    def get_growth_interval(self):
        """Steps without inf and nan until the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval):
        """Changes it."""
        self._growth_interval = new_interval

    def state_dict(self):
        """Scale and settings, for checkpoints; empty where it is off."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._growth_tracker,
        }

    def load_state_dict(self, state_dict):
        """What state_dict() gave. RuntimeError if that is of one that was off."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a "
                "disabled instance of GradScaler."
            )
        self._scale_now = float(state_dict["scale"])
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._growth_tracker = state_dict["_growth_tracker"]
