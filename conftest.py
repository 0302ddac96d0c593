# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Fixtures of all Python suites: one real daemon, every test over both transports.

`torch` is the package connected to it. A test that wants a daemon to itself
starts a holdfast.daemon.Daemon. HOLDFAST_TEST_DEVICE runs the suites on another
device than the CPU: "cuda", or "fake" (server/fake_device).
"""

import os
import signal

import pytest

# Ctrl-C is tested, and a shell that starts us in the background has it ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def daemon():
    from holdfast.daemon import Daemon

    device = os.environ.get("HOLDFAST_TEST_DEVICE", "cpu")
    with Daemon(f"--device={device}") as running:
        yield running


@pytest.fixture(scope="module", params=["shm", "grpc"])
def transport(request):
    return request.param


@pytest.fixture(scope="module")
def module_session(daemon, transport):
    import holdfast

    with holdfast.connect(daemon.address(transport), default=False) as session:
        assert session.transport == transport
        yield session


@pytest.fixture
def torch(module_session):
    """The package, connected to the daemon over `transport`."""
    import holdfast

    holdfast.set_default_session(module_session)
    holdfast.manual_seed(0)
    yield holdfast
    assert holdfast.is_grad_enabled(), "the test left grad mode off"
