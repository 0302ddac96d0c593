# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""safetensors, loading to the device.

Its loader knows a fixed list of devices and refuses the name of any other
(`impl FromPyObject for Device` in bindings/python/src/lib.rs: "device holdfast is
invalid"). Here a file opened for device "holdfast" is opened for the CPU, and each
tensor that is asked for goes to the daemon. Files are mapped: only what is asked for
is read. Saving, and `load_model`, need nothing."""

import contextlib
import sys

import safetensors
import torch


class _Slice:
    def __init__(self, part, device):
        self._part, self._device = part, device

    def __getitem__(self, key):
        return self._part[key].to(self._device)

    def __getattr__(self, name):
        return getattr(self._part, name)


class _File:
    """safetensors.safe_open on the CPU whose tensors are sent to `device`."""

    def __init__(self, file, device):
        self._file, self._device = file, device

    def __enter__(self):
        self._file.__enter__()
        return self

    def __exit__(self, *what):
        return self._file.__exit__(*what)

    def get_tensor(self, name):
        return self._file.get_tensor(name).to(self._device)

    def get_tensors(self, *args, **kwargs):
        found = self._file.get_tensors(*args, **kwargs)
        return {name: tensor.to(self._device) for name, tensor in found.items()}

    def get_slice(self, name):
        return _Slice(self._file.get_slice(name), self._device)

    def __getattr__(self, name):
        return getattr(self._file, name)


_original = safetensors.safe_open


def safe_open(filename, framework, device="cpu", **named):
    """safetensors.safe_open, for device "holdfast" too."""
    if framework in ("pt", "torch", "pytorch") and not isinstance(device, int):
        if torch.device(device).type == "holdfast":
            return _File(_original(filename, framework, device="cpu", **named), device)
        device = str(device)
    return _original(filename, framework, device=device, **named)


def _replace(old, new):
    """Wherever the name was imported: modules have copies of it."""
    for module in list(sys.modules.values()):
        if getattr(module, "__dict__", {}).get("safe_open") is old:
            if module.__name__ != __name__:
                module.safe_open = new


def install():
    """safetensors.torch.load_file(..., device="holdfast") and safe_open work."""
    import safetensors.torch  # noqa: F401

    _replace(_original, safe_open)


@contextlib.contextmanager
def device():
    """install(), and safetensors' own at the end."""
    install()
    try:
        yield
    finally:
        _replace(safe_open, _original)
