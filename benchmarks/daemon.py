# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""A daemon for the length of a benchmark."""

import contextlib
import json
import os
import subprocess
import tempfile

import peer


@contextlib.contextmanager
def running(*flags):
    """Yields {"socket": PATH, "listen": "HOST:PORT", "pid": N}."""
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [
                os.environ["HOLDFAST_DAEMON"],
                f"--socket={folder}/daemon.sock",
                "--listen=127.0.0.1:0",
                "--print_address",
                "--log_level=warning",
                f"--threads={peer.threads()}",
                *flags,
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            line = process.stdout.readline()
            if not line:
                raise RuntimeError("holdfastd did not start; its message is above")
            yield dict(json.loads(line), pid=process.pid)
        finally:
            process.terminate()
            process.wait(20)
