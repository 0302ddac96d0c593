# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Device "holdfast" over both transports: a daemon of the tests' own."""

import subprocess
import os
import time

import holdfast_torch
import op_cases
import op_report
import pytest


@pytest.fixture(scope="module", params=["shm", "grpc"])
def device(request, tmp_path_factory):
    socket = str(tmp_path_factory.mktemp("d") / "s")
    port = str(51000 + os.getpid() % 10000)
    daemon = subprocess.Popen(
        [
            os.environ.get("HOLDFAST_DAEMON", "holdfastd"),
            "--socket=" + socket,
            "--listen=127.0.0.1:" + port,
        ],
        stderr=subprocess.DEVNULL,
    )
    while not os.path.exists(socket):
        assert daemon.poll() is None
        time.sleep(0.01)
    address = "unix:" + socket if request.param == "shm" else "127.0.0.1:" + port
    session = holdfast_torch.connect(address)
    yield "holdfast"
    session.close()
    daemon.terminate()
    daemon.wait()


@pytest.fixture(scope="session")
def op_runners():
    """op_cases' processes for OpInfo's samples, one for each transport."""
    runners = op_cases.Runners()
    yield runners
    runners.close()


def pytest_terminal_summary(terminalreporter):
    for line in op_report.lines(terminalreporter.stats):
        terminalreporter.write_line(line)
