# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""autocast: ops in the type that serves them best (Micikevicius et al. 2018,
arXiv:1710.03740).

Inside, matrix products, convolutions and recurrent layers take their inputs in 16
bits, and functions that lose too much by that in float32: softmax, losses, sums,
powers, norms; the rest in the type that comes. Parameters stay what they are:
each is cast once per block, and gradients come back in its own type.
"""

import functools
import warnings

from holdfast import _C, cuda

Tensor = _C.Tensor
_KINDS = {"cpu": False, "cuda": True}


class autocast:
    """Context manager and decorator: autocast on `device_type` ("cuda", "cpu").

    dtype          float16 (cuda's default) or bfloat16 (cpu's, where float16 is
                   refused as in PyTorch)
    enabled        False: off inside
    cache_enabled  False: parameters are cast anew for each op
    """

    def __init__(self, device_type, dtype=None, enabled=True, cache_enabled=None):
        if device_type not in _KINDS:
            raise RuntimeError(
                "User specified autocast device_type must be 'cuda' or 'cpu'. Got "
                f"{device_type!r}"
            )
        self.device = device_type
        self._gpu = _KINDS[device_type]
        self.fast_dtype = _C.autocast_dtype(self._gpu) if dtype is None else dtype
        self._cache = cache_enabled is None or bool(cache_enabled)
        self._enabled = bool(enabled) and self._possible()
        self._states = []

    def _possible(self):
        # The caller of __init__: cuda.amp's class has one of its own.
        level = 3 if type(self) is autocast else 4
        if self._gpu and not cuda.is_available():
            warnings.warn(
                "User provided device_type of 'cuda', but CUDA is not available. "
                "Disabling",
                stacklevel=level,
            )
            return False
        if self.fast_dtype in (_C.bfloat16, _C.float16 if self._gpu else None):
            return True
        supported = "float16 and bfloat16" if self._gpu else "bfloat16"
        warnings.warn(
            f"In {self.device} autocast, but the target dtype is not supported. "
            f"Disabling autocast.\n {self.device} Autocast only supports dtype of "
            f"{supported} currently.",
            stacklevel=level,
        )
        return False

    def __enter__(self):
        state = _C.autocast_enter(
            self._gpu, self._enabled, self.fast_dtype, self._cache
        )
        self._states.append(state)
        return self

    def __exit__(self, *error):
        _C.autocast_exit(self._states.pop())

    def __call__(self, f):
        @functools.wraps(f)
        def wrapper(*args, **kwargs):
            with self:
                return f(*args, **kwargs)

        return wrapper


def is_on(tensors):
    """Whether autocast is on for the kind of device that the tensors are on."""
    return _C.autocast_is_on(any(isinstance(t, Tensor) and t.is_cuda for t in tensors))


def _cast(value, dtype, gpu):
    if isinstance(value, Tensor):
        eligible = (
            value.dtype.is_floating_point
            and value.dtype is not _C.float64
            and value.is_cuda == gpu
        )
        return value.to(dtype) if eligible else value
    if isinstance(value, dict):
        return {_cast(k, dtype, gpu): _cast(v, dtype, gpu) for k, v in value.items()}
    if isinstance(value, (list, tuple)) and not hasattr(value, "_fields"):
        return type(value)(_cast(v, dtype, gpu) for v in value)
    return value


def in_float32(function):
    """`function`, whose tensors come in float32 where autocast is on."""

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        if not (_C.autocast_is_on(False) or _C.autocast_is_on(True)):
            return function(*args, **kwargs)
        tensors = (*args, *kwargs.values())
        if not is_on(tensors):
            return function(*args, **kwargs)
        gpu = any(isinstance(t, Tensor) and t.is_cuda for t in tensors)
        args, kwargs = (_cast(v, _C.float32, gpu) for v in (args, kwargs))
        with autocast("cuda" if gpu else "cpu", enabled=False):
            return function(*args, **kwargs)

    return wrapper


def as_recurrent(forward):
    """`forward` of a recurrent layer where autocast is on: on a GPU from input and
    state in its type, as the products inside take them; on the CPU in float32."""

    @functools.wraps(forward)
    def wrapper(self, input, hx=None):
        if not (_C.autocast_is_on(False) or _C.autocast_is_on(True)):
            return forward(self, input, hx)
        gpu = input.data.is_cuda  # a packed sequence's, too
        if not _C.autocast_is_on(gpu):
            return forward(self, input, hx)
        dtype = _C.autocast_dtype(gpu) if gpu else _C.float32
        packed = hasattr(input, "batch_sizes")
        input = input.to(dtype) if packed else _cast(input, dtype, gpu)
        with autocast("cuda" if gpu else "cpu", enabled=gpu):
            return forward(self, input, _cast(hx, dtype, gpu))

    return wrapper


def custom_fwd(fwd=None, *, cast_inputs=None, device_type="cuda"):
    """Decorator of a Function's forward. With `cast_inputs`, where autocast is on, it
    takes its floating-point inputs in that type and runs with autocast off; without,
    with autocast as it is. custom_bwd runs backward in the same way."""
    if fwd is None:
        return functools.partial(
            custom_fwd, cast_inputs=cast_inputs, device_type=device_type
        )
    gpu = _KINDS[device_type]

    @functools.wraps(fwd)
    def wrapper(ctx, *args, **kwargs):
        on = _C.autocast_is_on(gpu)
        ctx._dtype = _C.autocast_dtype(gpu)
        ctx._fwd_used_autocast = on and cast_inputs is None
        if not on or cast_inputs is None:
            return fwd(ctx, *args, **kwargs)
        args, kwargs = (_cast(v, cast_inputs, gpu) for v in (args, kwargs))
        with autocast(device_type, enabled=False):
            return fwd(ctx, *args, **kwargs)

    return wrapper


def custom_bwd(bwd=None, *, device_type="cuda"):
    """Decorator of the backward of a Function whose forward has custom_fwd."""
    if bwd is None:
        return functools.partial(custom_bwd, device_type=device_type)

    @functools.wraps(bwd)
    def wrapper(ctx, *args):
        before = _C.autocast_enter(
            _KINDS[device_type], ctx._fwd_used_autocast, ctx._dtype, True
        )
        try:
            return bwd(ctx, *args)
        finally:
            _C.autocast_exit(before)

    return wrapper


class Surroundings:
    """Autocast as it is now, for a function that runs again later."""

    def __init__(self):
        self._kinds = [
            (gpu, _C.autocast_is_on(gpu), _C.autocast_dtype(gpu))
            for gpu in (False, True)
        ]

    def __enter__(self):
        self._before = [_C.autocast_enter(*kind, True) for kind in self._kinds]

    def __exit__(self, *error):
        for state in reversed(self._before):
            _C.autocast_exit(state)
