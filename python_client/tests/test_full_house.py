# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Where no session is to be had: what is asked without one, and workers' sessions."""

import pytest
from test_session_endings import holdfast as command

import holdfast
from holdfast.daemon import Daemon
from holdfast.utils.data import DataLoader, Dataset


@pytest.fixture
def full(transport):
    """The address of a daemon whose only session is taken."""
    with Daemon("--max_sessions=1") as daemon:
        address = daemon.address(transport)
        holdfast.connect(address, session="left", default=False).close(keep=True)
        yield address


def test_review_d9_a_full_daemon_tells_and_ends(full):
    with pytest.raises(holdfast.errors.HoldfastError, match="holdfast end NAME"):
        holdfast.connect(full, default=False)
    status = command("status", full)
    assert "left" in status.stdout and status.returncode == 0
    assert command("end", "left", full).returncode == 0
    holdfast.connect(full, default=False).close()


class Tensors(Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return holdfast.full((3,), float(index)) * 2


def test_review_d9_workers_are_no_sessions_of_their_own(transport):
    with Daemon() as daemon:
        only_one = ("limits", daemon.shm_address, "--default", "--max-sessions=1")
        assert command(*only_one).returncode == 0
        before = holdfast.current_session()
        session = holdfast.connect(daemon.address(transport))
        try:
            loader = DataLoader(Tensors(), num_workers=3, persistent_workers=True)
            total = sum(batch.sum().item() for batch in loader)
            assert total == 3 * 2 * 28
            with pytest.raises(holdfast.errors.HoldfastError, match="1 sessions"):
                holdfast.connect(daemon.address(transport), default=False)
            assert "holdfast-python" in command("status", daemon.shm_address).stdout
        finally:
            session.close()
            holdfast.set_default_session(before)
        # They end with it, whatever the workers do.
        rows = command("status", daemon.shm_address).stdout.splitlines()[2:]
        assert [row for row in rows if "holdfast-python" in row] == []
