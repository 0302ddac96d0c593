# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""A language model out of nn.TransformerEncoder, with sines for positions."""

import math
from tempfile import TemporaryDirectory
import os

import numpy as np
import torch
from torch import nn, Tensor
import torch.nn.functional as F
from torch.nn import TransformerEncoder, TransformerEncoderLayer


class PositionalEncoding(nn.Module):
    def __init__(self, d_model: int, dropout: float = 0.1, max_len: int = 64):
        super().__init__()
        self.dropout = nn.Dropout(p=dropout)
        position = torch.arange(max_len).unsqueeze(1)
        div_term = torch.exp(
            torch.arange(0, d_model, 2) * (-math.log(10000.0) / d_model)
        )
        pe = torch.zeros(max_len, 1, d_model)
        pe[:, 0, 0::2] = torch.sin(position * div_term)
        pe[:, 0, 1::2] = torch.cos(position * div_term)
        self.register_buffer("pe", pe)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.pe[: x.size(0)]
        return self.dropout(x)


class TransformerModel(nn.Module):
    def __init__(self, ntoken: int, d_model: int, nhead: int, d_hid: int, nlayers: int):
        super().__init__()
        self.model_type = "Transformer"
        self.pos_encoder = PositionalEncoding(d_model, 0.0)
        layers = TransformerEncoderLayer(d_model, nhead, d_hid, dropout=0.0)
        self.transformer_encoder = TransformerEncoder(layers, nlayers)
        self.embedding = nn.Embedding(ntoken, d_model)
        self.d_model = d_model
        self.linear = nn.Linear(d_model, ntoken)

    def forward(self, src: Tensor, src_mask: Tensor = None) -> Tensor:
        src = self.embedding(src) * math.sqrt(self.d_model)
        src = self.pos_encoder(src)
        output = self.transformer_encoder(src, src_mask)
        return self.linear(output)


def generate_square_subsequent_mask(sz: int) -> Tensor:
    return torch.triu(torch.ones(sz, sz) * float("-inf"), diagonal=1)


rng = np.random.default_rng(1)
ntokens, bptt = 15, 8
stream = torch.tensor(np.cumsum(rng.integers(1, 3, 400)) % ntokens)
train_data = stream[: 400 // 10 * 10].view(10, -1).t().contiguous()
model = TransformerModel(ntokens, 16, 4, 32, 2)
for p in model.parameters():
    if p.dim() > 1:
        bound = math.sqrt(6.0 / (p.size(0) + p.size(1)))
        p.data = torch.from_numpy(rng.uniform(-bound, bound, p.shape)).to(p.dtype)
    elif p.abs().sum() != p.numel():
        p.data.zero_()
criterion = nn.CrossEntropyLoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 1.0, gamma=0.95)
best_val_loss = float("inf")
with TemporaryDirectory() as folder:
    path = os.path.join(folder, "best.pt")
    for epoch in range(1, 4):
        model.train()
        src_mask = generate_square_subsequent_mask(bptt)
        total_loss = 0.0
        for i in range(0, train_data.size(0) - 1, bptt):
            seq_len = min(bptt, len(train_data) - 1 - i)
            data = train_data[i : i + seq_len]
            targets = train_data[i + 1 : i + 1 + seq_len].reshape(-1)
            if seq_len != bptt:
                src_mask = src_mask[:seq_len, :seq_len]
            output = model(data, src_mask)
            loss = criterion(output.view(-1, ntokens), targets)
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
            total_loss += seq_len * loss.item()
        val_loss = total_loss / (len(train_data) - 1)
        print(
            f"| end of epoch {epoch:3d} | loss {val_loss:5.4f} "
            f"| lr {scheduler.get_last_lr()[0]:.4f}"
        )
        if val_loss < best_val_loss:
            best_val_loss = val_loss
            torch.save(model.state_dict(), path)
        scheduler.step()
    model.load_state_dict(torch.load(path))
model.eval()
with torch.no_grad():
    mask = generate_square_subsequent_mask(4)
    logits = model(train_data[:4, :1], mask)
print("next", F.softmax(logits[-1, 0], dim=-1).topk(2).values.tolist())
