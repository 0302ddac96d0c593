# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Attention with rotary positions as complex numbers, grouped heads and a cache."""

import math
from typing import Optional, Tuple

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


class RMSNorm(nn.Module):
    def __init__(self, dim: int, eps: float = 1e-6):
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.ones(dim))

    def _norm(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps)

    def forward(self, x):
        return self._norm(x.float()).type_as(x) * self.weight


def precompute_freqs_cis(dim: int, end: int, theta: float = 10000.0):
    freqs = 1.0 / (theta ** (torch.arange(0, dim, 2)[: (dim // 2)].float() / dim))
    t = torch.arange(end, device=freqs.device)
    freqs = torch.outer(t, freqs).float()
    return torch.polar(torch.ones_like(freqs), freqs)


def apply_rotary_emb(
    xq: torch.Tensor, xk: torch.Tensor, freqs_cis: torch.Tensor
) -> Tuple[torch.Tensor, torch.Tensor]:
    xq_ = torch.view_as_complex(xq.float().reshape(*xq.shape[:-1], -1, 2))
    xk_ = torch.view_as_complex(xk.float().reshape(*xk.shape[:-1], -1, 2))
    freqs_cis = freqs_cis.view(1, xq_.shape[1], 1, xq_.shape[-1])
    xq_out = torch.view_as_real(xq_ * freqs_cis).flatten(3)
    xk_out = torch.view_as_real(xk_ * freqs_cis).flatten(3)
    return xq_out.type_as(xq), xk_out.type_as(xk)


def repeat_kv(x: torch.Tensor, n_rep: int) -> torch.Tensor:
    bs, slen, n_kv_heads, head_dim = x.shape
    if n_rep == 1:
        return x
    return (
        x[:, :, :, None, :]
        .expand(bs, slen, n_kv_heads, n_rep, head_dim)
        .reshape(bs, slen, n_kv_heads * n_rep, head_dim)
    )


class Attention(nn.Module):
    def __init__(self, dim=16, heads=4, kv_heads=2):
        super().__init__()
        self.heads, self.kv_heads, self.head_dim = heads, kv_heads, dim // heads
        self.wq = nn.Linear(dim, heads * self.head_dim, bias=False)
        self.wk = nn.Linear(dim, kv_heads * self.head_dim, bias=False)
        self.wv = nn.Linear(dim, kv_heads * self.head_dim, bias=False)
        self.wo = nn.Linear(heads * self.head_dim, dim, bias=False)
        self.cache = None

    def forward(
        self, x, start, freqs_cis, mask: Optional[torch.Tensor], use_cache=False
    ):
        b, s, _ = x.shape
        xq = self.wq(x).view(b, s, self.heads, self.head_dim)
        xk = self.wk(x).view(b, s, self.kv_heads, self.head_dim)
        xv = self.wv(x).view(b, s, self.kv_heads, self.head_dim)
        xq, xk = apply_rotary_emb(xq, xk, freqs_cis)
        if use_cache:
            if self.cache is None:
                self.cache = torch.zeros((2, b, 16, self.kv_heads, self.head_dim))
            self.cache[0, :b, start : start + s] = xk
            self.cache[1, :b, start : start + s] = xv
            xk, xv = self.cache[0, :b, : start + s], self.cache[1, :b, : start + s]
        keys = repeat_kv(xk, self.heads // self.kv_heads).transpose(1, 2)
        values = repeat_kv(xv, self.heads // self.kv_heads).transpose(1, 2)
        scores = xq.transpose(1, 2) @ keys.transpose(2, 3) / math.sqrt(self.head_dim)
        if mask is not None:
            scores = scores + mask
        scores = F.softmax(scores.float(), dim=-1).type_as(xq)
        return self.wo((scores @ values).transpose(1, 2).contiguous().view(b, s, -1))


rng = np.random.default_rng(0)
attention, norm = Attention(), RMSNorm(16)
for p in attention.parameters():
    p.data = torch.from_numpy(rng.normal(0, 0.3, p.shape)).float()
freqs_cis = precompute_freqs_cis(4, 16)
print(freqs_cis.dtype, freqs_cis.shape, freqs_cis[3].abs().tolist())
x = torch.from_numpy(rng.normal(size=(2, 8, 16))).float()
mask = torch.full((8, 8), float("-inf")).triu(diagonal=1)
opt = torch.optim.Adam([*attention.parameters(), *norm.parameters()], lr=0.01)
for step in range(4):
    loss = (x + attention(norm(x), 0, freqs_cis[:8], mask) - x.roll(1, 1)).pow(2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print("step", step, "loss", loss.item())
with torch.inference_mode():
    whole = attention(norm(x), 0, freqs_cis[:8], mask)
    steps = [
        attention(norm(x[:, i : i + 1]), i, freqs_cis[i : i + 1], None, use_cache=True)
        for i in range(8)
    ]
    difference = (torch.cat(steps, 1) - whole).abs().max().item()
print("with a cache the same:", difference < 1e-5)
