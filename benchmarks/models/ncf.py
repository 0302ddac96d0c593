# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""NeuMF, the model of neural collaborative filtering (He et al., 2017), at the
size of MovieLens-20M."""

import torch
from torch import nn
from torch.nn import functional

USERS, ITEMS = 138493, 26744


class NeuMF(nn.Module):
    """The product of two embeddings beside an MLP over two others."""

    def __init__(self, factors=64, layers=(256, 256, 128, 64)):
        super().__init__()
        self.user_product = nn.Embedding(USERS, factors)
        self.item_product = nn.Embedding(ITEMS, factors)
        self.user_mlp = nn.Embedding(USERS, layers[0] // 2)
        self.item_mlp = nn.Embedding(ITEMS, layers[0] // 2)
        self.mlp = nn.ModuleList(nn.Linear(a, b) for a, b in zip(layers, layers[1:]))
        self.out = nn.Linear(factors + layers[-1], 1)
        for embedding in self.children():
            if isinstance(embedding, nn.Embedding):
                nn.init.normal_(embedding.weight, 0, 0.01)

    def forward(self, user, item):
        product = self.user_product(user) * self.item_product(item)
        x = torch.cat([self.user_mlp(user), self.item_mlp(item)], dim=1)
        for layer in self.mlp:
            x = functional.relu(layer(x))
        return self.out(torch.cat([product, x], dim=1)).squeeze(1)


class Ratings:
    build = NeuMF
    batch = 4096

    def data(self, random):
        """NumPy: users, items and whether they met, [batch] each."""
        n = self.batch
        met = random.integers(0, 2, n).astype("float32")
        return random.integers(0, USERS, n), random.integers(0, ITEMS, n), met

    def optimizer(self, parameters):
        return torch.optim.Adam(parameters, lr=0.002)

    def loss(self, model, user, item, met):
        return functional.binary_cross_entropy_with_logits(model(user, item), met)


TASK = Ratings()
