# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""A client's machine that sleeps: what was sent is executed, and the program goes on
when it wakes, if its grace period lasted; else it is told."""

import os
import re
import signal
import time

import pytest
from programs import start_client, wait_until
from proxy import Proxy

PROGRAM = """
import hashlib, sys
import holdfast as torch
session = torch.connect({address!r}, grace={grace}, reconnect_timeout=60)
torch.manual_seed(1)
x = torch.rand(64, 64)
w = torch.rand(64, 64, requires_grad=True)
print("ready", flush=True)
try:
    for step in range(400):
        loss = torch.tanh(x @ w).pow(2).mean()
        loss.backward()
        with torch.no_grad():
            w -= 0.5 * w.grad
        w.grad = None
        if step == 100:
            loss.item()  # so that all of it has arrived
            print("working", flush=True)
            sys.stdin.readline()
    print(hashlib.sha256(w.detach().numpy().tobytes()).hexdigest(), flush=True)
except torch.errors.HoldfastError as error:
    print(type(error).__name__, error, flush=True)
"""


def start(daemon, address, grace):
    client = start_client(PROGRAM.format(address=address, grace=grace), address)
    assert client.stdout.readline() == "ready\n"
    assert client.stdout.readline() == "working\n"
    return client


def finish(client):
    out, _ = client.communicate("\n", timeout=120)
    return out.strip()


def sessions(daemon):
    return daemon.stats()["sessions"]


@pytest.fixture
def digest(daemon):
    """What an undisturbed run ends with."""
    return finish(start(daemon, daemon.listen, 60))


def test_a_stopped_client_goes_on(daemon, digest):
    """The process stands still, longer than keepalives; its connection stays."""
    client = start(daemon, daemon.listen, 60)
    os.kill(client.pid, signal.SIGSTOP)
    time.sleep(6)
    os.kill(client.pid, signal.SIGCONT)
    assert finish(client) == digest


@pytest.mark.parametrize("grace", [60, 0.5])
def test_a_connection_that_is_gone_on_waking(daemon, digest, grace):
    """The network forgets the connection meanwhile: the grace period decides."""
    proxy = Proxy(daemon.listen)
    client = start(daemon, proxy.address, grace)
    os.kill(client.pid, signal.SIGSTOP)
    proxy.cut()
    if grace == 60:
        time.sleep(3)
        assert len(sessions(daemon)) == 1
    else:
        wait_until(lambda: not sessions(daemon), "the end of the grace period")
    os.kill(client.pid, signal.SIGCONT)
    said = finish(client)
    if grace == 60:
        assert said == digest
    else:
        assert re.search("session|token", said), said
    wait_until(lambda: not sessions(daemon), "no session is left")


def test_a_connection_that_is_half_open_on_waking(daemon, digest):
    """Neither side was told. The client finds out by itself, and takes its session over
    from the connection that the daemon still believes in."""
    proxy = Proxy(daemon.listen)
    client = start(daemon, proxy.address, 60)
    os.kill(client.pid, signal.SIGSTOP)
    proxy.forget()
    time.sleep(3)
    assert [s["connected"] for s in sessions(daemon)] == [True]
    os.kill(client.pid, signal.SIGCONT)
    assert finish(client) == digest
    wait_until(lambda: not sessions(daemon), "no session is left")
    proxy.close()


def test_others_do_not_notice(daemon):
    client = start(daemon, daemon.listen, 60)
    os.kill(client.pid, signal.SIGSTOP)
    try:
        daemon.check_alive()
    finally:
        os.kill(client.pid, signal.SIGCONT)
    assert len(finish(client)) == 64
