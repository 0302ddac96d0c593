# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Autocast's state on this thread, by torch's names: `is_autocast_enabled()` is of
GPUs, as are all that do not name the CPU or take a device type."""

from holdfast import _C

_KINDS = {"cpu": False, "cuda": True}


def is_autocast_enabled(device_type="cuda"):
    """Whether autocast is on."""
    return _C.autocast_is_on(_KINDS[device_type])


def is_autocast_cpu_enabled():
    """Whether autocast is on for tensors on the CPU."""
    return _C.autocast_is_on(False)


def get_autocast_dtype(device_type):
    """The type that products take their inputs in."""
    return _C.autocast_dtype(_KINDS[device_type])


def get_autocast_gpu_dtype():
    """get_autocast_dtype("cuda")"""
    return _C.autocast_dtype(True)


def get_autocast_cpu_dtype():
    """get_autocast_dtype("cpu")"""
    return _C.autocast_dtype(False)


def set_autocast_enabled(*arguments):
    """set_autocast_enabled(enabled) or (device_type, enabled)."""
    *kind, enabled = arguments
    _C.set_autocast(_KINDS[kind[0]] if kind else True, enabled)


def set_autocast_cpu_enabled(enabled):
    """set_autocast_enabled("cpu", enabled)"""
    _C.set_autocast(False, enabled)


def set_autocast_dtype(device_type, dtype):
    """Changes get_autocast_dtype(device_type)."""
    _C.set_autocast_dtype(_KINDS[device_type], dtype)


def set_autocast_gpu_dtype(dtype):
    """set_autocast_dtype("cuda", dtype)"""
    _C.set_autocast_dtype(True, dtype)


def set_autocast_cpu_dtype(dtype):
    """set_autocast_dtype("cpu", dtype)"""
    _C.set_autocast_dtype(False, dtype)


def clear_autocast_cache():
    """Forgets parameters that were cast; the outermost block does it at its end."""
    _C.clear_autocast_cache()
