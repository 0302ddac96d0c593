# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The process group: of this process alone."""

import os
from datetime import timedelta

from holdfast.errors import UnsupportedError

default_pg_timeout = timedelta(minutes=30)


class Backend(str):
    """The name of a backend, in lower case."""

    UNDEFINED = "undefined"
    GLOO = "gloo"
    NCCL = "nccl"
    UCC = "ucc"
    MPI = "mpi"
    TCP = "tcp"

    def __new__(cls, name):
        if not isinstance(name, str):
            raise ValueError(f"Backend name must be a string, but got: {name}")
        return super().__new__(cls, name.lower())


# Its name of old.
dist_backend = Backend


class ProcessGroup:
    """A group of one process."""

    def __init__(self, backend="gloo"):
        self._backend = Backend(backend or "gloo")

    def rank(self):
        """0."""
        return 0

    def size(self):
        """1."""
        return 1

    def name(self):
        """The backend that was asked for."""
        return str(self._backend)


class GroupMember:
    """The default group, and the mark of those who are in none."""

    WORLD = None
    NON_GROUP_MEMBER = object()


class group:
    """`group.WORLD` is the default group."""

    WORLD = None


def is_available():
    """True: for groups of one process."""
    return True


def is_initialized():
    """Whether init_process_group() was called."""
    return GroupMember.WORLD is not None


def is_nccl_available():
    """False: a group of one exchanges nothing."""
    return False


is_gloo_available = is_mpi_available = is_ucc_available = is_nccl_available


def is_torchelastic_launched():
    """Whether torchrun started this process."""
    return "TORCHELASTIC_RUN_ID" in os.environ


def _world(group=None):
    if GroupMember.WORLD is None:
        raise RuntimeError(
            "Default process group has not been initialized, please make sure to call "
            "init_process_group."
        )
    return GroupMember.WORLD if group is None else group


def _set_world(world):
    group.WORLD = GroupMember.WORLD = world


def init_process_group(
    backend=None,
    init_method=None,
    timeout=default_pg_timeout,
    world_size=-1,
    rank=-1,
    store=None,
    group_name="",
    pg_options=None,
    device_id=None,
):
    """Makes the group of this process.

    The size comes from `world_size`, or, as PyTorch's "env://" has it, from
    WORLD_SIZE; UnsupportedError if it is not 1. Nothing is connected to.
    """
    if GroupMember.WORLD is not None:
        raise RuntimeError("trying to initialize the default process group twice!")
    if world_size == -1:
        world_size = int(os.environ.get("WORLD_SIZE", 1))
    if rank == -1:
        rank = int(os.environ.get("RANK", 0))
    if world_size != 1:
        raise UnsupportedError(
            "holdfast's torch.distributed knows groups of one process: one daemon "
            f"owns one machine's device. Got world_size={world_size}."
        )
    if rank != 0:
        raise ValueError(f"rank must be below world_size=1. Got rank={rank}.")
    _set_world(ProcessGroup(backend))


def destroy_process_group(group=None):
    """Forgets the group."""
    _world()
    if group in (None, GroupMember.WORLD):
        _set_world(None)


def new_group(ranks=None, timeout=default_pg_timeout, backend=None, pg_options=None):
    """A further group, of this process."""
    _world()
    ranks = [0] if ranks is None else sorted(ranks)
    if ranks == [0]:
        return ProcessGroup(backend)
    if ranks == []:
        return GroupMember.NON_GROUP_MEMBER
    raise RuntimeError(
        f"the new group's ranks should be within the world_size=1. Got {ranks}."
    )


def get_rank(group=None):
    """0; -1 for those who are not in the group."""
    return -1 if _world(group) is GroupMember.NON_GROUP_MEMBER else 0


def get_world_size(group=None):
    """1; -1 for those who are not in the group."""
    return -1 if _world(group) is GroupMember.NON_GROUP_MEMBER else 1


def get_backend(group=None):
    """The name of the backend that was asked for."""
    return _world(group).name()


def get_default_backend_for_device(device):
    """The backend that programs name for a device; none is used."""
    return "nccl" if str(device).startswith("cuda") else "gloo"


def get_process_group_ranks(group):
    """[0]."""
    _world(group)
    return [0]


def get_global_rank(group, group_rank):
    """The rank in the world of a rank of the group."""
    _check(group_rank)
    return 0


def get_group_rank(group, global_rank):
    """The rank in the group of a rank of the world."""
    _check(global_rank)
    return 0


def _check(rank):
    if rank != 0:
        raise RuntimeError(f"a group of one has rank 0 only. Got {rank}.")
