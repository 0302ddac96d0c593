# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""A user of a machine of their own: folders, programs, the holdfast command."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]


class Person:
    """A user with a home of their own, on a machine without a service."""

    def __init__(self):
        # Short: a socket's path has 107 characters at most.
        self.home = Path(tempfile.mkdtemp(prefix="hf-", dir="/tmp"))
        (self.home / "run").mkdir(mode=0o700)
        keep = {k: v for k, v in os.environ.items() if k not in _UNSET}
        self.env = {
            **keep,
            "XDG_RUNTIME_DIR": str(self.home / "run"),
            "XDG_STATE_HOME": str(self.home / "state"),
            "XDG_CONFIG_HOME": str(self.home / "config"),
            "HOLDFAST_SERVICE_SOCKET": str(self.home / "no-service.sock"),
            "HOLDFAST_CLIENT_CONF": str(self.home / "client.conf"),
            "PYTHONPATH": os.pathsep.join([str(PACKAGE), *sys.path[1:]]),
        }
        self.state = self.home / "state/holdfast"
        self.config = self.home / "config/holdfast/config.toml"
        self.socket = f"{self.home}/run/holdfast/holdfastd.sock"

    def holdfast(self, *arguments, input="", **env):
        """The command; a CompletedProcess."""
        return self._run([sys.executable, "-m", "holdfast", *arguments], input, env)

    def python(self, code, **env):
        """A program; a CompletedProcess."""
        return self._run([sys.executable, "-c", textwrap.dedent(code)], "", env)

    def _run(self, command, input, env):
        return subprocess.run(
            [str(word) for word in command],
            input=input,
            capture_output=True,
            text=True,
            timeout=120,
            env={**self.env, **env},
            cwd=self.home,
        )

    def start_python(self, code, **env):
        """A program that runs on; a Popen with pipes."""
        return subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(code)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**self.env, **env},
            cwd=self.home,
        )

    def daemons(self):
        """{process id: [flags]} of every holdfastd with a socket of this user's."""
        return {
            pid: flags
            for pid, (command, *flags) in processes().items()
            if command.endswith("holdfastd") and any(str(self.home) in f for f in flags)
        }

    def leave(self):
        """Nothing of this user's goes on."""
        for pid in self.daemons():
            os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not self.daemons())
        shutil.rmtree(self.home)


_UNSET = [name for name in os.environ if name.startswith("HOLDFAST_")]
_UNSET = {*_UNSET} - {"HOLDFAST_DAEMON", "HOLDFAST_PLUGIN_PATH"}


def processes():
    """{process id: [command, arguments]} of all that run."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = entry.read_bytes()
        except OSError:
            continue
        if line:
            found[int(entry.parent.name)] = line.decode().rstrip("\0").split("\0")
    return found


def wait_until(condition, seconds=30):
    deadline = time.monotonic() + seconds
    while not (result := condition()):
        assert time.monotonic() < deadline, "it does not come about"
        time.sleep(0.02)
    return result
