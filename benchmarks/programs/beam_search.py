# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Sentences from a recurrent decoder by beam search: `python beam_search.py
SENTENCES`. Every hypothesis is an object of Python, scored by numbers it reads."""

import sys

import torch
from torch import nn

WORDS, WIDTH, LENGTH, BEAM = 60, 64, 20, 4
START, END = 0, 1


class Decoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(WORDS, WIDTH)
        self.cell = nn.GRUCell(WIDTH, WIDTH)
        self.output = nn.Linear(WIDTH, WORDS)

    def forward(self, word, state):
        state = self.cell(self.embedding(word), state)
        return torch.log_softmax(self.output(state), -1), state


def search(decoder, state):
    """The best sentence found, and its log probability."""
    beam, done = [(0.0, [START], state)], []
    for _ in range(LENGTH):
        found = []
        for score, words, state in beam:
            if words[-1] == END:
                done.append((score / len(words), words))
                continue
            scores, state = decoder(torch.tensor([words[-1]]), state)
            best, at = scores[0].topk(BEAM)
            for i in range(BEAM):
                found.append((score + best[i].item(), [*words, at[i].item()], state))
        beam = sorted(found, key=lambda one: -one[0])[:BEAM]
        if not beam:
            break
    done += [(score / len(words), words) for score, words, _ in beam]
    return max(done)


def main():
    torch.manual_seed(0)
    decoder = Decoder().eval()
    total = 0.0
    with torch.no_grad():
        for _ in range(int(sys.argv[1])):
            score, _ = search(decoder, torch.randn(1, WIDTH))
            total += score
    print(f"mean score {total / int(sys.argv[1]):.4f}")


if __name__ == "__main__":
    main()
