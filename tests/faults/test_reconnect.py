# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""A client tries again for as long as its session stays, says so, and says what is so
when it gives up."""

import re
import signal
import subprocess
import sys
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


def test_ctrl_c_ends_an_upload_that_cannot_go_on(daemon):
    """Also of more bytes than go along with commands, with and without the GIL."""
    proxy = Proxy(daemon.listen)
    code = f"""
import numpy, holdfast as torch
torch.connect({proxy.address!r}, grace=300, reconnect_timeout=300)
x = torch.ones(3)
print(x.sum().item(), flush=True)
for count in (100_000, 1_000_000):
    a = numpy.ones(count, numpy.float32)
    input()
    print("begun", flush=True)
    try:
        y = torch.tensor(a)
        print("done")
    except KeyboardInterrupt:
        print("back", flush=True)
input()
print((x + torch.tensor(a).mean()).sum().item(), flush=True)
"""
    client = start_client(code, proxy.address, stderr=subprocess.PIPE)
    assert client.stdout.readline() == "3.0\n"
    proxy.breaking = 1 << 30
    proxy.cut()
    for _ in range(2):
        client.stdin.write("\n")
        client.stdin.flush()
        assert client.stdout.readline() == "begun\n"
        time.sleep(0.5)  # for what is not to come
        client.send_signal(signal.SIGINT)
        assert client.stdout.readline() == "back\n"
    proxy.breaking = 0
    out, _ = client.communicate("\n", timeout=60)
    proxy.close()
    assert (out, client.returncode) == ("6.0\n", 0)


def test_who_was_sent_away_is_told_where_the_session_is(daemon):
    proxy = Proxy(daemon.listen)
    client = start(proxy, "session='ours', grace=300, reconnect_timeout=60")
    proxy.breaking = 1 << 30
    proxy.cut()
    address = daemon.address("grpc")
    with holdfast.connect(address, session="ours", attach=True, default=False) as taken:
        proxy.breaking = 0
        out, err = client.communicate("\n", timeout=60)
        assert taken.attached and not taken.closed
    proxy.close()
    assert "lost" not in out + err
    assert re.search(
        r"another client took over session 'ours' \(number \d+\) at \d\d:\d\d:\d\d",
        out + err,
    ), (
        out + err
    )
    assert "connect(session='ours', attach=True) takes it back" in out + err


def test_who_comes_too_late_is_told_why(daemon):
    for options, end, why in (
        ("grace=0", None, "no grace was asked for"),
        ("session='late', grace=300", "late", "ended"),
    ):
        proxy = Proxy(daemon.listen)
        client = start(proxy, f"{options}, reconnect_timeout=60")
        proxy.breaking = 1 << 30
        proxy.cut()
        if end is not None:
            command = [sys.executable, "-m", "holdfast", "end", end, "--force"]
            subprocess.run(
                [*command, "--address", daemon.address("shm")], check=True, timeout=60
            )
        wait_until(lambda: daemon.stats()["sessions"] == [], "the session's end")
        proxy.breaking = 0
        out, _ = client.communicate("\n", timeout=60)
        proxy.close()
        assert "the session ended at" in out and why in out, out
