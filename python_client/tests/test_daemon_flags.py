# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Flags of the daemon: what is refused, and what a signal reads again."""

import os
import re
import signal
import subprocess

import pytest
from daemon_users import wait_until
from test_trust import refusal

import holdfast
from holdfast.commands import token
from holdfast.daemon import Daemon, find_daemon
from holdfast.errors import OutOfMemoryError


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (["--threads=-1"], "--threads must be 0 .* to 4096. Got -1"),
        (["--threads=99999"], "Got 99999"),
        (["--max_sessions=0"], "--max_sessions must be at least 1. Got 0"),
        (["--grace_max_seconds=-1"], "at least 0. Got -1"),
        (["--grace_max_seconds=nan"], "at least 0. Got nan"),
        (["--listen=", "--tls_certificate=/c"], "needs --listen or --http"),
        (["--listen=", "--tls_key=/k"], "--tls_key needs --listen"),
        (["--memory_limit=8XB"], "such as .*8GiB.* Got .*8XB"),
    ],
)
def test_what_cannot_be_meant_is_refused(flags, text):
    said = refusal(*flags)
    assert re.search(text, said, re.DOTALL), said


def check(*flags):
    """(exit status, mistakes) of holdfastd --check_config."""
    done = subprocess.run(
        [find_daemon(), "--check_config", *flags], capture_output=True, text=True
    )
    assert (done.returncode == 0) == ("can be used" in done.stdout)
    return done.returncode, done.stderr.splitlines()


def test_a_configuration_is_checked_before_it_is_used(tmp_path):
    config, tokens = tmp_path / "config", tmp_path / "tokens"
    config.write_text('default_limits { memory: "16GiB" }\n')
    token.make(str(tokens), "alice")
    good = [f"--config={config}", f"--token_file={tokens}", "--listen=127.0.0.1:0"]
    # Also beside a daemon that runs with it: nothing is opened.
    with Daemon(*good) as daemon:
        listen = f"--listen={daemon.grpc_address}"
        socket = "--socket=" + daemon.shm_address.removeprefix("unix:")
        assert check(*good, listen, socket) == (0, [])
    # All mistakes at once, with their places.
    config.write_text('default_limits {\n  memory: "16GB!"\n}\n')
    tokens.chmod(0o644)
    tls = ("--tls_certificate=/none", "--tls_key=/none")
    status, said = check(*good, *tls, "--http=here", "--socket_mode=9")
    assert status == 1 and len(said) == 5, said
    for word in ("memory", str(tokens), "--http", "/none", "--socket_mode"):
        assert any(word in line for line in said), (word, said)
    # Who may come from elsewhere is part of it.
    status, said = check("--listen=0.0.0.0:50151", "--allow_remote")
    assert status == 1 and "--allow_anonymous" in said[0]
    assert check("--listen=0.0.0.0:1", "--allow_remote", "--allow_anonymous")[0] == 0


def test_a_memory_limit_takes_units():
    with Daemon("--memory_limit=32MiB") as daemon:
        with holdfast.connect(daemon.shm_address):
            small = holdfast.ones(4 << 20)
            assert small.sum().item() == 4 << 20
            with pytest.raises(OutOfMemoryError, match="32.0 MiB"):
                holdfast.ones(16 << 20).sum().item()


def test_the_log_file_can_be_rotated(tmp_path):
    log, moved = tmp_path / "log", tmp_path / "log.1"
    with Daemon(f"--log_file={log}", "--log_level=info") as daemon:
        log.rename(moved)
        holdfast.connect(daemon.shm_address, default=False).close()
        wait_until(lambda: " opened" in moved.read_text())
        os.kill(daemon.pid, signal.SIGHUP)
        wait_until(log.exists)
        before = moved.read_text()
        holdfast.connect(daemon.shm_address, default=False).close()
        wait_until(lambda: " ended" in log.read_text())
        assert moved.read_text() == before, "the former file is left alone"
