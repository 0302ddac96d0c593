# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""A classifier with a data set of its own, schedules and a checkpoint."""

import tempfile
from pathlib import Path

import holdfast as torch
import holdfast.nn.functional as F
from holdfast import Tensor, nn
from holdfast.optim.lr_scheduler import CosineAnnealingLR
from holdfast.utils.data import DataLoader, Dataset, random_split


class Points(Dataset):
    def __init__(self, count: int) -> None:
        self.x = torch.randn(count, 4)
        self.y = (self.x.sum(dim=1) > 0).long()

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, index: int) -> tuple[Tensor, Tensor]:
        return self.x[index], self.y[index]


class Net(nn.Module):
    def __init__(self, width: int, classes: int = 2) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, width), nn.ReLU(), nn.Dropout(0.1))
        self.head = nn.Linear(width, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.body(x))


@torch.no_grad()
def accuracy(model: nn.Module, loader: DataLoader) -> float:
    model.eval()
    right, total = 0, 0
    for x, y in loader:
        right += int((model(x).argmax(dim=1) == y).sum().item())
        total += y.size(0)
    return right / total


torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
train, test = random_split(Points(64), [48, 16])
model = Net(width=16).to(device)
optimizer = torch.optim.AdamW(model.named_parameters(), lr=1e-2, betas=(0.9, 0.99))
schedule = CosineAnnealingLR(optimizer, T_max=3, eta_min=1e-4)
best: float = 0.0
for epoch in range(3):
    model.train()
    for x, y in DataLoader(train, batch_size=16, shuffle=True):
        optimizer.zero_grad(set_to_none=True)
        loss = F.cross_entropy(model(x.to(device)), y.to(device), label_smoothing=0.1)
        loss.backward()
        norm: Tensor = nn.utils.clip_grad_norm_(model.parameters(), max_norm=1.0)
        optimizer.step()
        print(f"{epoch}: {loss.item():.3f} {norm.item():.2f}")
    schedule.step()
    best = max(best, accuracy(model, DataLoader(test, batch_size=16)))
    print(f"{best:.2f} {schedule.get_last_lr()}")
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "net.pt"
    torch.save({"model": model.state_dict(), "best": best}, path)
    state = torch.load(path, map_location="cpu", weights_only=True)
    model.load_state_dict(state["model"])
