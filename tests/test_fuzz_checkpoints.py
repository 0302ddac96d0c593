# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Damaged checkpoints, zip and safetensors: FormatError or a whole value, soon, and
in little memory.

HOLDFAST_FUZZ_CHECKPOINTS sets how many of each kind are read (1,000 by default), and
HOLDFAST_FUZZ_SEED where they begin.
"""

import io
import os
import random
import resource
import struct
import time
import warnings
import zipfile

import pytest

import holdfast
from holdfast import nn, safetensors
from holdfast.serialization import FormatError

RUNS = int(os.environ.get("HOLDFAST_FUZZ_CHECKPOINTS", 1000))
SEED = int(os.environ.get("HOLDFAST_FUZZ_SEED", 1))
SLOWEST = 10  # seconds, on a machine that does other things as well
MOST_MEMORY = 400 << 10  # KiB more than before
# Sizes, counts and offsets that somebody forgot to check.
EDGES = [0, 1, 127, 128, 255, 1 << 15, 1 << 31, (1 << 32) - 1, 1 << 62, (1 << 64) - 1]


def value():
    model = nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2))
    x = holdfast.arange(12.0)
    return {
        "model": model,
        "state": model.state_dict(),
        "views": [x, x[2:8], x.reshape(3, 4).t()],
        "types": [holdfast.ones(2, dtype=d) for d in (holdfast.int64, holdfast.bool)],
        "rest": {"lr": 0.1, "epoch": 3, "name": "a", "none": None, "deep": [[(1,)]]},
    }


class Damage:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def __call__(self, good):
        """A copy with one to four kinds of damage."""
        bad = bytearray(good)
        for _ in range(self.random.randint(1, 4)):
            if bad:
                self.random.choice((self.byte, self.number, self.cut, self.repeat))(bad)
        return bytes(bad)

    def byte(self, bad):
        bad[self.random.randrange(len(bad))] = self.random.randrange(256)

    def number(self, bad):
        width = self.random.choice((2, 4, 8))
        at = self.random.randrange(len(bad))
        bad[at : at + width] = (self.random.choice(EDGES) % (1 << 8 * width)).to_bytes(
            width, "little"
        )

    def cut(self, bad):
        at = self.random.randrange(len(bad))
        del bad[at : at + self.random.choice((1, 8, len(bad)))]

    def repeat(self, bad):
        at, to = self.random.randrange(len(bad)), self.random.randrange(len(bad))
        bad[to:to] = bad[at : at + self.random.randint(1, 64)]


def zipped(entries):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as made:
        for name, data in entries.items():
            made.writestr(name, data)
    return buffer.getvalue()


def saved():
    buffer = io.BytesIO()
    holdfast.save(value(), buffer)
    return buffer.getvalue()


def entries_of(content):
    with zipfile.ZipFile(io.BytesIO(content)) as made:
        return {name: made.read(name) for name in made.namelist()}


def damaged_archives(damage):
    """Any byte of the file."""
    good = saved()
    while True:
        yield damage(good)


def damaged_entries(damage):
    """Entries whose checksums are right all the same."""
    good = entries_of(saved())
    names = list(good)
    while True:
        bad = dict(good)
        # Mostly the pickle: that is where there is most to get wrong.
        pickled = next(name for name in names if name.endswith("data.pkl"))
        name = pickled if damage.random.random() < 0.8 else damage.random.choice(names)
        bad[name] = damage(bad[name])
        if damage.random.random() < 0.1:
            del bad[damage.random.choice(names)]
        yield zipped(bad)


def damaged_safetensors(damage):
    """Any byte, or the header alone with its length made right."""
    good = safetensors.save(
        {"a": holdfast.ones(2, 3), "b": holdfast.arange(4), "c": holdfast.zeros(0)},
        metadata={"format": "pt"},
    )
    (length,) = struct.unpack("<Q", good[:8])
    while True:
        if damage.random.random() < 0.3:
            yield damage(good)
        else:
            header = damage(good[8 : 8 + length])
            yield struct.pack("<Q", len(header)) + header + good[8 + length :]


def touch(found):
    """Reads what was loaded: tensors must lie in memory that is theirs."""
    if isinstance(found, holdfast.Tensor):
        if found.numel() < 1 << 20:
            found.numpy()
    elif isinstance(found, nn.Module):
        touch(found.__dict__.get("_parameters"))
    elif isinstance(found, dict):
        for item in list(found.values()):
            touch(item)
    elif isinstance(found, (list, tuple)):
        for item in found:
            touch(item)


KINDS = {
    "archive": (damaged_archives, lambda data: holdfast.load(io.BytesIO(data))),
    "entries": (damaged_entries, lambda data: holdfast.load(io.BytesIO(data))),
    "safetensors": (damaged_safetensors, safetensors.load),
}


@pytest.mark.timeout(0)
@pytest.mark.parametrize("kind", KINDS)
def test_damage_is_told_or_harmless(torch, kind):
    make, load = KINDS[kind]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    whole = refused = 0
    slowest = 0.0
    for run, content in zip(range(RUNS), make(Damage(SEED))):
        start = time.perf_counter()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                touch(load(content))
            whole += 1
        except (FormatError, NotImplementedError):
            refused += 1
        except Exception as error:
            raise AssertionError(
                f"HOLDFAST_FUZZ_SEED={SEED}, input {run}: {content!r}"
            ) from error
        slowest = max(slowest, time.perf_counter() - start)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    print(f"{kind}: {refused} refused, {whole} read, slowest {slowest:.3f} s")
    print(f"{kind}: {grown} KiB more at most")
    assert refused > RUNS / 10
    assert slowest < SLOWEST and grown < MOST_MEMORY
    assert torch.ones(3).sum().item() == 3  # the session goes on
