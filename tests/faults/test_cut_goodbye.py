# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""A connection that breaks while a program leaves: the daemon has done what it was
asked, its answer is lost, and the client asks again."""

import pytest
import wire
from programs import run_client, start_client, wait_until
from proxy import Proxy

LEAVE = """
import holdfast as torch
session = torch.connect(session="nine")
torch.keep("x", torch.arange(5))
torch.kept("x").sum().item()
print("ready", flush=True)
input()
{leave}
print("left", flush=True)
"""
ATTACH = """
import holdfast as torch
session = torch.connect(session="nine")
print(session.attached, torch.kept("x").sum().item())
"""


@pytest.fixture
def sessions(daemon):
    """Asks the daemon without delay."""
    client = wire.Local(daemon.socket)
    stats = wire.pb.LocalRequest(stats=wire.pb.StatsRequest())
    return lambda: {s.name: s.connected for s in client.call(stats)[0].stats.sessions}


@pytest.fixture
def proxy(daemon):
    proxy = Proxy(daemon.listen)
    yield proxy
    proxy.close()


def leave(proxy, how, is_done):
    client = start_client(LEAVE.format(leave=how), proxy.address)
    assert client.stdout.readline() == "ready\n"
    proxy.reply_delay = 1
    client.stdin.write("\n")
    client.stdin.flush()
    wait_until(is_done, "the daemon has done it")
    proxy.reply_delay = 0
    proxy.cut()
    assert client.communicate(timeout=60)[0] == "left\n"
    assert client.returncode == 0


def test_detach(daemon, proxy, sessions):
    leave(proxy, "torch.detach()", lambda: sessions().get("nine") is False)
    assert run_client(ATTACH, daemon.listen).split() == ["True", "10"]


def test_close(proxy, sessions):
    leave(proxy, "session.close()", lambda: "nine" not in sessions())


def test_nobody_is_there_any_more(start_daemon):
    """An ending program does not wait for long."""
    daemon = start_daemon()
    client = start_client(LEAVE.format(leave=""), daemon.listen)
    assert client.stdout.readline() == "ready\n"
    daemon.process.kill()
    daemon.process.wait()
    # Less than connect(timeout=...).
    assert client.communicate("\n", timeout=60)[0] == "left\n"
