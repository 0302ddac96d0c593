# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Counting pairs of letters in a tensor, one at a time, then writing words from the
counts: `python bigram_counter.py WORDS`."""

import sys

import numpy
import torch

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def names(count):
    """Made of syllables, so that some pairs are frequent."""
    random = numpy.random.default_rng(0)
    syllables = [a + b for a in "bdklmnrst" for b in "aeio"]
    for length in random.integers(2, 5, count):
        yield "".join(random.choice(syllables, length))


def main():
    stoi = {letter: i + 1 for i, letter in enumerate(LETTERS)}
    stoi["."] = 0
    itos = {i: letter for letter, i in stoi.items()}
    words = list(names(int(sys.argv[1])))
    N = torch.zeros((27, 27), dtype=torch.int32)
    for word in words:
        letters = ["."] + list(word) + ["."]
        for first, second in zip(letters, letters[1:]):
            N[stoi[first], stoi[second]] += 1
    P = (N + 1).float()
    P /= P.sum(1, keepdim=True)

    generator = torch.Generator().manual_seed(2147483647)
    for _ in range(len(words) // 100):
        out, at = [], 0
        while True:
            row = P[at]
            at = torch.multinomial(
                row, num_samples=1, replacement=True, generator=generator
            ).item()
            out.append(itos[at])
            if at == 0 or len(out) == 40:
                break

    log_likelihood, n = 0.0, 0
    for word in words[: len(words) // 10]:
        letters = ["."] + list(word) + ["."]
        for first, second in zip(letters, letters[1:]):
            log_likelihood += torch.log(P[stoi[first], stoi[second]])
            n += 1
    print(f"{N.sum().item()} pairs, {-log_likelihood.item() / n:.4f} nats each")


if __name__ == "__main__":
    main()
