# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""A character-level recurrent network whose steps are written out: `python
char_rnn.py ITERATIONS`. A line is read letter by letter, the loss is read after each
line, and every 100 lines one is written, letter by letter."""

import sys

import numpy
import torch
from torch import nn
from torch.nn import functional

HIDDEN, ALPHABET, LENGTH = 128, 28, 12


class RNN(nn.Module):
    def __init__(self):
        super().__init__()
        self.to_hidden = nn.Linear(ALPHABET + HIDDEN, HIDDEN)
        self.to_output = nn.Linear(ALPHABET + HIDDEN, ALPHABET)

    def forward(self, letter, hidden):
        both = torch.cat((letter, hidden), 1)
        output = functional.log_softmax(self.to_output(both), dim=1)
        return output, torch.tanh(self.to_hidden(both))


def one_hot(line):
    """[letters, 1, ALPHABET], filled letter by letter."""
    tensor = torch.zeros(len(line), 1, ALPHABET)
    for i, letter in enumerate(line):
        tensor[i][0][letter] = 1
    return tensor


def learn(model, line, rate):
    letters = one_hot(line[:-1])
    targets = torch.LongTensor(line[1:])
    targets.unsqueeze_(-1)
    hidden = torch.zeros(1, HIDDEN)
    model.zero_grad()
    loss = 0
    for i in range(letters.size(0)):
        output, hidden = model(letters[i], hidden)
        loss += functional.nll_loss(output, targets[i])
    loss.backward()
    for p in model.parameters():
        p.data.add_(p.grad.data, alpha=-rate)
    return loss.item() / letters.size(0)


def write(model, letter):
    line, hidden = [], torch.zeros(1, HIDDEN)
    with torch.no_grad():
        for _ in range(50):
            output, hidden = model(one_hot([letter])[0], hidden)
            _, best = output.topk(1)
            letter = best[0][0].item()
            line.append(letter)
    return line


def main():
    torch.manual_seed(0)
    random = numpy.random.default_rng(0)
    model, total = RNN(), 0.0
    for iteration in range(1, int(sys.argv[1]) + 1):
        # Each letter is 0, 3 or 6 after the one before it.
        line = random.integers(ALPHABET) + 3 * random.integers(0, 3, LENGTH).cumsum()
        total += learn(model, (line % ALPHABET).tolist(), 5e-3)
        if iteration % 100 == 0:
            print(f"{iteration}: loss {total / 100:.4f}, wrote {write(model, 0)[:8]}")
            total = 0.0


if __name__ == "__main__":
    main()
