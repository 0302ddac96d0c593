# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""The system refuses memory to a kernel: its op fails, and nothing else."""

import resource

import pytest

import holdfast

MIB = 2**20


def address_space(daemon):
    with open(f"/proc/{daemon.process.pid}/statm") as f:
        return int(f.read().split()[0]) * resource.getpagesize()


def test_a_kernel_without_memory_fails_its_op(start_daemon, transport):
    daemon = start_daemon()
    with holdfast.connect(daemon.address(transport)):
        x = holdfast.arange(4.0).reshape(1, 1, 4)
        resize = holdfast.nn.functional.interpolate
        small = resize(x, size=8, mode="linear").sum().item()
        # Room for the result, and not for the weights of its elements.
        kept = holdfast.empty(1, 1, 2**24)
        room = address_space(daemon) + 160 * MIB
        before = resource.prlimit(daemon.process.pid, resource.RLIMIT_AS)
        resource.prlimit(daemon.process.pid, resource.RLIMIT_AS, (room, before[1]))
        with pytest.raises(holdfast.errors.OutOfMemoryError, match="memory"):
            resize(x, size=2**24, mode="linear").sum().item()
        assert resize(x, size=8, mode="linear").sum().item() == small
        resource.prlimit(daemon.process.pid, resource.RLIMIT_AS, before)
        assert resize(x, size=2**20, mode="linear").numel() == 2**20
        assert kept.numel() == 2**24
    daemon.check_alive()
    daemon.stop()
