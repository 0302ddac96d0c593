# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Trainings that print each loss as its bits, for what may happen to them."""

# Adam, dropout, a schedule; a checkpoint after each step. Arguments: the daemon's
# address, the session's name, how many steps, seconds to wait after each.
KEPT_TRAINING = """
import sys, time
import torch, holdfast_torch
from torch import nn

address, name, steps, pause = sys.argv[1:]
session = holdfast_torch.connect(address, session=name, grace=60)
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 4))
x, y = torch.randn(64, 8), torch.randint(0, 4, (64,))
model, x, y = model.to("holdfast"), x.to("holdfast"), y.to("holdfast")
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.9)
first = 0
if session.attached:
    left = holdfast_torch.kept("training")
    model.load_state_dict(left["model"])
    optimizer.load_state_dict(left["optimizer"])
    schedule.load_state_dict(left["schedule"])
    torch.holdfast.set_rng_state(left["random"])
    first = left["steps"]
    print("goes on after", first, flush=True)
for step in range(first, int(steps)):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    schedule.step()
    parts = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    parts |= {"schedule": schedule.state_dict(), "steps": step + 1}
    parts |= {"random": torch.holdfast.get_rng_state()}
    holdfast_torch.keep("training", parts, copy=True)
    print(step, loss.item().hex(), flush=True)
    time.sleep(float(pause))
session.close()
"""

# As above without a session that stays: what a cut connection must not change.
# Arguments: address, how many steps.
TRAINING = """
import sys
import torch, holdfast_torch
from torch import nn

holdfast_torch.connect(sys.argv[1])
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Dropout(0.5), nn.Linear(32, 4))
x, y = torch.randn(64, 8), torch.randint(0, 4, (64,))
model, x, y = model.to("holdfast"), x.to("holdfast"), y.to("holdfast")
optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
for step in range(int(sys.argv[2])):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(loss.item().hex(), flush=True)
"""
