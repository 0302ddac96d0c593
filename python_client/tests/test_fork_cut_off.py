# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Forks of a program whose daemon does not answer."""

import sys
import time
from pathlib import Path

import pytest
from test_fork import in_child

import holdfast

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "faults"))
from proxy import Proxy  # noqa: E402


@pytest.mark.parametrize("closed", [False, True], ids=["waiting", "closed"])
def test_a_fork_while_a_connection_is_being_made(daemon, closed):
    """gRPC does not let go of a connection that nobody answers."""
    proxy = Proxy(daemon.address("grpc"))
    sessions = [holdfast.connect(proxy.address, default=False)]
    proxy.silent = True
    proxy.cut()
    time.sleep(0.3)  # it tries again by now, and waits for an answer
    if closed:
        sessions.clear()

    def work():
        with holdfast.connect(daemon.address("grpc")) as own:
            return own.transport, holdfast.ones(2).sum().item()

    assert in_child(work) == "('grpc', 2.0)"
    proxy.close()
