# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""What a training needs to go on survives SIGTERM."""

import pytest
from programs import run_client, start_client, wait_until


@pytest.fixture
def start(start_daemon, tmp_path):
    return lambda: start_daemon(f"--state_dir={tmp_path}/state")


# In two halves, with what is needed for the second one kept.
HALF = """
import hashlib
import holdfast as torch
from holdfast import nn
session = torch.connect(session="nine")
print(session.attached, flush=True)
torch.set_grad_enabled(True)
model = nn.Sequential(nn.Linear(12, 24), nn.Tanh(), nn.Dropout(0.3), nn.Linear(24, 4))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 40)
if session.attached:
    model.load_state_dict(torch.kept("model"))
    optimizer.load_state_dict(torch.kept("optimizer"))
    scheduler.load_state_dict(torch.kept("scheduler"))
    x, y = torch.kept("data")
    torch.set_rng_state(torch.kept("random"))
else:
    torch.manual_seed(3)
    with torch.no_grad():
        for p in model.parameters():
            p.uniform_(-0.3, 0.3)
    x, y = torch.rand(32, 12), torch.randint(0, 4, (32,))
for step in range({steps}):
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(x), y).backward()
    optimizer.step()
    scheduler.step()
torch.keep("model", model)
torch.keep("optimizer", optimizer)
torch.keep("scheduler", scheduler)
torch.keep("data", (x, y))
torch.keep("random", torch.get_rng_state())
digest = hashlib.sha256()
for p in model.state_dict().values():
    digest.update(p.numpy().tobytes())
print(digest.hexdigest(), flush=True)
{leave}
"""


def connected(daemon):
    """Of the training's session."""
    sessions = daemon.stats()["sessions"]
    return [s["connected"] for s in sessions if s["name"] == "nine"]


@pytest.mark.parametrize("leave", ["torch.detach()", "input()", "killed"])
def test_a_training_goes_on_after_sigterm(start, transport, leave):
    """Also one whose program is connected, or whose connection is gone, just then."""
    daemon = start()
    code = HALF.format(steps=40, leave="torch.disconnect()")
    whole = run_client(code, daemon.listen).split()[-1]
    client = start_client(
        HALF.format(steps=20, leave=leave.replace("killed", "input()")),
        daemon.address(transport),
    )
    assert client.stdout.readline() == "False\n"
    assert len(client.stdout.readline()) == 65
    if leave == "killed":
        client.kill()
    if leave != "input()":
        client.wait(60)
        wait_until(
            lambda: connected(daemon) == [False],
            "the client is gone",
        )
    daemon.stop()
    client.stdin.close()
    client.wait(60)
    daemon = start()
    for there in ("shm", "grpc"):
        code = HALF.format(steps=20 if there == "shm" else 0, leave="torch.detach()")
        assert run_client(code, daemon.address(there)).split() == ["True", whole]
    daemon.stop()
