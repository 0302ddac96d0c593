# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.distributed with backend "holdfast": gloo, with tensors of the daemon brought
to the host for it, and nothing at all to exchange in a world of one."""

import torch
import torch.distributed as dist
from torch._C._distributed_c10d import _create_work_from_future
from torch.futures import Future


def register():
    """Makes the name known to init_process_group(), the default for the device."""
    if dist.is_available() and "HOLDFAST" not in dist.Backend._plugins:
        dist.Backend.register_backend("holdfast", create, devices=["cpu", "holdfast"])


def create(store, rank, size, timeout):
    return ProcessGroup(store, rank, size, timeout)


def _done(result):
    """The work of an exchange that is over."""
    future = Future()
    future.set_result(result)
    return _create_work_from_future(future)


class _OnHost:
    """Host copies of nested lists of tensors while gloo has them."""

    def __init__(self):
        self._pairs = []

    def __call__(self, value):
        if not isinstance(value, torch.Tensor):
            return [self(item) for item in value]
        if value.device.type == "cpu":
            return value
        copy = value.detach().cpu()
        self._pairs.append((value, copy))
        return copy

    def bring_back(self):
        with torch.no_grad():
            for tensor, copy in self._pairs:
                tensor.copy_(copy)


class ProcessGroup(dist.ProcessGroup):
    """Tensors of devices "cpu" and "holdfast". An exchange is over when it returns."""

    def __init__(self, store, rank, size, timeout):
        super().__init__(rank, size)
        self._gloo = dist.ProcessGroupGloo(store, rank, size, timeout)

    def getBackendName(self):
        return "holdfast"

    def _exchange(self, function, outputs, *inputs):
        host = _OnHost()
        function(host(outputs), *map(host, inputs)).wait()
        host.bring_back()
        return _done(outputs)

    def _alone(self, outputs, inputs):
        """What a world of one exchanges: each output is the input beside it."""
        with torch.no_grad():
            for output, own in zip(outputs, inputs, strict=True):
                output.copy_(own.view(output.shape))
        return _done(outputs)

    def allreduce(self, tensors, opts=None):
        if self.size() == 1:
            return _done(tensors)
        opts = opts or dist.AllreduceOptions()
        return self._exchange(lambda t: self._gloo.allreduce(t, opts), tensors)

    def allreduce_coalesced(self, tensors, opts=None):
        if self.size() == 1:
            return _done(tensors)
        opts = opts or dist.AllreduceCoalescedOptions()
        reduce = self._gloo.allreduce_coalesced
        return self._exchange(lambda t: reduce(t, opts), tensors)

    def broadcast(self, tensors, opts=None):
        if self.size() == 1:
            return _done(tensors)
        opts = opts or dist.BroadcastOptions()
        return self._exchange(lambda t: self._gloo.broadcast(t, opts), tensors)

    def reduce(self, tensors, opts=None):
        if self.size() == 1:
            return _done(tensors)
        opts = opts or dist.ReduceOptions()
        return self._exchange(lambda t: self._gloo.reduce(t, opts), tensors)

    def allgather(self, outputs, inputs, opts=None):
        if self.size() == 1:
            return self._alone([parts[0] for parts in outputs], inputs)
        return self._exchange(self._gloo.allgather, outputs, inputs)

    def _allgather_base(self, output, own, opts=None):
        if self.size() == 1:
            return self._alone([output], [own])
        return self._exchange(self._gloo._allgather_base, output, own)

    def allgather_into_tensor_coalesced(self, outputs, inputs, opts=None):
        for output, own in zip(outputs, inputs, strict=True):
            self._allgather_base(output, own).wait()
        return _done(outputs)

    def gather(self, outputs, inputs, opts):
        if self.size() == 1:
            return self._alone([parts[0] for parts in outputs], inputs)
        gather = self._gloo.gather
        return self._exchange(lambda o, i: gather(o, i, opts), outputs, inputs)

    def scatter(self, outputs, inputs, opts):
        if self.size() == 1:
            return self._alone(outputs, [parts[0] for parts in inputs])
        scatter = self._gloo.scatter
        return self._exchange(lambda o, i: scatter(o, i, opts), outputs, inputs)

    def reduce_scatter(self, outputs, inputs, opts):
        if self.size() == 1:
            return self._alone(outputs, [parts[0] for parts in inputs])
        scatter = self._gloo.reduce_scatter
        return self._exchange(lambda o, i: scatter(o, i, opts), outputs, inputs)

    def _reduce_scatter_base(self, output, own, opts):
        if self.size() == 1:
            return self._alone([output], [own])
        scatter = self._gloo._reduce_scatter_base
        return self._exchange(lambda o, i: scatter(o, i, opts), output, own)

    def reduce_scatter_tensor_coalesced(self, outputs, inputs, opts):
        for output, own in zip(outputs, inputs, strict=True):
            self._reduce_scatter_base(output, own, opts).wait()
        return _done(outputs)

    def alltoall_base(self, output, own, output_sizes, input_sizes, opts=None):
        if self.size() == 1:
            return self._alone([output], [own])
        opts = opts or dist.AllToAllOptions()
        exchange = self._gloo.alltoall_base
        return self._exchange(
            lambda o, i: exchange(o, i, output_sizes, input_sizes, opts), output, own
        )

    def alltoall(self, outputs, inputs, opts=None):
        if self.size() == 1:
            return self._alone(outputs, inputs)
        opts = opts or dist.AllToAllOptions()
        exchange = self._gloo.alltoall
        return self._exchange(lambda o, i: exchange(o, i, opts), outputs, inputs)

    def send(self, tensors, to, tag=0):
        return self._exchange(lambda t: self._gloo.send(t, to, tag), tensors)

    def recv(self, tensors, source, tag=0):
        return self._exchange(lambda t: self._gloo.recv(t, source, tag), tensors)

    def recv_anysource(self, tensors, tag=0):
        return self._exchange(lambda t: self._gloo.recv_anysource(t, tag), tensors)

    def barrier(self, opts=None):
        if self.size() > 1:
            self._gloo.barrier(opts or dist.BarrierOptions()).wait()
        return _done([])

    # PyTorch 2.15's names for what earlier ones called otherwise.
    all_gather_single = _allgather_base
    all_gather_single_coalesced = allgather_into_tensor_coalesced
    reduce_scatter_single = _reduce_scatter_base
    reduce_scatter_single_coalesced = reduce_scatter_tensor_coalesced
    all_to_all_single = alltoall_base
