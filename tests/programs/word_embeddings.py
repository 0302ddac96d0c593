# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Skip-grams with negative samples, then nearest neighbours and an EmbeddingBag."""

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim

text = "a king rules a land . a queen rules a land . "
text += "a dog eats a bone . a cat eats a fish ."
tokens = text.split()
vocab = sorted(set(tokens))
word_to_ix = {word: i for i, word in enumerate(vocab)}
pairs = []
for i, center in enumerate(tokens):
    for j in range(max(0, i - 2), min(len(tokens), i + 3)):
        if j != i:
            pairs.append((word_to_ix[center], word_to_ix[tokens[j]]))


class SkipGram(nn.Module):
    def __init__(self, vocab_size, dim):
        super().__init__()
        self.u = nn.Embedding(vocab_size, dim, sparse=False)
        self.v = nn.Embedding(vocab_size, dim)

    def forward(self, center, context, negative):
        u, v, n = self.u(center), self.v(context), self.v(negative)
        positive = F.logsigmoid(torch.sum(u * v, dim=1))
        others = torch.bmm(n, u.unsqueeze(2)).squeeze(2)
        return -(positive + F.logsigmoid(-others).sum(1)).mean()


rng = np.random.RandomState(5)
model = SkipGram(len(vocab), 6)
model.u.weight.data = torch.tensor(
    rng.uniform(-0.3, 0.3, (len(vocab), 6)), dtype=torch.float
)
model.v.weight.data = torch.tensor(
    rng.uniform(-0.3, 0.3, (len(vocab), 6)), dtype=torch.float
)
optimizer = optim.Adagrad(model.parameters(), lr=0.3)
scheduler = optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.9)
pairs = torch.tensor(pairs)
for epoch in range(5):
    total = 0
    for batch in pairs.split(16):
        negative = torch.from_numpy(rng.randint(0, len(vocab), (len(batch), 3)))
        optimizer.zero_grad()
        loss = model(batch[:, 0], batch[:, 1], negative)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(batch)
    scheduler.step()
    print("epoch", epoch, "loss", total / len(pairs))
with torch.no_grad():
    table = F.normalize(model.u.weight, dim=1)
    similar = F.cosine_similarity(table[word_to_ix["king"]].unsqueeze(0), table)
    values, best = similar.topk(3)
    print(
        [round(v, 3) for v in values.tolist()], torch.cdist(table, table).mean().item()
    )

bag = nn.EmbeddingBag.from_pretrained(
    model.u.weight.detach(), freeze=False, mode="mean"
)
head = nn.Linear(6, 2)
nn.init.eye_(head.weight)
nn.init.zeros_(head.bias)
sentences = [s.split() for s in text.split(" . ")]
flat = torch.tensor([word_to_ix[w] for s in sentences for w in s if w in word_to_ix])
offsets = torch.tensor([0] + [len(s) for s in sentences[:-1]]).cumsum(0)
labels = torch.tensor([0, 0, 1, 1])
sgd = optim.SGD([*bag.parameters(), *head.parameters()], lr=0.5)
for step in range(4):
    loss = F.cross_entropy(head(bag(flat, offsets)), labels)
    sgd.zero_grad()
    loss.backward()
    sgd.step()
    print("step", step, loss.item())
