# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""A word-level GRU with tied weights, trained by hand-written SGD."""

import math
from collections import Counter

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

CORPUS = """the cat sat on the mat . the dog sat on the log . the cat saw the dog .
the dog saw the cat . a bird sat on the cat . a dog ran after the bird . the bird saw
the mat and the log . a cat ran after a dog and a bird ran after the cat ."""


class Dictionary(object):
    def __init__(self):
        self.word2idx, self.idx2word = {}, []

    def add_word(self, word):
        if word not in self.word2idx:
            self.idx2word.append(word)
            self.word2idx[word] = len(self.idx2word) - 1
        return self.word2idx[word]


class RNNModel(nn.Module):
    def __init__(self, rnn_type, ntoken, ninp, nhid, nlayers, tie_weights=False):
        super(RNNModel, self).__init__()
        self.ntoken = ntoken
        self.drop = nn.Dropout(0.0)
        self.encoder = nn.Embedding(ntoken, ninp)
        self.rnn = getattr(nn, rnn_type)(ninp, nhid, nlayers)
        self.decoder = nn.Linear(nhid, ntoken)
        if tie_weights:
            self.decoder.weight = self.encoder.weight
        self.nhid, self.nlayers = nhid, nlayers

    def forward(self, input, hidden):
        emb = self.drop(self.encoder(input))
        output, hidden = self.rnn(emb, hidden)
        decoded = self.decoder(self.drop(output)).view(-1, self.ntoken)
        return F.log_softmax(decoded, dim=1), hidden

    def init_hidden(self, bsz):
        weight = next(self.parameters())
        return weight.new_zeros(self.nlayers, bsz, self.nhid)


def batchify(data, bsz):
    nbatch = data.size(0) // bsz
    data = data.narrow(0, 0, nbatch * bsz)
    return data.view(bsz, -1).t().contiguous()


def repackage_hidden(h):
    if isinstance(h, torch.Tensor):
        return h.detach()
    return tuple(repackage_hidden(v) for v in h)


def get_batch(source, i, bptt):
    seq_len = min(bptt, len(source) - 1 - i)
    return source[i : i + seq_len], source[i + 1 : i + 1 + seq_len].view(-1)


dictionary = Dictionary()
ids = torch.LongTensor([dictionary.add_word(w) for w in CORPUS.split()])
print(Counter(CORPUS.split()).most_common(3), len(dictionary.idx2word), ids.size())
train_data = batchify(ids, 4)
model = RNNModel("GRU", len(dictionary.idx2word), 10, 10, 1, tie_weights=True)
rng = np.random.RandomState(11)
for p in model.parameters():
    p.data.uniform_(-0.1, 0.1)
    p.data.copy_(torch.as_tensor(rng.uniform(-0.3, 0.3, p.size())))
criterion = nn.NLLLoss()
lr, bptt, best = 2.0, 5, None
for epoch in range(1, 6):
    model.train()
    total_loss, hidden = 0.0, model.init_hidden(4)
    for batch, i in enumerate(range(0, train_data.size(0) - 1, bptt)):
        data, targets = get_batch(train_data, i, bptt)
        model.zero_grad()
        hidden = repackage_hidden(hidden)
        output, hidden = model(data, hidden)
        loss = criterion(output, targets)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
        for p in model.parameters():
            p.data.add_(p.grad, alpha=-lr)
        total_loss += len(data) * loss.item()
    average = total_loss / (len(train_data) - 1)
    print(
        "| epoch {:3d} | loss {:5.3f} | ppl {:8.3f}".format(
            epoch, average, math.exp(average)
        )
    )
    if best is not None and average > best:
        lr /= 4.0
    best = average
