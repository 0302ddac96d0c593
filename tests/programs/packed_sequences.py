# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Names of different lengths, packed, into a bidirectional LSTM."""

import numpy as np
import torch
import torch.nn as nn
from torch.nn.utils.rnn import (
    PackedSequence,
    pack_padded_sequence,
    pack_sequence,
    pad_packed_sequence,
    pad_sequence,
)
from torch.utils.data import DataLoader, Dataset

NAMES = {
    0: ["ando", "aoki", "arai", "baba", "chiba", "doi", "endo", "fujita"],
    1: ["abbott", "adair", "baker", "bell", "carter", "dixon", "ellis", "ford"],
    2: ["abel", "acker", "bauer", "becker", "braun", "ernst", "fuchs", "hahn"],
}


class Names(Dataset):
    def __init__(self):
        self.items = [(n, k) for k, names in NAMES.items() for n in names]

    def __getitem__(self, i):
        name, label = self.items[i]
        return torch.tensor([ord(c) - ord("a") + 1 for c in name]), label

    def __len__(self):
        return len(self.items)


def collate(batch):
    batch = sorted(batch, key=lambda pair: len(pair[0]), reverse=True)
    words, labels = zip(*batch)
    lengths = torch.as_tensor([len(w) for w in words])
    return pad_sequence(words, batch_first=True), lengths, torch.tensor(labels)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(27, 8, padding_idx=0)
        self.rnn = nn.LSTM(8, 10, num_layers=1, bidirectional=True, batch_first=True)
        self.out = nn.Linear(20, 3)

    def forward(self, x, lengths):
        packed = pack_padded_sequence(self.embedding(x), lengths, batch_first=True)
        packed_out, (h, c) = self.rnn(packed)
        padded, sizes = pad_packed_sequence(packed_out, batch_first=True)
        pooled = padded.sum(1) / sizes.unsqueeze(1).to(padded.dtype)
        return self.out(torch.cat([h[-2], h[-1]], dim=1)) + self.out(pooled)


model = Classifier()
rng = np.random.default_rng(12)
for name, p in model.named_parameters():
    p.data = torch.from_numpy(rng.normal(0, 0.2, p.shape).astype(np.float32))
    if name == "embedding.weight":
        p.data[0] = 0
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
criterion = nn.CrossEntropyLoss(reduction="none")
for epoch in range(4):
    order = rng.permutation(24).tolist()
    total = 0.0
    for x, lengths, y in DataLoader(Names(), 8, sampler=order, collate_fn=collate):
        losses = criterion(model(x, lengths), y)
        optimizer.zero_grad()
        losses.mean().backward()
        optimizer.step()
        total += losses.sum().item()
    print(epoch, total / 24, model.embedding.weight.grad[0].abs().sum().item())
packed = pack_sequence(
    [torch.tensor([1, 2]), torch.tensor([3, 4, 5]), torch.tensor([6])],
    enforce_sorted=False,
)
print(
    isinstance(packed, PackedSequence),
    packed.data.tolist(),
    packed.batch_sizes.tolist(),
)
padded, lengths = pad_packed_sequence(packed, padding_value=-1)
print(padded.tolist(), lengths.tolist(), packed.sorted_indices.tolist())
out, hidden = nn.GRU(1, 2)(pack_sequence([torch.ones(3, 1), torch.ones(2, 1)]))
print(type(out).__name__, tuple(out.data.shape), tuple(hidden.shape))
