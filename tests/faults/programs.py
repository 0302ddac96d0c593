# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Real daemons and client programs, each in a process of its own."""

import json
import os
import subprocess
import sys
import time


class Daemon:
    """A real holdfastd in its own folder."""

    def __init__(self, folder, *flags, wrapper=()):
        self.process = subprocess.Popen(
            [
                *wrapper,
                os.environ["HOLDFAST_DAEMON"],
                f"--socket={folder}/d.sock",
                "--listen=127.0.0.1:0",
                "--print_address",
                *flags,
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        line = self.process.stdout.readline()
        assert line, "holdfastd did not start"
        addresses = json.loads(line)
        self.socket = addresses["socket"]
        self.listen = addresses["listen"]
        self.http = addresses["http"]

    def address(self, transport):
        return "unix:" + self.socket if transport == "shm" else self.listen

    def stats(self):
        """`holdfast status --json` of this daemon."""
        out = subprocess.run(
            [sys.executable, "-m", "holdfast", "status", "--json"]
            + ["--address", "unix:" + self.socket],
            stdout=subprocess.PIPE,
            text=True,
            timeout=60,
            check=True,
        )
        return json.loads(out.stdout)

    def check_alive(self):
        """A fresh client on each transport gets the right answer."""
        for transport in ("shm", "grpc"):
            out = run_client(
                "import holdfast; print(holdfast.arange(5).sum().item())",
                self.address(transport),
            )
            assert out.strip() == "10", out
        assert self.process.poll() is None

    def stop(self):
        """SIGTERM; fails the test unless the daemon ends cleanly."""
        if self.process.poll() is None:
            self.process.terminate()
        assert self.process.wait(60) == 0


def reserved(daemon):
    """Bytes on the account of the user that has one, with `holdfast limits`."""
    out = subprocess.run(
        [sys.executable, "-m", "holdfast", "limits", "unix:" + daemon.socket, "--json"],
        check=True,
        capture_output=True,
        timeout=60,
    ).stdout
    (bytes_,) = {int(u["bytes_reserved"]) for u in json.loads(out)["users"]} or {0}
    return bytes_


def start_client(code, address, **popen):
    """A Python program with HOLDFAST_ADDRESS set."""
    return subprocess.Popen(
        [sys.executable, "-c", code],
        env=dict(os.environ, HOLDFAST_ADDRESS=address),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        **popen,
    )


def run_client(code, address, timeout=120):
    """Runs it to its end; returns what it printed."""
    client = start_client(code, address)
    out, _ = client.communicate(timeout=timeout)
    assert client.returncode == 0, f"client exited with {client.returncode}"
    return out


def wait_until(condition, what):
    """Waits for long: how quick a busy machine is, is not what a test is about."""
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, f"it did not come: {what}"
        time.sleep(0.01)
