# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""A daemon that is not there, or no longer: a clear error in bounded time."""

import signal
import subprocess
import sys

import pytest
from programs import start_client

WAIT_THEN_USE = """
import time, holdfast
holdfast.connect({address!r}, reconnect_timeout=5)
a = holdfast.ones(3)
a.sum().item()
print("ready", flush=True)
input()
start = time.monotonic()
for attempt in range(3):  # every further use says so as well
    try:
        (a + 1).sum().item()
    except holdfast.errors.DaemonUnavailableError as e:
        assert "holdfastd" in str(e) or "daemon" in str(e), e
    else:
        raise SystemExit("no error")
del a  # harmless
print(time.monotonic() - start)
"""


def test_killed_daemon(start_daemon, transport):
    daemon = start_daemon()
    address = daemon.address(transport)
    client = start_client(WAIT_THEN_USE.format(address=address), address)
    assert client.stdout.readline().strip() == "ready"
    daemon.process.kill()
    daemon.process.wait(60)
    out, _ = client.communicate("\n", timeout=60)
    assert client.returncode == 0, out
    assert float(out) < 15


def test_client_that_waits_is_woken(start_daemon, transport):
    daemon = start_daemon("--threads=1")
    address = daemon.address(transport)
    code = f"""
import holdfast
holdfast.connect({address!r}, reconnect_timeout=5)
a = holdfast.rand(1500, 1500).double()  # float64: slow on purpose
print("ready", flush=True)
try:
    for _ in range(200):
        a = a @ a
    a.sum().item()
except holdfast.errors.DaemonUnavailableError:
    print("error")
"""
    client = start_client(code, address)
    assert client.stdout.readline().strip() == "ready"
    daemon.process.kill()
    daemon.process.wait(60)
    out, _ = client.communicate(timeout=60)
    assert out.strip() == "error"


def test_sigterm_is_clean_and_told(start_daemon, transport):
    daemon = start_daemon()
    address = daemon.address(transport)
    client = start_client(WAIT_THEN_USE.format(address=address), address)
    assert client.stdout.readline().strip() == "ready"
    daemon.process.send_signal(signal.SIGTERM)
    assert daemon.process.wait(60) == 0
    out, _ = client.communicate("\n", timeout=60)
    assert client.returncode == 0, out


@pytest.mark.parametrize(
    "address, words",
    [
        ("127.0.0.1:1", "127.0.0.1:1"),
        ("unix:/nowhere/at/all.sock", "/nowhere/at/all.sock"),
        ("not an address", "not an address"),
        ("unix:/etc/passwd", "/etc/passwd"),
    ],
)
def test_wrong_address(address, words):
    code = f"""
import time, holdfast
start = time.monotonic()
try:
    holdfast.connect({address!r}, timeout=10)
except (ConnectionError, ValueError, RuntimeError) as e:
    print(e)
    assert time.monotonic() - start < 60
else:
    raise SystemExit("connected?")
"""
    out = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, timeout=120
    )
    assert out.returncode == 0
    assert words in out.stdout


def test_second_daemon_on_the_same_socket_is_refused(daemon):
    import os

    out = subprocess.run(
        [os.environ["HOLDFAST_DAEMON"], f"--socket={daemon.socket}"],
        stderr=subprocess.PIPE,
        text=True,
        timeout=60,
    )
    assert out.returncode != 0
    assert daemon.socket in out.stderr
    daemon.check_alive()
