# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""DistributedDataParallel in a group of one process."""

import contextlib

from holdfast import distributed

from ..module import Module
from .data_parallel import need_gpus
from .scatter_gather import scatter_kwargs

__all__ = ["DistributedDataParallel"]


class DistributedDataParallel(Module):
    """Calls `module`: in a group of one there is nothing to exchange.

    Needs torch.distributed.init_process_group(), as PyTorch's (RuntimeError).
    """

    def __init__(
        self,
        module,
        device_ids=None,
        output_device=None,
        dim=0,
        broadcast_buffers=True,
        process_group=None,
        bucket_cap_mb=25,
        find_unused_parameters=False,
        check_reduction=False,
        gradient_as_bucket_view=False,
        static_graph=False,
        **options,
    ):
        super().__init__()
        if not distributed.is_initialized():
            raise RuntimeError(
                "Default process group has not been initialized, please make sure to "
                "call init_process_group."
            )
        if not any(p.requires_grad for p in module.parameters()):
            raise RuntimeError(
                "DistributedDataParallel is not needed when a module doesn't have any "
                "parameters that require a gradient."
            )
        need_gpus(device_ids, "DistributedDataParallel")
        if device_ids is not None and len(device_ids) > 1:
            raise ValueError(
                "device_ids can only be None or contain a single element. Got "
                f"device_ids={list(device_ids)}; DataParallel uses several GPUs."
            )
        self.module = module
        self.device_ids = device_ids
        self.dim = dim
        self.broadcast_buffers = broadcast_buffers
        self.find_unused_parameters = find_unused_parameters
        self.static_graph = static_graph
        self.require_backward_grad_sync = True

    def forward(self, *inputs, **kwargs):
        if self.device_ids:
            moved = scatter_kwargs(inputs, kwargs, self.device_ids, self.dim)
            (inputs,), (kwargs,) = moved if moved[0] else (((),), ({},))
        return self.module(*inputs, **kwargs)

    @contextlib.contextmanager
    def no_sync(self):
        """Inside, gradients are not exchanged; in a group of one they never are."""
        before = self.require_backward_grad_sync
        self.require_backward_grad_sync = False
        try:
            yield
        finally:
            self.require_backward_grad_sync = before

    @contextlib.contextmanager
    def join(self, divide_by_initial_world_size=True, enable=True, **options):
        """For uneven inputs over processes; of one there are none."""
        yield
