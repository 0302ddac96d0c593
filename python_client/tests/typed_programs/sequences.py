# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Recurrent networks over sentences of different lengths, and embeddings."""

from collections.abc import Sequence

import holdfast as torch
from holdfast import Tensor, nn
from holdfast.nn.utils.rnn import (
    pack_padded_sequence,
    pad_packed_sequence,
    pad_sequence,
)
from holdfast.utils.data import DataLoader

Sentence = list[int]


def collate(batch: Sequence[tuple[Sentence, int]]) -> tuple[Tensor, Tensor, Tensor]:
    sentences, labels = zip(*batch)
    lengths = torch.tensor([len(s) for s in sentences])
    padded = pad_sequence([torch.tensor(s) for s in sentences], batch_first=True)
    return padded, lengths, torch.tensor(labels)


class Reader(nn.Module):
    hidden: Tensor

    def __init__(self, words: int, width: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, width, padding_idx=0)
        self.lstm = nn.LSTM(width, width, num_layers=2, batch_first=True, dropout=0.1)
        self.gru = nn.GRU(width, width, batch_first=True, bidirectional=True)
        self.out = nn.Linear(2 * width, 2)
        self.register_buffer("hidden", torch.zeros(1))

    def forward(self, words: Tensor, lengths: Tensor) -> Tensor:
        x = self.embedding(words)
        packed = pack_padded_sequence(
            x, lengths, batch_first=True, enforce_sorted=False
        )
        states, (h, c) = self.lstm(packed)
        x, _ = pad_packed_sequence(states, batch_first=True)
        _, last = self.gru(x)
        self.hidden = h.detach().mean()
        return self.out(torch.cat([last[0], last[1]], dim=1))


data: list[tuple[Sentence, int]] = [([1, 2, 3], 0), ([4, 5], 1), ([6], 0)]
loader = DataLoader(data, batch_size=3, collate_fn=collate)
model = Reader(words=8, width=6)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, nesterov=True)
for words, lengths, labels in loader:
    loss = nn.CrossEntropyLoss()(model(words, lengths), labels)
    loss.backward()
    optimizer.step()
    print(loss.item(), float(model.hidden))
