# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.distributed for a group of one process.

One daemon owns one machine's device, so that a program written for many processes
runs here as its only one: collectives keep what they are given. A group of
several is refused by name.
"""

from holdfast.distributed.collectives import (  # noqa: F401
    P2POp,
    ReduceOp,
    Work,
    all_gather,
    all_gather_into_tensor,
    all_gather_object,
    all_reduce,
    all_reduce_coalesced,
    all_to_all,
    all_to_all_single,
    barrier,
    batch_isend_irecv,
    broadcast,
    broadcast_object_list,
    gather,
    gather_object,
    irecv,
    isend,
    monitored_barrier,
    recv,
    reduce,
    reduce_op,
    reduce_scatter,
    reduce_scatter_tensor,
    scatter,
    scatter_object_list,
    send,
)
from holdfast.distributed.process_group import (  # noqa: F401
    Backend,
    GroupMember,
    ProcessGroup,
    dist_backend,
    destroy_process_group,
    get_backend,
    get_default_backend_for_device,
    get_global_rank,
    get_group_rank,
    get_process_group_ranks,
    get_rank,
    get_world_size,
    group,
    init_process_group,
    is_available,
    is_gloo_available,
    is_initialized,
    is_mpi_available,
    is_nccl_available,
    is_torchelastic_launched,
    is_ucc_available,
    new_group,
)
from holdfast.missing import module_getattr

_all_gather_base = all_gather_into_tensor
_reduce_scatter_base = reduce_scatter_tensor

__getattr__ = module_getattr(
    "torch.distributed", submodules=("collectives", "process_group")
)
