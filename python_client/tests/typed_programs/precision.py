# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Mixed precision, several optimizers, averaged weights, schedules in a row."""

import holdfast as torch
from holdfast import nn
from holdfast.optim import lr_scheduler
from holdfast.optim.swa_utils import AveragedModel


def groups(model: nn.Module) -> tuple[list[nn.Parameter], list[nn.Parameter]]:
    matrices = [p for p in model.parameters() if p.ndim == 2]
    return matrices, [p for p in model.parameters() if p.ndim != 2]


model = nn.Sequential(nn.Linear(6, 12), nn.LayerNorm(12), nn.SiLU(), nn.Linear(12, 3))
matrices, others = groups(model)
muon = torch.optim.Muon(matrices, lr=0.02, momentum=0.95)
adam = torch.optim.AdamW(others, lr=1e-3, weight_decay=0.01, amsgrad=True)
factor = torch.optim.Adafactor([torch.nn.Parameter(torch.ones(2, 2))], lr=1e-2)
warm = lr_scheduler.LinearLR(adam, start_factor=0.1, total_iters=2)
rest = lr_scheduler.ExponentialLR(adam, gamma=0.9)
schedule = lr_scheduler.SequentialLR(adam, [warm, rest], milestones=[2])
average = AveragedModel(model)
scaler = torch.amp.GradScaler("cuda", enabled=False)
steps: list[int] = []
muon.register_step_post_hook(lambda optimizer, args, kwargs: steps.append(1))
x, y = torch.randn(8, 6), torch.randint(3, (8,))
for _ in range(3):
    with torch.autocast(device_type="cpu", dtype=torch.bfloat16):
        loss = nn.functional.cross_entropy(model(x), y)
    for optimizer in (muon, adam):
        optimizer.zero_grad()
    scaler.scale(loss).backward()
    scaler.unscale_(adam)
    muon.step()
    scaler.step(adam)
    scaler.update()
    schedule.step()
    average.update_parameters(model)
    print(loss.item())
print(len(steps), schedule.get_last_lr(), factor.param_groups[0]["lr"])
half = model.to(torch.bfloat16)
print(half(x.bfloat16()).dtype, next(average.parameters()).dtype)
with torch.device("meta"):
    large = nn.Linear(1 << 14, 1 << 14)
print(sum(p.numel() for p in large.parameters()), large.weight.is_meta)
small = nn.Linear(4, 4, device="meta").to_empty(device="cpu")
nn.init.kaiming_uniform_(small.weight, a=5**0.5)
