# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""What one keep() keeps is there whole or not at all, whenever the client dies."""

import pytest
from programs import start_client

import holdfast

KEEPING = """
import holdfast as torch
torch.connect(session={name!r}, grace=-1)
for step in range(100000):
    state = {{str(i): torch.full((4,), float(step)) for i in range(300)}}
    torch.keep("state", {{"step": step, "tensors": state}})
    if step == 3:
        print("going", flush=True)
"""

TRAINING = """
import holdfast as torch
torch.connect(session={name!r}, grace=-1)
w = torch.zeros(1000)
for step in range(100000):
    w.add_(1)
    torch.keep("state", {{"step": step + 1, "w": w}}, copy=True)
    if step == 3:
        print("going", flush=True)
"""


def killed_while(code, daemon, transport, name, delay):
    client = start_client(code.format(name=name), daemon.address(transport))
    assert client.stdout.readline().strip() == "going"
    try:
        client.wait(delay)
    except Exception:  # noqa: BLE001 - it goes on, as it should
        pass
    client.kill()
    client.wait()


@pytest.mark.parametrize("transport", ["shm", "grpc"])
@pytest.mark.parametrize("delay", [0.05, 0.11, 0.23])
def test_a_kill_leaves_the_old_or_the_new(daemon, transport, delay):
    name = f"whole-{transport}-{delay}"
    killed_while(KEEPING, daemon, transport, name, delay)
    with holdfast.connect(daemon.address(transport), session=name, attach=True):
        state = holdfast.kept("state")
        values = {t[0].item() for t in state["tensors"].values()}
        assert values == {float(state["step"])}
        assert len(state["tensors"]) == 300


@pytest.mark.parametrize("transport", ["shm", "grpc"])
def test_copies_belong_together(daemon, transport):
    name = f"copies-{transport}"
    killed_while(TRAINING, daemon, transport, name, 0.1)
    with holdfast.connect(daemon.address(transport), session=name, attach=True):
        state = holdfast.kept("state")
        assert set(state["w"].tolist()) == {float(state["step"])}
