# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""A small language model in today's style: RMSNorm, rotary places, SwiGLU, a cache."""

from dataclasses import dataclass

import holdfast as torch
from holdfast import Tensor, nn
from holdfast.nn import functional as F
from holdfast.nn.attention import SDPBackend, sdpa_kernel
from holdfast.nn.attention.flex_attention import create_block_mask, flex_attention


@dataclass
class Config:
    vocabulary: int = 32
    width: int = 16
    heads: int = 2
    layers: int = 2


def rotate(x: Tensor, start: int) -> Tensor:
    half = x.shape[-1] // 2
    frequencies = 1.0 / (100.0 ** (torch.arange(half).float() / half))
    angles = torch.arange(start, start + x.shape[-2]).float()[:, None] * frequencies
    cos, sin = angles.cos(), angles.sin()
    a, b = x[..., :half], x[..., half:]
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1)


class Block(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        width = config.width
        self.heads = config.heads
        self.before, self.between = nn.RMSNorm(width), nn.RMSNorm(width)
        self.qkv = nn.Linear(width, 3 * width, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.gate = nn.Linear(width, 4 * width, bias=False)
        self.down = nn.Linear(2 * width, width, bias=False)
        self.cache: tuple[Tensor, Tensor] | None = None

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        batch, length, width = x.shape
        q, k, v = self.qkv(self.before(x)).chunk(3, dim=-1)
        shape = (batch, length, self.heads, width // self.heads)
        q, k, v = (t.view(shape).transpose(1, 2) for t in (q, k, v))
        q, k = rotate(q, start), rotate(k, start)
        if self.cache is not None:
            k = torch.cat([self.cache[0], k], dim=2)
            v = torch.cat([self.cache[1], v], dim=2)
        if not self.training:
            self.cache = (k, v)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=length > 1)
        x = x + self.out(y.transpose(1, 2).reshape(batch, length, width))
        a, b = self.gate(self.between(x)).chunk(2, dim=-1)
        return x + self.down(F.silu(a) * b)


class Model(nn.Module):
    def __init__(self, config: Config) -> None:
        super().__init__()
        self.embed = nn.Embedding(config.vocabulary, config.width)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = nn.RMSNorm(config.width)
        self.head = nn.Linear(config.width, config.vocabulary, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens: Tensor, start: int = 0) -> Tensor:
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x, start)
        return self.head(self.norm(x))


@torch.inference_mode()
def generate(model: Model, prompt: Tensor, count: int) -> list[int]:
    model.eval()
    found: list[int] = []
    logits, place = model(prompt), prompt.size(1)
    for _ in range(count):
        values, indices = torch.topk(logits[:, -1] / 0.8, k=4, dim=-1)
        choice = torch.multinomial(F.softmax(values, dim=-1), num_samples=1)
        token = indices.gather(1, choice)
        found.append(int(token.item()))
        logits = model(token, start=place)
        place += 1
    return found


torch.manual_seed(1)
model = torch.compile(Model(Config()))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, fused=True)
tokens = torch.randint(0, 32, (2, 8))
with sdpa_kernel([SDPBackend.MATH]):
    for _ in range(2):
        logits = model(tokens[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(loss.item())
print(generate(model, tokens[:1], 3))
q = torch.randn(1, 2, 4, 8)
mask = create_block_mask(lambda b, h, i, j: i >= j, None, None, 4, 4)
print(flex_attention(q, q, q, block_mask=mask).shape)
