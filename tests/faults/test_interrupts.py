# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C gives a program back that waits for the network in the middle of a tensor's
bytes; its session goes on when the network does."""

import signal
import subprocess
import time

import pytest
from programs import start_client
from proxy import Proxy

MIB = 1 << 20
WAITS = {
    "download": "x.numpy()",
    "upload": "torch.tensor(a)",
}
CODE = """
import numpy, holdfast as torch
torch.connect({address!r}, grace=300)
x = torch.ones({count})
a = numpy.ones({count}, numpy.float32)
print(x[:3].sum().item(), flush=True)
input()
try:
    {wait}
    print("done", flush=True)
except KeyboardInterrupt:
    print("back", flush=True)
input()
{wait}
print((x[:3] + torch.tensor(a)[:3]).sum().item(), x.numpy().sum(), flush=True)
"""


def interrupt(client):
    """The program is back before gRPC finds that the connection is dead, in ten
    seconds: at once, but where gRPC looks at its old connection every five seconds
    only (kFirstPause in grpc_connection.cc), as it sometimes does on a busy machine."""
    begin = time.monotonic()
    client.send_signal(signal.SIGINT)
    assert client.stdout.readline() == "back\n"
    assert time.monotonic() - begin < 9


@pytest.mark.parametrize("wait", WAITS)
def test_ctrl_c_ends_a_transfer_that_stands_still(start_daemon, wait):
    daemon = start_daemon()
    proxy = Proxy(daemon.listen)
    code = CODE.format(address=proxy.address, count=8 * MIB, wait=WAITS[wait])
    client = start_client(code, proxy.address, stderr=subprocess.PIPE)
    assert client.stdout.readline() == "3.0\n"
    proxy.stall_after = 4 * MIB
    client.stdin.write("\n")
    client.stdin.flush()
    assert proxy.stalled.wait(60)
    interrupt(client)
    proxy.stall_after = None
    out, err = client.communicate("\n", timeout=60)
    proxy.close()
    assert (out, client.returncode) == (f"6.0 {8.0 * MIB}\n", 0), err


def test_ctrl_c_twice_while_nothing_is_taken(start_daemon):
    """A write that flow control holds up, and a second one."""
    daemon = start_daemon()
    proxy = Proxy(daemon.listen)
    code = CODE.format(address=proxy.address, count=8 * MIB, wait=WAITS["upload"])
    code = code.replace("input()\ntry", "for _ in range(2):\n  input()\n  try")
    code = code.replace("\n    torch", "\n      torch")
    code = code.replace("    print", "      print")
    code = code.replace("except Key", "  except Key")
    client = start_client(code, proxy.address, stderr=subprocess.PIPE)
    assert client.stdout.readline() == "3.0\n"
    proxy.stall_after = 4 * MIB
    for _ in range(2):
        proxy.stalled.clear()
        client.stdin.write("\n")
        client.stdin.flush()
        assert proxy.stalled.wait(60)
        interrupt(client)
    proxy.stall_after = None
    out, err = client.communicate("\n", timeout=60)
    proxy.close()
    assert (out, client.returncode) == (f"6.0 {8.0 * MIB}\n", 0), err
