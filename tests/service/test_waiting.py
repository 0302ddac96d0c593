# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Who waits or is idle leaves the processor alone: client and daemon.

Processor time is counted, not timed: a busy machine does not raise it.
"""

import time

import pytest

import holdfast
from holdfast.daemon import Daemon

MOST = 0.05  # of a core
# Without the network's thread and the interpreter's own, a wait is a handful of
# system calls.
MOST_CLIENT = 0.01

LAG_S = 2.0


def process_seconds(pid):
    """Processor time that all threads of a process have had."""
    cpu_clock_of_process = 2
    return time.clock_gettime((~pid << 3) | cpu_clock_of_process)


@pytest.fixture(scope="module")
def slow_device():
    """A daemon whose device begins what it is told two seconds later."""
    env = {"HOLDFAST_FAKE_LAG_US": str(int(LAG_S * 1e6))}
    with Daemon("--device=fake", env=env) as running:
        yield running


class Used:
    """Processor time of client and daemon over a block, as parts of a core."""

    def __init__(self, daemon):
        self.pid = daemon.process.pid

    def __enter__(self):
        self.begin = time.monotonic()
        self.client = -time.process_time()
        self.daemon = -process_seconds(self.pid)
        return self

    def __exit__(self, *failure):
        self.client += time.process_time()
        self.daemon += process_seconds(self.pid)
        self.seconds = time.monotonic() - self.begin
        self.client /= self.seconds
        self.daemon /= self.seconds


def test_who_waits_for_a_read_uses_no_processor(slow_device, transport):
    with holdfast.connect(slow_device.address(transport), default=False) as session:
        holdfast.set_default_session(session)
        try:
            x = holdfast.ones(4) + 1
            with Used(slow_device) as used:
                assert x.tolist() == [2.0] * 4
        finally:
            holdfast.set_default_session(None)
    assert used.seconds >= 0.9 * LAG_S, "nothing was waited for"
    assert used.client < MOST_CLIENT
    assert used.daemon < MOST


@pytest.mark.parametrize("device", ["cpu", "fake"])
def test_who_is_idle_uses_no_processor(slow_device, daemon, transport, device):
    served_by = slow_device if device == "fake" else daemon
    with holdfast.connect(served_by.address(transport), default=False):
        time.sleep(0.2)  # what connecting leaves to be done
        with Used(served_by) as used:
            time.sleep(1)
    assert used.client < MOST
    assert used.daemon < MOST
