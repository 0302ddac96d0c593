# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Item 3 of the server's review: nobody waits for the disk but who asked it to save.

The disk of these daemons takes as long as a file is there.
"""

import pytest
from programs import start_client, wait_until

LEAVER = """
import os
import holdfast as torch
torch.connect({address!r}, session="nine", grace=0)
torch.keep("w", torch.ones(1000))
torch.synchronize()
print("kept", flush=True)
if {ends!r} == "killed":
    os.kill(os.getpid(), 9)
torch.disconnect()
print("left", flush=True)
"""

SAVER = """
import holdfast as torch
print("saves", flush=True)
torch.publish("model", torch.ones(3_000_000), durable=True)
"""


@pytest.fixture
def slow_disk(tmp_path, monkeypatch):
    hold = tmp_path / "hold"
    monkeypatch.setenv("HOLDFAST_TEST_HOLD_WRITE_STEPS", str(hold))
    return hold


@pytest.mark.parametrize("device", ["cpu", "fake"])
@pytest.mark.parametrize("ends", ["killed", "says goodbye"])
def test_who_leaves_while_the_disk_writes_stops_nobody(
    start_daemon, slow_disk, tmp_path, transport, device, ends
):
    import holdfast as torch

    state = tmp_path / "state"
    daemon = start_daemon(f"--state_dir={state}", f"--device={device}")
    address = daemon.address(transport)
    with torch.connect(address, timeout=20):
        assert torch.publish("model", torch.ones(3), durable=True).version == 1
        slow_disk.touch()
        saver = start_client(SAVER, address)
        assert saver.stdout.readline().strip() == "saves"
        wait_until(lambda: daemon.stats()["published_bytes"] > 1e6, "it is written")
        leaver = start_client(LEAVER.format(address=address, ends=ends), address)
        assert leaver.stdout.readline().strip() == "kept"
        if ends == "says goodbye":
            assert leaver.stdout.readline().strip() == "left"
        leaver.wait(60)
        wait_until(
            lambda: all(s["name"] != "nine" for s in daemon.stats()["sessions"]),
            "the leaver is gone",
        )
        # The worker runs ops, and the door lets others in.
        assert torch.ones(3).sum().item() == 3
        with torch.connect(daemon.address("shm"), default=False, timeout=20):
            pass
        assert saver.poll() is None
        slow_disk.unlink()
        assert saver.wait(60) == 0
        assert torch.lookup("model").sum().item() == 3_000_000
    daemon.stop()
