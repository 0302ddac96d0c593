# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""GNMT (Wu et al., "Google's neural machine translation system", 2016) in its
second version: LSTM encoder, LSTM decoder, normalised additive attention
(Bahdanau et al., 2014) of the decoder's first layer, residual connections."""

import math

import torch
from torch import nn
from torch.nn import functional

VOCABULARY, HIDDEN, LAYERS = 8000, 256, 4


class Attention(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.query = nn.Linear(size, size, bias=False)
        self.key = nn.Linear(size, size, bias=False)
        self.score = nn.Parameter(torch.empty(size).uniform_(-0.1, 0.1))
        self.scale = nn.Parameter(torch.tensor(1 / math.sqrt(size)))
        self.bias = nn.Parameter(torch.zeros(size))

    def forward(self, query, memory):
        """[N, T, H] and [N, S, H] -> [N, T, H]"""
        sums = self.query(query).unsqueeze(2) + self.key(memory).unsqueeze(1)
        score = self.score / self.score.norm() * self.scale
        weights = torch.tanh(sums + self.bias).matmul(score).softmax(-1)
        return torch.bmm(weights, memory)


class Encoder(nn.Module):
    def __init__(self, dropout):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, HIDDEN)
        self.both = nn.LSTM(HIDDEN, HIDDEN, batch_first=True, bidirectional=True)
        self.layers = nn.ModuleList(
            nn.LSTM((2 if i == 0 else 1) * HIDDEN, HIDDEN, batch_first=True)
            for i in range(LAYERS - 1)
        )
        self.dropout = nn.Dropout(dropout)

    def forward(self, words):
        x = self.both(self.dropout(self.embedding(words)))[0]
        for i, layer in enumerate(self.layers):
            y = layer(self.dropout(x))[0]
            x = y if i == 0 else x + y
        return x


class Decoder(nn.Module):
    def __init__(self, dropout):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, HIDDEN)
        self.first = nn.LSTM(HIDDEN, HIDDEN, batch_first=True)
        self.attention = Attention(HIDDEN)
        self.layers = nn.ModuleList(
            nn.LSTM(2 * HIDDEN, HIDDEN, batch_first=True) for _ in range(LAYERS - 1)
        )
        self.out = nn.Linear(HIDDEN, VOCABULARY)
        self.dropout = nn.Dropout(dropout)

    def forward(self, words, memory):
        x = self.first(self.dropout(self.embedding(words)))[0]
        context = self.attention(x, memory)
        for i, layer in enumerate(self.layers):
            y = layer(torch.cat([self.dropout(x), context], dim=2))[0]
            x = y if i == 0 else x + y
        return self.out(x)


class GNMT(nn.Module):
    def __init__(self, dropout=0.2):
        super().__init__()
        self.encoder = Encoder(dropout)
        self.decoder = Decoder(dropout)

    def forward(self, source, target):
        return self.decoder(target, self.encoder(source))


class Translation:
    build = GNMT
    batch = 16
    length = 24

    def data(self, random):
        """NumPy: words of both languages, [batch, length] and one more."""
        shape = (self.batch, self.length)
        source = random.integers(0, VOCABULARY, shape)
        return source, random.integers(0, VOCABULARY, (shape[0], shape[1] + 1))

    def optimizer(self, parameters):
        return torch.optim.Adam(parameters, lr=0.001)

    def loss(self, model, source, target):
        logits = model(source, target[:, :-1])
        return functional.cross_entropy(
            logits.reshape(-1, VOCABULARY), target[:, 1:].reshape(-1)
        )


TASK = Translation()
