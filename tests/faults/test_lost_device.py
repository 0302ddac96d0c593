# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""A device that fails for good, as a GPU after an illegal memory access: every
session ends with one error that names the op, and the daemon starts again in its
own process."""

import contextlib
import time

import numpy as np
import pytest

import holdfast
from holdfast.daemon import Daemon
from holdfast.errors import DataLossError, HoldfastError


@pytest.fixture
def fragile(tmp_path, monkeypatch):
    """A daemon on the fake device, which does not survive cosh."""
    monkeypatch.setenv("HOLDFAST_FAKE_BREAK_ON", "cosh")
    with Daemon("--device=fake", f"--state_dir={tmp_path}/state") as running:
        yield running


def connect_again(address):
    """The daemon is away for a moment."""
    deadline = time.monotonic() + 60
    while True:
        try:
            return holdfast.connect(address, default=False, timeout=5)
        except HoldfastError:
            assert time.monotonic() < deadline
            time.sleep(0.05)


def fails_with_data_loss(act):
    """Waits for the end of a session, which is not that of the op's own."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        try:
            act()
        except HoldfastError as error:
            return error
        time.sleep(0.05)
    raise AssertionError("the session goes on")


@pytest.mark.parametrize("transport", ["shm", "grpc"])
def test_the_daemon_serves_again(fragile, transport):
    address = fragile.address(transport)
    pid = fragile.pid
    mine = holdfast.connect(address, default=False)
    other = holdfast.connect(address, default=False)
    holdfast.set_default_session(other)
    theirs = holdfast.ones(3)
    assert theirs.sum().item() == 3
    holdfast.set_default_session(mine)
    kept = holdfast.arange(5.0)
    holdfast.publish("durable", kept, durable=True)
    with pytest.raises(DataLossError, match="one of cosh: the device is lost"):
        holdfast.cosh(kept).numpy()
    error = fails_with_data_loss(lambda: (theirs + 1).numpy())
    assert isinstance(error, DataLossError) and "cosh" in str(error)

    with connect_again(address) as session:
        holdfast.set_default_session(session)
        assert (holdfast.ones(2) + 1).tolist() == [2.0, 2.0]
        back = holdfast.lookup("durable")
        np.testing.assert_array_equal(back.numpy(), np.arange(5.0))
    assert fragile.process.poll() is None and fragile.pid == pid
    for session in (mine, other):
        session.close()


def test_it_survives_the_next_failure_too(fragile):
    for _ in range(3):
        session = connect_again(fragile.shm_address)
        holdfast.set_default_session(session)
        with pytest.raises(DataLossError, match="cosh"):
            holdfast.ones(3).cosh().numpy()
        fails_with_data_loss(lambda: holdfast.ones(3).numpy())
        with contextlib.suppress(HoldfastError):
            session.close()  # of a session that has ended
    holdfast.set_default_session(None)
    connect_again(fragile.shm_address).close()
    assert fragile.stop() == 0


@pytest.mark.parametrize("pause", [0, 0.01, 0.05, 0.1, 0.2])
def test_it_ends_in_order_at_any_moment_of_the_restart(fragile, pause):
    session = connect_again(fragile.shm_address)
    holdfast.set_default_session(session)
    with pytest.raises(DataLossError, match="cosh"):
        holdfast.ones(3).cosh().numpy()
    time.sleep(pause)  # whichever moment it is, the end is the same
    assert fragile.stop() == 0
    holdfast.set_default_session(None)
    with contextlib.suppress(HoldfastError):
        session.close()
