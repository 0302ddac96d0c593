# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""DataParallel and what it is made of, with one device."""

import holdfast
from holdfast import cuda
from holdfast.errors import UnsupportedError

from ..module import Module

__all__ = [
    "DataParallel",
    "data_parallel",
    "gather",
    "parallel_apply",
    "replicate",
    "scatter",
]


def check_one(device_ids, what):
    """UnsupportedError for more than one device, AssertionError for a GPU that is
    not there; None is the device that there is."""
    ids = [] if device_ids is None else list(device_ids)
    if len(ids) > 1:
        raise UnsupportedError(
            f"holdfast has no {what} over several devices: a session has one. "
            f"Got device_ids={ids}."
        )
    if ids and not cuda.is_available():
        raise AssertionError(
            f"{what}: device_ids={ids} names a GPU, and the daemon computes on the "
            "CPU; leave device_ids out"
        )


class DataParallel(Module):
    """Calls `module`: there is one device to spread a batch over.

    The wrapped module is `.module`, so that names in state_dicts are PyTorch's.
    """

    def __init__(self, module, device_ids=None, output_device=None, dim=0):
        super().__init__()
        if not isinstance(device_ids, range) and cuda.is_available():
            check_one(device_ids, "DataParallel")
        self.module = module
        self.dim = dim
        # Without a GPU PyTorch, too, forgets what was asked for.
        self.device_ids = [0] if cuda.is_available() else []

    def forward(self, *inputs, **kwargs):
        return self.module(*inputs, **kwargs)


def data_parallel(
    module, inputs, device_ids=None, output_device=None, dim=0, module_kwargs=None
):
    """module(*inputs, **module_kwargs)."""
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    return module(*inputs, **(module_kwargs or {}))


def replicate(network, devices, detach=False):
    """The network itself, for one device."""
    check_one(devices, "nn.parallel.replicate")
    return [network]


def scatter(inputs, target_gpus, dim=0):
    """The inputs as the one part that there is."""
    check_one(target_gpus, "nn.parallel.scatter")
    return [inputs]


def parallel_apply(modules, inputs, kwargs_tup=None, devices=None):
    """Each module called with its inputs, one after the other."""
    if len(modules) != len(inputs):
        raise AssertionError(
            f"expected as many inputs as modules. Got {len(inputs)} and {len(modules)}."
        )
    kwargs_tup = kwargs_tup or [{}] * len(modules)
    results = []
    for module, given, kwargs in zip(modules, inputs, kwargs_tup):
        given = given if isinstance(given, (list, tuple)) else (given,)
        results.append(module(*given, **kwargs))
    return results


def gather(outputs, target_device, dim=0):
    """The parts' results put together along dim."""
    first = outputs[0]
    if len(outputs) == 1 or first is None:
        return first
    if isinstance(first, holdfast.Tensor):
        if first.dim() == 0:
            return holdfast.stack(list(outputs))
        return holdfast.cat(list(outputs), dim)
    if isinstance(first, dict):
        return type(first)(
            (key, gather([o[key] for o in outputs], target_device, dim))
            for key in first
        )
    return type(first)(gather(part, target_device, dim) for part in zip(*outputs))
