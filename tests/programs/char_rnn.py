# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""A character-level LSTM that carries its state from chunk to chunk."""

import numpy as np
import torch
import torch.nn as nn

text = "the quick brown fox jumps over the lazy dog. " * 8
chars = sorted(set(text))
stoi = {ch: i for i, ch in enumerate(chars)}
itos = dict(enumerate(chars))
data = torch.tensor([stoi[c] for c in text], dtype=torch.long)
vocab, hidden_size, chunk = len(chars), 24, 20


class CharRNN(nn.Module):
    def __init__(self, vocab, hidden_size, num_layers=2):
        super().__init__()
        self.embed = nn.Embedding(vocab, 12)
        self.rnn = nn.LSTM(12, hidden_size, num_layers, batch_first=True, dropout=0.0)
        self.head = nn.Linear(hidden_size, vocab)

    def forward(self, x, state=None):
        out, state = self.rnn(self.embed(x), state)
        return self.head(out), state


net = CharRNN(vocab, hidden_size)
rng = np.random.default_rng(0)
for p in net.parameters():
    p.data = torch.tensor(rng.uniform(-0.2, 0.2, tuple(p.shape)), dtype=p.dtype)
optimizer = torch.optim.Adam(net.parameters(), lr=5e-3)
loss_fn = nn.CrossEntropyLoss()
smooth = -np.log(1.0 / vocab)
for epoch in range(2):
    state = None
    for i in range(0, len(data) - chunk - 1, chunk):
        x = data[i : i + chunk].unsqueeze(0)
        y = data[i + 1 : i + chunk + 1].unsqueeze(0)
        logits, state = net(x, state)
        state = tuple(s.detach() for s in state)
        loss = loss_fn(logits.view(-1, vocab), y.view(-1))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_value_(net.parameters(), 5.0)
        optimizer.step()
        smooth = smooth * 0.9 + loss.item() * 0.1
    print(f"epoch {epoch} loss {loss.item():.4f} smooth {smooth:.4f}")

net.eval()
state, index, written = None, torch.tensor([[stoi["t"]]]), []
with torch.inference_mode():
    for _ in range(12):
        logits, state = net(index, state)
        probs = torch.softmax(logits[0, -1] / 0.8, dim=-1)
        index = probs.argmax().view(1, 1)
        written.append(round(probs.max().item(), 3))
print(written)
