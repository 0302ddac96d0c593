# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""An encoder and a decoder with additive attention that learn to reverse words."""

import random

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch import optim

SOS, EOS, PAD = 0, 1, 2
random.seed(0)
device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")


class EncoderRNN(nn.Module):
    def __init__(self, input_size, hidden_size):
        super().__init__()
        self.embedding = nn.Embedding(input_size, hidden_size, padding_idx=PAD)
        self.gru = nn.GRU(
            hidden_size, hidden_size, batch_first=True, bidirectional=True
        )
        self.join = nn.Linear(2 * hidden_size, hidden_size)

    def forward(self, input):
        output, hidden = self.gru(self.embedding(input))
        output = torch.tanh(self.join(output))
        return output, torch.tanh(self.join(torch.cat([hidden[0], hidden[1]], dim=-1)))


class BahdanauAttention(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        self.Wa = nn.Linear(hidden_size, hidden_size)
        self.Ua = nn.Linear(hidden_size, hidden_size)
        self.Va = nn.Linear(hidden_size, 1)

    def forward(self, query, keys, mask):
        scores = self.Va(torch.tanh(self.Wa(query) + self.Ua(keys)))
        scores = scores.squeeze(2).unsqueeze(1)
        scores = scores.masked_fill(mask[:, None], float("-inf"))
        weights = F.softmax(scores, dim=-1)
        return torch.bmm(weights, keys), weights


class AttnDecoderRNN(nn.Module):
    def __init__(self, hidden_size, output_size):
        super().__init__()
        self.embedding = nn.Embedding(output_size, hidden_size)
        self.attention = BahdanauAttention(hidden_size)
        self.cell = nn.GRUCell(2 * hidden_size, hidden_size)
        self.out = nn.Linear(hidden_size, output_size)

    def forward(self, keys, hidden, mask, target=None, teacher=1.0):
        token = torch.full((keys.size(0),), SOS, dtype=torch.long, device=keys.device)
        outputs, attentions = [], []
        for i in range(keys.size(1) + 1):
            context, weights = self.attention(hidden.unsqueeze(1), keys, mask)
            x = torch.cat((self.embedding(token), context.squeeze(1)), dim=1)
            hidden = self.cell(x, hidden)
            output = self.out(hidden)
            outputs.append(output)
            attentions.append(weights)
            if target is not None and random.random() < teacher:
                token = target[:, i]
            else:
                token = output.topk(1)[1].squeeze(-1).detach()
        outputs = F.log_softmax(torch.stack(outputs, dim=1), dim=-1)
        return outputs, torch.cat(attentions, dim=1)


rng = np.random.default_rng(4)
source = np.full((20, 6), PAD)
target = np.full((20, 7), PAD)
for row in range(20):
    n = rng.integers(3, 7)
    word = rng.integers(3, 11, n)
    source[row, :n] = word
    target[row, : n + 1] = [*word[::-1], EOS]
source, target = (torch.from_numpy(a).to(device) for a in (source, target))
encoder = EncoderRNN(11, 12).to(device)
decoder = AttnDecoderRNN(12, 11).to(device)
for p in [*encoder.parameters(), *decoder.parameters()]:
    torch.nn.init.constant_(p, 0.0)
    p.data += torch.tensor(rng.normal(0, 0.25, p.shape), dtype=torch.float32)
encoder_optimizer = optim.Adam(encoder.parameters(), lr=0.01)
decoder_optimizer = optim.Adam(decoder.parameters(), lr=0.01)
criterion = nn.NLLLoss(ignore_index=PAD)
for epoch in range(4):
    for rows in range(0, 20, 10):
        encoder_optimizer.zero_grad()
        decoder_optimizer.zero_grad()
        keys, hidden = encoder(source[rows : rows + 10])
        mask = source[rows : rows + 10] == PAD
        gold = target[rows : rows + 10]
        outputs, attention = decoder(keys, hidden, mask, gold, teacher=0.7)
        loss = criterion(outputs.view(-1, outputs.size(-1)), gold.reshape(-1))
        loss.backward()
        encoder_optimizer.step()
        decoder_optimizer.step()
    print("%d (%d%%) %.4f" % (epoch, (epoch + 1) / 4 * 100, loss.item()))
with torch.no_grad():
    keys, hidden = encoder(source)
    outputs, attention = decoder(keys, hidden, source == PAD)
print("attention sums to", attention.sum(-1).mean().item(), tuple(attention.shape))
print("padding gets", attention[:, 0][source == PAD].abs().max().item())
