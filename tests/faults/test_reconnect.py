# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""A client tries again for as long as its session stays, says so, and says what is so
when it gives up."""

import re
import signal
import subprocess
import time

import holdfast
from programs import start_client, wait_until
from proxy import Proxy

PROGRAM = """
import sys
import holdfast as torch
torch.connect({address!r}, timeout=1, {options})
a = torch.ones(3)
print(a.sum().item(), flush=True)
sys.stdin.readline()
try:
    print((a + 1).sum().item())
except torch.errors.DaemonUnavailableError as error:
    print(error)
"""


def start(proxy, options):
    client = start_client(
        PROGRAM.format(address=proxy.address, options=options),
        proxy.address,
        stderr=subprocess.PIPE,
    )
    assert client.stdout.readline() == "3.0\n"
    return client


def test_a_gap_longer_than_the_timeout(daemon):
    proxy = Proxy(daemon.listen)
    client = start(proxy, "session='gap', grace=300")
    proxy.breaking = 1 << 30
    proxy.cut()
    client.stdin.write("\n")
    client.stdin.flush()
    line = client.stderr.readline()
    time.sleep(1)
    proxy.breaking = 0
    out, rest = client.communicate(timeout=60)
    proxy.close()
    assert (out, rest) == ("6.0\n", "")
    assert re.fullmatch(
        r"holdfast: no connection since \d\d:\d\d:\d\d to session 'gap' \(number \d+\) "
        rf"at {proxy.address}; trying again for 300 s\n",
        line,
    )


def test_who_gives_up_says_what_is_so(daemon):
    for options, expected in (
        ("session='gap', grace=300, reconnect_timeout=0.5", "session='gap'"),
        ("grace=300, reconnect_timeout=0.5", "Only a session with a name"),
    ):
        proxy = Proxy(daemon.listen)
        client = start(proxy, options)
        proxy.close()
        out, err = client.communicate("\n", timeout=60)
        assert err == "", "it was shorter than a user would notice"
        assert re.search(r"no connection since \d\d:\d\d:\d\d \(0\.\d s\) to", out), out
        assert re.search(
            r"The daemon keeps it for another 29\d(\.\d)? s, until", out
        ), out
        assert expected in out and "lost" not in out
    # It was true.
    address = daemon.address("shm")
    with holdfast.connect(address, session="gap", default=False) as session:
        assert session.attached


def test_a_session_that_the_daemon_does_not_know(daemon):
    """Only then is it said to be lost."""
    proxy = Proxy(daemon.listen)
    client = start(proxy, "grace=0, reconnect_timeout=60")
    proxy.breaking = 1 << 30
    proxy.cut()
    wait_until(lambda: daemon.stats()["sessions"] == [], "the session's end")
    proxy.breaking = 0
    out, _ = client.communicate("\n", timeout=60)
    proxy.close()
    assert "the daemon has lost session" in out and "are lost" in out


def test_a_local_daemon_that_has_ended(start_daemon):
    daemon = start_daemon()
    address = daemon.address("shm")
    client = start_client(PROGRAM.format(address=address, options=""), address)
    assert client.stdout.readline() == "3.0\n"
    daemon.process.kill()
    daemon.process.wait(60)
    out, _ = client.communicate("\n", timeout=60)
    assert "is gone" in out and "are lost" in out


def test_ctrl_c_ends_a_wait_for_room(start_daemon):
    """A loop that only submits waits where the connection is gone; Ctrl-C gives the
    program back, and the session is as it was."""
    daemon = start_daemon()
    code = f"""
import holdfast as torch
torch.connect({daemon.listen!r}, grace=300)
x = torch.ones(10)
print(x.sum().item(), flush=True)
try:
    while True:
        y = x + 1
except KeyboardInterrupt:
    print("back", flush=True)
    import os; os._exit(0)
"""
    client = start_client(code, daemon.listen, stderr=subprocess.PIPE)
    assert client.stdout.readline() == "10.0\n"
    daemon.process.send_signal(signal.SIGSTOP)
    time.sleep(3)  # until 16 MiB are on their way
    client.send_signal(signal.SIGINT)
    assert client.stdout.readline() == "back\n"
    assert client.wait(60) == 0
    daemon.process.send_signal(signal.SIGCONT)
    client.stdout.close()
    client.stdin.close()
    client.stderr.close()
