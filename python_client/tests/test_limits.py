# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""What users may take: from the configuration, by an admin, and how it is kept."""

import json
import os
import signal
import time

import pytest
from daemon_users import command, wait_until
from test_trust import refusal

import holdfast
from holdfast.daemon import Daemon
from holdfast.errors import OutOfMemoryError, SessionError

MIB = 1 << 20


@pytest.fixture
def config(tmp_path):
    return tmp_path / "holdfast.textproto"


@pytest.fixture
def log(tmp_path):
    return tmp_path / "log"


def start(config, log):
    return Daemon(f"--config={config}", f"--log_file={log}", "--log_level=info")


def fill(mebibytes):
    return holdfast.ones(mebibytes * MIB // 4)


def read(daemon, *arguments):
    result = command("limits", daemon.shm_address, "--json", *arguments)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


@pytest.mark.parametrize("transport", ["shm", "grpc"])
def test_memory_is_limited_over_all_sessions_of_a_user(config, log, transport):
    config.write_text('default_limits { memory: "64MiB" }')
    with start(config, log) as daemon:
        with holdfast.connect(daemon.address(transport)):
            kept = fill(40)
            holdfast.synchronize()
            with holdfast.connect(daemon.address(transport)):
                with pytest.raises(OutOfMemoryError, match="over all sessions"):
                    fill(40).sum().item()
                small = fill(8)
                assert small.sum().item() == 2 * MIB
                del small
                command("limits", daemon.shm_address, "--default", "--memory=1GiB")
                assert fill(40).sum().item() == 10 * MIB
            assert kept[:3].sum().item() == 3
            del kept


def test_shared_memory_stays_on_its_makers_account(config, log):
    """Memory that outlives its session is still somebody's."""
    config.write_text('default_limits { memory: "64MiB" }')
    with start(config, log) as daemon:
        from holdfast.multiprocessing import reductions

        maker = holdfast.connect(daemon.shm_address)
        tensor = fill(40)
        function, arguments = reductions.reduce_tensor(tensor)
        reader = holdfast.connect(daemon.shm_address)
        opened = function(*arguments)
        assert opened.sum().item() == 10 * MIB
        del tensor, arguments
        maker.close()
        (user,) = [u for u in read(daemon)["users"] if int(u["sessions"])]
        assert int(user["bytes_reserved"]) >= 40 * MIB
        with pytest.raises(OutOfMemoryError):
            fill(40).sum().item()
        del opened
        assert fill(40).sum().item() == 10 * MIB
        reader.close()


def test_sessions_are_counted(config, log):
    config.write_text("default_limits { max_sessions: 2 }")
    with start(config, log) as daemon:
        first = holdfast.connect(daemon.shm_address, default=False)
        with holdfast.connect(daemon.shm_address, default=False):
            with pytest.raises(SessionError, match="2 sessions at a time and has 2"):
                holdfast.connect(daemon.shm_address, default=False)
        holdfast.connect(daemon.shm_address, default=False).close()
        first.close()


@pytest.mark.parametrize("transport", ["shm", "grpc"])
def test_an_idle_session_ends(config, log, transport):
    config.write_text("default_limits { idle_seconds: 2 }")
    with start(config, log) as daemon:
        address = daemon.address(transport)
        while not an_idle_session_ends_alone(address, log):
            pass  # this program was held up, and both of its sessions were idle


def an_idle_session_ends_alone(address, log):
    idle = holdfast.connect(address, default=False)
    with holdfast.connect(address, default=False) as busy:
        used = time.monotonic()
        while f"session {idle.id} ended" not in log.read_text():
            begin = time.monotonic()
            try:
                busy.synchronize()
            except SessionError:
                assert time.monotonic() - used > 1.9, "it was not idle"
                return False
            used = begin
            time.sleep(0.05)
    with pytest.raises(SessionError, match="may be idle for 2 s"):
        idle.synchronize()
    return True


def test_the_configuration_is_read_again(config, log):
    config.write_text("default_limits { max_sessions: 1 }")
    with start(config, log) as daemon:
        with holdfast.connect(daemon.shm_address, default=False):
            # A broken file changes nothing, and the log has the line.
            config.write_text("default_limits {\n max_session: 5 }")
            os.kill(daemon.pid, signal.SIGHUP)
            wait_until(lambda: f"{config}:2:" in log.read_text())
            assert "former configuration stays" in log.read_text()
            with pytest.raises(SessionError, match="1 sessions"):
                holdfast.connect(daemon.shm_address, default=False)
            config.write_text("default_limits { max_sessions: 5 weight: 3 }")
            os.kill(daemon.pid, signal.SIGHUP)
            wait_until(lambda: read(daemon)["default_limits"]["max_sessions"] == "5")
            holdfast.connect(daemon.shm_address, default=False).close()
            listed = command("sessions", daemon.shm_address, "--json").stdout
            assert [s["weight"] for s in json.loads(listed)] == [3]


def test_a_device_memory_that_is_no_longer_configured(config, log):
    config.write_text("")
    with start(config, log) as daemon:
        found = read(daemon)["device_bytes"]
        for text, bytes in (('device_memory: "1GiB"', str(1 << 30)), ("", found)):
            config.write_text(text)
            os.kill(daemon.pid, signal.SIGHUP)
            wait_until(lambda: read(daemon)["device_bytes"] == bytes)  # noqa: B023


def test_a_broken_configuration_does_not_start(config, tmp_path):
    config.write_text('user { name: "x" }\nusr { }\n')
    text = refusal(f"--socket={tmp_path}/d.sock", f"--config={config}")
    assert f"{config}:2:" in text and "usr" in text
    text = refusal(f"--socket={tmp_path}/d.sock", f"--config={tmp_path}/none")
    assert "No such file" in text


def test_limits_are_set_live(config, log):
    config.write_text('user { name: "alice" limits { weight: 2 } }')
    with start(config, log) as daemon:
        where = daemon.shm_address
        result = command(
            "limits", where, "--user=alice", "--memory=8GiB", "--max-sessions=3"
        )
        assert result.returncode == 0, result.stderr
        assert "8.0 GiB" in result.stdout and "alice" in result.stdout
        assert "alice has no session now" in result.stderr
        (alice,) = read(daemon, "--user=alice")["users"]
        assert alice["limits"]["weight"] == 2
        assert alice["limits"]["memory_bytes"] == str(8 << 30)
        (alice,) = read(daemon, "--user=alice", "--reset")["users"]
        assert alice["limits"]["memory_bytes"] == "0"
        assert alice["limits"]["weight"] == 2
        # Nobody is listed for limits that they no longer have.
        read(daemon, "--user=alcie", "--weight=3")
        read(daemon, "--user=alcie", "--reset")
        assert "alcie" not in {user["name"] for user in read(daemon)["users"]}
        lines = [line for line in log.read_text().splitlines() if "limits of" in line]
        assert lines[0].endswith("memory_bytes: 8589934592 max_sessions: 3")
        assert "limits of alice are as configured again" in lines[1]
        bad = command("limits", where, "--user=alice", "--weight=1000")
        assert bad.returncode == 1 and "a weight must be" in bad.stderr
        assert command("limits", where, "--memory=1GiB").returncode == 1
        assert command("limits", where, "--default", "--memory=1x").returncode == 2
        assert "--memory" in command("limits", "--help").stdout


def test_a_share_is_lent_and_refused_first(config, log):
    config.write_text(
        'device_memory: "100MiB"\ndefault_limits { memory_share: "40MiB" }'
    )
    with start(config, log) as daemon:
        with holdfast.connect(daemon.shm_address):
            kept = fill(60)  # above the share: there is room
            assert kept.sum().item() == 15 * MIB
            with pytest.raises(OutOfMemoryError, match="above the share"):
                fill(30).sum().item()
            del kept
            assert fill(30).sum().item() == 30 * MIB // 4
