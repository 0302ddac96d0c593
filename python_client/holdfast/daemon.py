# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""A daemon of one's own, for tests and benchmarks.

Programs need none of this: connect() finds a daemon or starts a private one.
"""

import json
import os
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path


def find_daemon():
    """The daemon's binary: HOLDFAST_DAEMON, beside the package, on PATH."""
    named = os.environ.get("HOLDFAST_DAEMON")
    package = Path(__file__).resolve().parent
    places = ("bin", "../bin", "../holdfast_server/bin")
    for path in (named, *(package / place / "holdfastd" for place in places)):
        if path and os.access(path, os.X_OK):
            return str(path)
    found = shutil.which("holdfastd")
    if found is None:
        raise FileNotFoundError(
            "holdfastd is not on this machine. Install it (pip install "
            "holdfast_tensors_server-*.whl, the file that came with the client's, or "
            "Debian's package holdfast-server), or set HOLDFAST_DAEMON to its path."
        )
    return found


class Daemon:
    """Runs holdfastd with a socket of its own until stop().

    shm_address and grpc_address are for connect(), http_address is where --http
    serves; flags are the daemon's, env what its environment has beside this one's.
    """

    def __init__(self, *flags, binary=None, log=None, env=None):
        self._folder = tempfile.TemporaryDirectory(prefix="holdfast-")
        self.process = subprocess.Popen(
            [
                binary or find_daemon(),
                f"--socket={self._folder.name}/daemon.sock",
                "--listen=127.0.0.1:0",
                "--print_address",
                "--exit_with_parent",
                "--log_level=warning",
                *flags,
            ],
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=None if env is None else {**os.environ, **env},
        )
        line = self.process.stdout.readline()
        if not line:
            status = self.process.wait()
            self._folder.cleanup()
            raise RuntimeError(f"holdfastd did not start; it ended with {status}.")
        addresses = json.loads(line)
        self.shm_address = "unix:" + addresses["socket"]
        self.grpc_address = addresses["listen"]
        self.http_address = addresses.get("http", "")  # with --http

    @property
    def pid(self):
        return self.process.pid

    def address(self, transport):
        """The address for "shm" or "grpc"."""
        return {"shm": self.shm_address, "grpc": self.grpc_address}[transport]

    def kill(self):
        """Ends it as a crash would."""
        self.process.send_signal(signal.SIGKILL)
        self._end(timeout=10)

    def stop(self):
        """Ends it in order; returns its exit status."""
        self.process.terminate()
        return self._end(timeout=20)

    def _end(self, timeout):
        try:
            status = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            status = self.process.wait()
        self.process.stdout.close()
        self._folder.cleanup()
        return status

    def __enter__(self):
        return self

    def __exit__(self, *error):
        if self.process.returncode is None:
            self.stop()
