# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""DataParallel: a module over a batch that several GPUs of one daemon share. Each
gets a part and a copy of the parameters; gradients flow back to the originals."""

from holdfast import _C, cuda

from ..module import Module
from .scatter_gather import gather, scatter_kwargs

__all__ = ["DataParallel", "data_parallel", "parallel_apply", "replicate"]


def need_gpus(device_ids, what):
    """AssertionError where GPUs are named and the daemon has none."""
    ids = [] if device_ids is None else list(device_ids)
    if ids and not cuda.is_available():
        raise AssertionError(
            f"{what}: device_ids={ids} names a GPU, and the daemon computes on the "
            "CPU; leave device_ids out"
        )


def _index(device):
    return cuda.index_of(device)


class DataParallel(Module):
    """Calls `module` with a part of the batch on each of device_ids (all GPUs of the
    daemon), and puts the results together on output_device (the first). The module
    is on the first. Without a GPU it is called directly.

    The wrapped module is `.module`, so that names in state_dicts are PyTorch's.
    """

    def __init__(self, module, device_ids=None, output_device=None, dim=0):
        super().__init__()
        self.module = module
        self.dim = dim
        # Without a GPU PyTorch, too, forgets what was asked for.
        self.device_ids = []
        if not cuda.is_available():
            return
        if device_ids is None:
            device_ids = range(cuda.device_count())
        if not device_ids:
            raise RuntimeError("no available devices were found")
        self.device_ids = [_index(device) for device in device_ids]
        self.output_device = _index(
            self.device_ids[0] if output_device is None else output_device
        )

    def forward(self, *inputs, **kwargs):
        if not self.device_ids:
            return self.module(*inputs, **kwargs)
        _check_home(self.module, self.device_ids[0])
        inputs, kwargs = scatter_kwargs(inputs, kwargs, self.device_ids, self.dim)
        if not inputs:
            inputs, kwargs = ((),), ({},)
        if len(self.device_ids) == 1:
            return self.module(*inputs[0], **kwargs[0])
        replicas = replicate(self.module, self.device_ids[: len(inputs)])
        outputs = parallel_apply(replicas, inputs, kwargs)
        return gather(outputs, self.output_device, self.dim)


def _check_home(module, index):
    home = _C.device_number(index)
    for tensor in (*module.parameters(), *module.buffers()):
        if tensor._device_number != home:
            raise RuntimeError(
                "module must have its parameters and buffers on device "
                f"cuda:{index} (device_ids[0]) but found one of them on device: "
                f"{tensor.device}"
            )


def data_parallel(
    module, inputs, device_ids=None, output_device=None, dim=0, module_kwargs=None
):
    """module(*inputs, **module_kwargs), as DataParallel does it."""
    inputs = inputs if isinstance(inputs, tuple) else (inputs,)
    parallel = DataParallel(module, device_ids, output_device, dim)
    return parallel(*inputs, **(module_kwargs or {}))


def replicate(network, devices, detach=False):
    """A copy of the network per device, for one pass: its parameters are the
    network's own, moved, so that gradients reach those. On the first device that they
    are on already, buffers are the network's own, too."""
    return [_replica(network, _C.device_number(d), detach) for d in devices]


def _replica(network, number, detach):
    copies, tensors = {}, {}

    def moved(tensor):
        if tensor is None:
            return None
        if id(tensor) not in tensors:  # tied weights stay tied
            there = _C.move_to(tensor, number)
            tensors[id(tensor)] = there.detach() if detach else there
        return tensors[id(tensor)]

    for module in network.modules():
        copy = copies[id(module)] = object.__new__(type(module))
        copy.__dict__.update(module.__dict__)
        for registry in ("_parameters", "_buffers"):
            table = getattr(module, registry)
            copy.__dict__[registry] = {name: moved(t) for name, t in table.items()}
    for module in network.modules():
        copies[id(module)].__dict__["_modules"] = {
            name: None if child is None else copies[id(child)]
            for name, child in module._modules.items()
        }
    return copies[id(network)]


def parallel_apply(modules, inputs, kwargs_tup=None, devices=None):
    """Each module called with its inputs. The calls are sent one after the other and
    run side by side, each on its own device."""
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
