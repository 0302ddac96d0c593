# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Clients that die: their memory comes back, others do not notice."""

import os
import signal
import subprocess
import sys
import time

import pytest
from programs import run_client, start_client, wait_until

HOLD_100_MB = """
import holdfast
holdfast.connect({address!r}, grace=0)
t = [holdfast.ones(25_000_000) for _ in range(1)]
holdfast.synchronize()
print("ready", flush=True)
while True:  # killed in the middle of submitting
    u = t[0] + 1
"""

SURVIVE = """
import holdfast
x = holdfast.ones(10)
for i in range(20000):
    x = x + 1
    if i == 100:
        print("running", flush=True)
print(x.sum().item())
"""


def resident_bytes(pid):
    """Anonymous and shared memory that the daemon holds."""
    if os.environ.get("HOLDFAST_SANITIZER"):
        pytest.skip("a sanitizer has much memory of its own, and keeps what is freed")
    with open(f"/proc/{pid}/status") as f:
        lines = dict(line.split(":", 1) for line in f)
    return sum(int(lines[k].split()[0]) << 10 for k in ("RssAnon", "RssShmem"))


def test_sigkill_gives_memory_back_at_once(daemon, transport):
    pid = daemon.process.pid
    daemon.check_alive()
    before = resident_bytes(pid)
    client = start_client(
        HOLD_100_MB.format(address=daemon.address(transport)),
        daemon.address(transport),
    )
    assert client.stdout.readline().strip() == "ready"
    assert resident_bytes(pid) > before + 90_000_000
    time.sleep(0.3)  # its pool has grown to full size: see the end
    client.kill()
    client.wait(60)
    killed = time.monotonic()
    while resident_bytes(pid) > before + 50_000_000:
        waited = time.monotonic() - killed
        assert waited < 60, "the memory did not come back"
        time.sleep(0.002)
    # The aim is 100 ms; the figure is printed, since a busy machine and the op
    # that is under way add to it (the most when it makes the kernel find 100 MB
    # for the pool's first block).
    print(f"memory back after {time.monotonic() - killed:.3f} s")
    assert daemon.stats()["sessions"] == [] or all(
        s["bytes_in_use"] == 0 for s in daemon.stats()["sessions"]
    )


PROFILE_AND_STAY = """
import holdfast, time
holdfast.connect({address!r}, grace=0)
holdfast.profiler.profile(record_shapes=True).start()
x = holdfast.ones(3, 4)
for _ in range(100_000):
    x + x
holdfast.synchronize()
print("ready", flush=True)
time.sleep(60)
"""


def test_profile_goes_with_its_client(daemon, transport):
    pid = daemon.process.pid
    daemon.check_alive()
    before = resident_bytes(pid)
    held = []
    for _ in range(4):
        client = start_client(
            PROFILE_AND_STAY.format(address=daemon.address(transport)),
            daemon.address(transport),
        )
        assert client.stdout.readline().strip() == "ready"
        held.append(resident_bytes(pid) - before)
        client.kill()
        client.wait(60)
        wait_until(
            lambda: all(s["ops"] < 100_000 for s in daemon.stats()["sessions"]),
            "its session's end",
        )
    # 100,000 records with shapes; the next client's take the same memory.
    assert held[0] > 10_000_000
    assert held[-1] < 2 * held[0]
    daemon.check_alive()


def test_many_kills_leave_nothing(daemon):
    pid = daemon.process.pid
    daemon.check_alive()
    files = len(os.listdir(f"/proc/{pid}/fd"))
    before = resident_bytes(pid)
    for i in range(12):
        transport = ("shm", "grpc")[i % 2]
        client = start_client(
            HOLD_100_MB.format(address=daemon.address(transport)),
            daemon.address(transport),
        )
        assert client.stdout.readline().strip() == "ready"
        client.kill()
        client.wait(60)
    wait_until(lambda: resident_bytes(pid) < before + 20_000_000, "memory is back")
    wait_until(lambda: len(os.listdir(f"/proc/{pid}/fd")) <= files + 2, "files closed")
    daemon.check_alive()


def test_killed_client_does_not_disturb_another(daemon, transport):
    survivor = start_client(SURVIVE, daemon.address(transport))
    assert survivor.stdout.readline().strip() == "running"
    victim = start_client(
        HOLD_100_MB.format(address=daemon.address("shm")), daemon.address("shm")
    )
    assert victim.stdout.readline().strip() == "ready"
    victim.kill()
    victim.wait(60)
    out, _ = survivor.communicate(timeout=120)
    assert float(out) == 200010.0


def test_session_outlives_its_killed_client(daemon, transport):
    address = daemon.address(transport)
    train = f"""
import holdfast
holdfast.connect({address!r}, session="mine", grace=60)
w = holdfast.arange(6).float()
holdfast.keep("w", w)
w.mul_(2)
holdfast.synchronize()
print("ready", flush=True)
input()
"""
    client = start_client(train, address)
    assert client.stdout.readline().strip() == "ready"
    client.kill()
    client.wait(60)
    attach = f"""
import holdfast
holdfast.connect({address!r}, session="mine", attach=True)
print(holdfast.kept("w").tolist())
"""
    assert run_client(attach, address).strip() == "[0.0, 2.0, 4.0, 6.0, 8.0, 10.0]"


DIE_IN_CODE = """
import os, signal, holdfast
holdfast.connect({address!r}, {session})
x = holdfast.ones(25_000_000, requires_grad=True)
y = x * 2

class Double(holdfast.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, gradient):
        (x.detach() * 2).sum().item()
        os.kill(os.getpid(), signal.SIGKILL)

def hook(gradient):
    gradient.sum().item()
    os.kill(os.getpid(), signal.SIGKILL)

if {in_hook}:
    y.register_hook(hook)
else:
    y = Double.apply(y)
print("ready", flush=True)
y.sum().backward()
"""


@pytest.mark.parametrize("in_hook", [True, False], ids=["hook", "function"])
def test_sigkill_inside_user_code_gives_memory_back(daemon, transport, in_hook):
    """The daemon waits for an answer that nobody will give."""
    pid = daemon.process.pid
    daemon.check_alive()
    before = resident_bytes(pid)
    address = daemon.address(transport)
    code = DIE_IN_CODE.format(address=address, session="grace=0", in_hook=in_hook)
    survivor = start_client(SURVIVE, address)
    assert survivor.stdout.readline().strip() == "running"
    client = start_client(code, address)
    assert client.stdout.readline().strip() == "ready"
    assert client.wait(60) == -signal.SIGKILL
    wait_until(lambda: resident_bytes(pid) < before + 50_000_000, "memory is back")
    out, _ = survivor.communicate(timeout=120)
    assert float(out) == 200010.0
    daemon.check_alive()


def test_a_session_outlives_a_client_killed_inside_its_hook(daemon, transport):
    address = daemon.address(transport)
    session = "session='mine', grace=60"
    code = DIE_IN_CODE.format(address=address, session=session, in_hook=True)
    code = code.replace("print(", "holdfast.keep('x', x)\nprint(")
    client = start_client(code, address)
    assert client.stdout.readline().strip() == "ready"
    assert client.wait(60) == -signal.SIGKILL
    attach = f"""
import holdfast
holdfast.connect({address!r}, session="mine", attach=True)
x = holdfast.kept("x")
(x * 3).sum().backward()
print(x.sum().item(), x.grad.mean().item())
"""
    assert run_client(attach, address).split() == ["25000000.0", "3.0"]


def test_private_daemon_ends_with_its_program(tmp_path):
    env = dict(os.environ, XDG_RUNTIME_DIR=str(tmp_path), HOLDFAST_SOCKET="")
    env.pop("HOLDFAST_ADDRESS", None)
    code = """
import os, holdfast
holdfast.ones(3).sum().item()
children = open(f"/proc/self/task/{os.getpid()}/children").read()
print(children.split()[0], flush=True)
input()
"""
    client = subprocess.Popen(
        [sys.executable, "-c", code], env=env, stdin=-1, stdout=-1, text=True
    )
    pid = int(client.stdout.readline())
    client.kill()
    client.wait(60)
    wait_until(lambda: not _alive(pid), "the private daemon has ended")


def _alive(pid):
    try:
        with open(f"/proc/{pid}/stat") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False
