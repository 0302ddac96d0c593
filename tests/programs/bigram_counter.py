# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Counting bigrams of names, then learning the same table by gradient descent."""

import torch
import torch.nn.functional as F
import numpy as np

words = """emma olivia ava isabella sophia charlotte mia amelia harper evelyn abigail
emily ella elizabeth camila luna sofia avery mila aria scarlett penelope layla chloe
victoria madison eleanor grace nora riley zoey hannah hazel lily ellie violet""".split()
chars = sorted(list(set("".join(words))))
stoi = {s: i + 1 for i, s in enumerate(chars)}
stoi["."] = 0
itos = {i: s for s, i in stoi.items()}
size = len(stoi)
N = torch.zeros((size, size), dtype=torch.int32)
for w in words:
    chs = ["."] + list(w) + ["."]
    for ch1, ch2 in zip(chs, chs[1:]):
        ix1 = stoi[ch1]
        ix2 = stoi[ch2]
        N[ix1, ix2] += 1
print("most frequent", N.max().item(), itos[N[0].argmax().item()], N.sum().item())
P = (N + 1).float()
P /= P.sum(1, keepdims=True)
assert torch.allclose(P.sum(1), torch.ones(size))
log_likelihood, n = 0.0, 0
for w in words[:10]:
    chs = ["."] + list(w) + ["."]
    for ch1, ch2 in zip(chs, chs[1:]):
        prob = P[stoi[ch1], stoi[ch2]]
        log_likelihood += torch.log(prob)
        n += 1
print(f"{log_likelihood=}")
print(f"{-log_likelihood / n}")

xs, ys = [], []
for w in words:
    chs = ["."] + list(w) + ["."]
    for ch1, ch2 in zip(chs, chs[1:]):
        xs.append(stoi[ch1])
        ys.append(stoi[ch2])
xs, ys = torch.tensor(xs), torch.tensor(ys)
num = xs.nelement()
print("number of examples: ", num)
W = torch.from_numpy(np.random.RandomState(0).randn(size, size)).float()
W.requires_grad = True
for k in range(12):
    xenc = F.one_hot(xs, num_classes=size).float()
    logits = xenc @ W
    counts = logits.exp()
    probs = counts / counts.sum(1, keepdims=True)
    loss = -probs[torch.arange(num), ys].log().mean() + 0.01 * (W**2).mean()
    W.grad = None
    loss.backward()
    W.data += -30 * W.grad
    if k % 4 == 3:
        print(k, loss.item())

g = torch.Generator().manual_seed(2147483647)
draws = [
    torch.multinomial(P[0], num_samples=1, replacement=True, generator=g).item()
    for _ in range(20)
]
g.manual_seed(2147483647)
again = torch.multinomial(P[0], num_samples=1, replacement=True, generator=g).item()
print("draws repeat:", draws[0] == again, all(0 <= d < size for d in draws))
