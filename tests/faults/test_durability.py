# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""--state_dir: what survives SIGTERM, SIGKILL, cut-off writes, damage, a full disk."""

import os
import signal
import subprocess
import time

import numpy as np
import pytest
from programs import run_client, start_client, wait_until


@pytest.fixture
def torch():
    import holdfast

    yield holdfast
    holdfast.set_default_session(None)


@pytest.fixture
def state(tmp_path):
    return tmp_path / "state"


@pytest.fixture
def start(start_daemon, state):
    """A daemon over the state; `die_at` ends it at that write step."""

    def start(*flags, die_at=None):
        wrapper = []
        if die_at is not None:
            wrapper = ["env", f"HOLDFAST_TEST_DIE_AT_WRITE_STEP={die_at}"]
        return start_daemon(f"--state_dir={state}", *flags, wrapper=wrapper)

    return start


def kill(daemon):
    daemon.process.kill()
    daemon.process.wait(60)


def weights(seed):
    """A state_dict whose tensors all tell the version."""
    return {"w": np.full((300, 1000), seed, np.float32), "n": seed, "b": [seed] * 3}


def publish(torch, seed):
    value = weights(seed)
    return torch.publish(
        "model",
        {
            "w": torch.tensor(value["w"]),
            "n": value["n"],
            "b": torch.tensor(value["b"]),
        },
        durable=True,
    )


def found(torch):
    """The one seed that all of the published model shows; None: nothing is there."""
    try:
        model = torch.lookup("model")
    except LookupError:
        return None
    seed = model["n"]
    expected = weights(seed)
    np.testing.assert_array_equal(model["w"].numpy(), expected["w"])
    assert model["b"].tolist() == expected["b"]
    return seed


def test_a_durable_name_survives_sigkill(torch, start):
    daemon = start()
    with torch.connect(daemon.listen):
        first = publish(torch, 1)
        assert first.durable and first.saved and first.version == 1
        assert publish(torch, 2).version == 2
        torch.publish("passing", torch.ones(3))
    kill(daemon)
    daemon = start()
    for transport in ("shm", "grpc"):
        with torch.connect(daemon.address(transport)):
            assert found(torch) == 2
            (version,) = torch.published()
            assert (version.name, version.version, version.saved) == ("model", 2, True)
    with torch.connect(daemon.listen):
        assert publish(torch, 3).version == 3
        torch.unpublish("model")
    kill(daemon)
    daemon = start()
    with torch.connect(daemon.listen):
        assert torch.published() == []
    daemon.stop()


def test_killed_at_every_write_step(torch, start, state):
    """Whatever the step, one whole version is there, the new one once it was told."""
    daemon = start()
    with torch.connect(daemon.listen):
        publish(torch, 1)
    daemon.stop()
    seed, steps = 1, 0
    while True:
        daemon = start(die_at=steps + 1)
        told = False
        torch.connect(daemon.address("shm"))  # which notices a death at once
        try:
            assert found(torch) == seed
            publish(torch, seed + 1)
            told = True
        except ConnectionError:
            pass
        torch.set_default_session(None)
        # An end in peace waits for what is removed after the answer.
        daemon.process.terminate()
        if daemon.process.wait(60) == 0:
            assert told
            break
        steps += 1
        daemon = start()
        with torch.connect(daemon.listen):
            now = found(torch)
            assert now in (seed, seed + 1), f"step {steps}: {now} after {seed}"
            assert now == seed + 1 or not told, f"step {steps} took back a version"
            assert publish(torch, now + 1).saved  # and it goes on
        daemon.stop()
        assert len(list(state.glob("*.tensors"))) == 1
        assert not list(state.glob("*.tmp")) and not list(state.glob("*.damaged"))
        seed = now + 1
    # Creating, pieces of two tensors, header, end, two syncs, rename, removal.
    assert steps >= 9


def damage(path, how):
    data = bytearray(path.read_bytes())
    if how == "torn":
        del data[len(data) // 2 :]
    elif how == "flipped":
        data[5000] ^= 1
    else:
        data[-40] ^= 1  # in the header
    path.write_bytes(data)


@pytest.mark.parametrize("how", ["torn", "flipped", "header"])
def test_damage_is_found_and_the_version_before_served(torch, start, state, how):
    daemon = start()
    with torch.connect(daemon.listen):
        publish(torch, 1)
        (first,) = state.glob("*.tensors")
        saved = first.read_bytes()
        publish(torch, 2)
    daemon.stop()
    (second,) = state.glob("*.tensors")
    damage(second, how)
    daemon = start()  # nothing else is there
    with torch.connect(daemon.listen):
        with pytest.raises((LookupError, RuntimeError)):
            torch.lookup("model")
        assert second.with_name(second.name + ".damaged").exists()
        assert torch.ones(2).sum().item() == 2
    daemon.stop()
    # As after a cut between the rename and the removal of what was before.
    second.with_name(second.name + ".damaged").rename(second)
    first.write_bytes(saved)
    daemon = start()
    with torch.connect(daemon.listen):
        assert found(torch) == 1
        assert publish(torch, 3).version >= 2
    daemon.stop()


SESSION = """
import holdfast as torch
session = torch.connect(session={name!r})
print(session.attached, flush=True)
if not session.attached:
    torch.manual_seed(9)
    torch.keep("w", torch.arange(5.0).requires_grad_())
    torch.keep("half", torch.kept("w").detach()[2:])
    torch.rand(7)
else:
    w = torch.kept("w")
    print(w.requires_grad, w.tolist(), torch.rand(3).tolist())
    with torch.no_grad():
        torch.kept("half").mul_(2)
    print(torch.kept("w").tolist())
torch.keep("big", torch.ones(400_000))
{leave}
"""


@pytest.mark.parametrize("leave", ["torch.detach()", "input()"])
def test_sessions_survive_sigterm(torch, start, transport, leave):
    daemon = start()
    with torch.connect(daemon.listen):
        torch.manual_seed(9)
        torch.rand(7)
        drawn = torch.rand(3).tolist()
    client = start_client(
        SESSION.format(name="nine", leave=leave), daemon.address(transport)
    )
    assert client.stdout.readline().strip() == "False"
    if leave == "torch.detach()":
        assert client.wait(60) == 0
    else:
        with torch.connect(daemon.listen):
            wait_until(
                lambda: any(
                    s["name"] == "nine" and s["bytes_in_use"] > 1_600_000
                    for s in daemon.stats()["sessions"]
                ),
                "everything is kept",
            )
    daemon.stop()
    if client.poll() is None:
        client.stdin.close()
        client.wait(60)
    daemon = start()
    for there in ("shm", "grpc"):
        code = SESSION.format(name="nine", leave="torch.detach()")
        out = run_client(code, daemon.address(there)).splitlines()
        if there == "shm":
            assert out[0] == "True"
            assert out[1] == f"True [0.0, 1.0, 2.0, 3.0, 4.0] {drawn}"
            assert out[2] == "[0.0, 1.0, 4.0, 6.0, 8.0]"  # one memory, as before
        else:
            assert out[2] == "[0.0, 1.0, 8.0, 12.0, 16.0]"
    # Ended for good, it does not come back.
    torch.connect(daemon.listen, session="nine", attach=True)
    torch.disconnect()
    daemon.stop()
    daemon = start()
    with pytest.raises(LookupError, match="no session is named 'nine'"):
        torch.connect(daemon.listen, session="nine", attach=True)
    daemon.stop()


def test_two_daemons_on_one_folder(start, state, tmp_path):
    daemon = start()
    other = subprocess.run(
        [
            os.environ["HOLDFAST_DAEMON"],
            f"--socket={tmp_path}/other.sock",
            f"--state_dir={state}",
        ],
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
    )
    assert other.returncode == 1
    assert f"another holdfastd (process {daemon.process.pid}) uses" in other.stderr
    assert "--state_dir" in other.stderr
    daemon.stop()


def test_a_folder_that_cannot_be_used(tmp_path):
    (tmp_path / "file").write_text("")
    result = subprocess.run(
        [
            os.environ["HOLDFAST_DAEMON"],
            f"--socket={tmp_path}/d.sock",
            f"--state_dir={tmp_path}/file/state",
        ],
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
    )
    assert result.returncode == 1
    assert "file/state cannot be made: Not a directory" in result.stderr


def test_a_full_disk_changes_nothing(torch, start_daemon, state):
    # A file of the daemon's may have a megabyte: that is what a full disk is.
    daemon = start_daemon(
        f"--state_dir={state}", wrapper=["prlimit", "--fsize=1000000"]
    )
    with torch.connect(daemon.listen):
        torch.publish("small", torch.ones(10), durable=True)
        with pytest.raises(RuntimeError, match="cannot be written: File too large"):
            publish(torch, 1)
        assert found(torch) is None
        assert torch.publish("small", torch.ones(20), durable=True).version == 2
    assert not list(state.glob("*.tmp"))
    daemon.stop()
    daemon = start_daemon(f"--state_dir={state}")
    with torch.connect(daemon.listen):
        assert torch.lookup("small").sum().item() == 20
    daemon.stop()


def test_what_is_ready_is_served_first(torch, start, state):
    daemon = start()
    with torch.connect(daemon.listen):
        torch.publish("big", torch.ones(50_000_000), durable=True)
        torch.publish("small", torch.full((10,), 3.0), durable=True)
    kill(daemon)
    daemon = start()
    with torch.connect(daemon.address("shm")):
        begun = time.monotonic()
        assert {v.name for v in torch.published()} == {"big", "small"}
        assert torch.lookup("small").sum().item() == 30
        small = time.monotonic() - begun
        assert torch.lookup("big").sum().item() == 50_000_000
        big = time.monotonic() - begun
    print(f"small after {small:.3f} s, big after {big:.3f} s")
    assert daemon.stats()["state_bytes_loaded"] >= 200_000_040
    daemon.process.send_signal(signal.SIGTERM)
    assert daemon.process.wait(60) == 0


def test_a_session_that_somebody_waits_for_is_loaded_next(torch, start):
    from holdfast import _stats

    daemon = start()
    with torch.connect(daemon.address("shm"), session="nine"):
        torch.keep("x", torch.ones(9_000_000))  # more than any other
        for i in range(24):  # half a second's worth
            torch.publish(f"name{i}", torch.ones(8_000_000), durable=True)
        torch.detach()
    daemon.stop()
    daemon = start()
    with torch.connect(daemon.address("shm"), session="nine") as session:
        assert session.attached
        stats = _stats.parse(session._stats())
        assert stats["state_bytes_loaded"] < stats["state_bytes"]
        assert torch.kept("x").sum().item() == 9_000_000
    daemon.stop()
