# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.distributed for a group of one process.

One daemon owns one machine's device, so that a program written for many processes
runs here as its only one: collectives keep what they are given. A group of
several is refused by name.
"""

from holdfast.distributed.collectives import (  # noqa: F401
    P2POp as P2POp,
    ReduceOp as ReduceOp,
    Work as Work,
    all_gather as all_gather,
    all_gather_into_tensor as all_gather_into_tensor,
    all_gather_object as all_gather_object,
    all_reduce as all_reduce,
    all_reduce_coalesced as all_reduce_coalesced,
    all_to_all as all_to_all,
    all_to_all_single as all_to_all_single,
    barrier as barrier,
    batch_isend_irecv as batch_isend_irecv,
    broadcast as broadcast,
    broadcast_object_list as broadcast_object_list,
    gather as gather,
    gather_object as gather_object,
    irecv as irecv,
    isend as isend,
    monitored_barrier as monitored_barrier,
    recv as recv,
    reduce as reduce,
    reduce_op as reduce_op,
    reduce_scatter as reduce_scatter,
    reduce_scatter_tensor as reduce_scatter_tensor,
    scatter as scatter,
    scatter_object_list as scatter_object_list,
    send as send,
)
from holdfast.distributed.process_group import (  # noqa: F401
    Backend as Backend,
    GroupMember as GroupMember,
    ProcessGroup as ProcessGroup,
    dist_backend as dist_backend,
    destroy_process_group as destroy_process_group,
    get_backend as get_backend,
    get_default_backend_for_device as get_default_backend_for_device,
    get_global_rank as get_global_rank,
    get_group_rank as get_group_rank,
    get_process_group_ranks as get_process_group_ranks,
    get_rank as get_rank,
    get_world_size as get_world_size,
    group as group,
    init_process_group as init_process_group,
    is_available as is_available,
    is_gloo_available as is_gloo_available,
    is_initialized as is_initialized,
    is_mpi_available as is_mpi_available,
    is_nccl_available as is_nccl_available,
    is_torchelastic_launched as is_torchelastic_launched,
    is_ucc_available as is_ucc_available,
    new_group as new_group,
)
from holdfast.missing import module_getattr

_all_gather_base = all_gather_into_tensor
_reduce_scatter_base = reduce_scatter_tensor

__getattr__ = module_getattr(
    "torch.distributed", submodules=("collectives", "process_group")
)
