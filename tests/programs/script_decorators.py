# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Programs that carry marks for compilers, several GPUs and mixed precision."""

import os
from typing import Dict, List, Optional, Tuple

import numpy as np
import torch
import torch.distributed as dist
import torch.nn as nn
from torch.cuda.amp import GradScaler, autocast
from torch.nn.parallel import DistributedDataParallel as DDP


@torch.jit.script
def fused_gelu(x: torch.Tensor) -> torch.Tensor:
    return 0.5 * x * (1.0 + torch.tanh(0.79788456 * x * (1.0 + 0.044715 * x * x)))


@torch.jit.script
def pick(parts: List[torch.Tensor], index: int, names: Dict[str, int]) -> torch.Tensor:
    if index < 0:
        index = names["last"]
    return parts[index]


class Cell(nn.Module):
    __constants__ = ["size"]

    def __init__(self, size: int):
        super().__init__()
        self.size = size
        self.linear = nn.Linear(2 * size, size)

    @torch.jit.export
    def initial(self, batch: int) -> torch.Tensor:
        return torch.zeros(batch, self.size)

    @torch.jit.ignore
    def describe(self) -> str:
        return "a cell of %d" % self.size

    def forward(
        self, x: torch.Tensor, h: Optional[torch.Tensor]
    ) -> Tuple[torch.Tensor, torch.Tensor]:
        if h is None:
            h = self.initial(x.size(0))
        if torch.jit.is_scripting():
            raise RuntimeError("nobody compiles this")
        h = fused_gelu(self.linear(torch.cat([x, h], 1)))
        return h * 2, h


rng = np.random.RandomState(4)
cell = Cell(3)
for p in cell.parameters():
    p.data = torch.from_numpy(rng.normal(0, 0.5, p.size()).astype(np.float32))
print(cell.describe(), torch.jit.is_scripting(), torch.jit.is_tracing())
x = torch.from_numpy(rng.randn(5, 3).astype(np.float32))
traced = torch.jit.trace(lambda t: fused_gelu(t).sum(), (x,))
print("traced", traced(x + 1).item())
print("picked", pick([x, x * 2], -1, {"last": 1})[0, 0].item())

model = cell
if torch.cuda.device_count() > 1:
    print("Let's use", torch.cuda.device_count(), "GPUs!")
model = nn.DataParallel(model)
print(list(model.state_dict()), type(model.module).__name__)
os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
os.environ["MASTER_PORT"] = "0"
if not dist.is_initialized():
    dist.init_process_group("gloo", rank=0, world_size=1)
ddp = DDP(cell)
is_master = not dist.is_initialized() or dist.get_rank() == 0
use_amp = torch.cuda.is_available()
scaler = GradScaler(enabled=use_amp)
optimizer = torch.optim.SGD(ddp.parameters(), lr=0.1)
for step in range(4):
    optimizer.zero_grad()
    with autocast(enabled=use_amp):
        out, h = ddp(x, None)
        out, h = ddp(x, h)
        loss = (out - x).pow(2).mean()
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(ddp.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    total = loss.detach().clone()
    dist.all_reduce(total, op=dist.ReduceOp.SUM)
    total /= dist.get_world_size()
    if is_master:
        print("step", step, total.item())
dist.barrier()
dist.destroy_process_group()
print("done", dist.is_initialized())
