# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Runs ops in a worker process against a daemon of its own, and starts both again
after an op that ends or holds either."""

import json
import os
import select
import socket
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))


def free_port():
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Runner:
    """transport: "shm" or "grpc"; timeout: seconds for an op, all its samples."""

    def __init__(self, transport="shm", timeout=60):
        self.transport = transport
        self.timeout = timeout
        self._directory = tempfile.TemporaryDirectory()
        self._count = 0
        self._daemon = self._worker = None

    def __call__(self, kind, op, limit):
        """{"samples": n, "error": text or None}."""
        if self._worker is None:
            self._start()
        request = json.dumps({"kind": kind, "op": op, "limit": limit}) + "\n"
        try:
            self._worker.stdin.write(request.encode())
            self._worker.stdin.flush()
            report = self._report(self.timeout)
        except BrokenPipeError:
            report = None
        ended = self._what_ended(report)
        if ended is None:
            return report
        self.close()
        return {"samples": 0, "error": ended}

    def _what_ended(self, report):
        """What an op did to the processes, None if both are there and it is done."""
        if self._daemon.poll() is not None:
            return f"the daemon ended with {self._daemon.returncode}"
        if report is not None:
            return None
        try:
            return f"the program ended with {self._worker.wait(1)}"
        except subprocess.TimeoutExpired:
            return f"the op took over {self.timeout} s"

    def _start(self):
        self._count += 1
        path = os.path.join(self._directory.name, f"s{self._count}")
        flags, address = ["--socket=" + path], "unix:" + path
        if self.transport == "grpc":
            address = f"127.0.0.1:{free_port()}"
            flags.append("--listen=" + address)
        self._log = open(os.path.join(self._directory.name, "log"), "ab")
        self._daemon = subprocess.Popen(
            [os.environ.get("HOLDFAST_DAEMON", "holdfastd"), *flags], stderr=self._log
        )
        until = time.monotonic() + 30
        while not os.path.exists(path):
            assert self._daemon.poll() is None, self.log()
            assert time.monotonic() < until, "the daemon opens no socket"
            time.sleep(0.01)
        read, write = os.pipe()
        self._worker = subprocess.Popen(
            [sys.executable, os.path.join(HERE, "op_worker.py"), str(write), address],
            stdin=subprocess.PIPE,
            stderr=self._log,
            stdout=self._log,
            pass_fds=(write,),
        )
        os.close(write)
        self._reports = os.fdopen(read, "rb", 0)
        assert self._report(120) == {"ready": True}, self.log()

    def log(self):
        with open(os.path.join(self._directory.name, "log")) as log:
            return log.read()[-2000:]

    def _report(self, timeout):
        """The worker's next line; None if it ends, or after `timeout`."""
        line, until = b"", time.monotonic() + timeout
        while not line.endswith(b"\n"):
            left = until - time.monotonic()
            if left <= 0 or not select.select([self._reports], [], [], left)[0]:
                return None
            more = self._reports.readline()
            if not more:
                return None
            line += more
        return json.loads(line)

    def close(self):
        for process in (self._worker, self._daemon):
            if process is not None:
                process.kill()
                process.wait()
        if self._worker is not None:
            self._reports.close()
            self._log.close()
        self._worker = self._daemon = None
