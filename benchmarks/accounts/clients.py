# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Sessions of six kinds, in turns, until the input ends:
`clients.py SOCKET HOST:PORT FIRST COUNT`."""

import itertools
import random
import sys
import threading

import holdfast as torch


def trainer(_):
    model = torch.nn.Sequential(
        torch.nn.Linear(256, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10)
    )
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001)
    x, y = torch.randn(64, 256), torch.randint(0, 10, (64,))
    while True:
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
        yield


def notebook(draw):
    """Keeps results of all sizes, and loses some."""
    kept = []
    while True:
        kept.append(torch.ones(draw.choice((1000, 100_000, 4_000_000))))
        if len(kept) > 8:
            del kept[draw.randrange(len(kept))]
        yield


def views(draw):
    """Very many handles."""
    x, kept = torch.ones(64, 64), []
    while True:
        kept.extend(x[i] for i in range(64))
        if len(kept) > 20_000:
            del kept[: draw.randrange(len(kept))]
        yield


def adder(draw):
    """Adds up losses without detach, and lets the sum go now and then."""
    w = torch.ones(16, requires_grad=True)
    while True:
        total = torch.zeros(())
        for _ in range(draw.randrange(5, 50)):
            for _ in range(100):
                total = total + (w * w).sum()
            yield


def reader(_):
    """Arrays up and down."""
    import numpy

    source = numpy.ones((500_000,), "float32")
    while True:
        x = torch.from_numpy(source) * 2
        assert float(x.numpy()[-1]) == 2
        yield


def publisher(draw):
    """New versions of a name, the one before in use for a while."""
    name, version = f"weights {draw.random()}", None
    try:
        while True:
            torch.publish(name, torch.ones(draw.choice((1000, 500_000))))
            version = torch.lookup(name)
            assert version is not None
            yield
    finally:
        torch.unpublish(name)


def main():
    local, remote, first, count = sys.argv[1:]
    kinds = (trainer, notebook, views, adder, reader, publisher)
    turns = []
    for number in range(int(first), int(first) + int(count)):
        address = remote if number % 2 else "unix:" + local
        session = torch.connect(address, default=False)
        kind = kinds[number % len(kinds)]
        turns.append((session, kind(random.Random(number))))

    def take_turns(sessions):
        for session, turn in sessions:
            torch.set_default_session(session)
            next(turn)

    take_turns(turns)
    print("ready", flush=True)
    over = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), over.set())).start()
    for _ in itertools.takewhile(lambda _: not over.is_set(), itertools.count()):
        take_turns(turns)
    for session, turn in turns:
        torch.set_default_session(session)
        turn.close()


if __name__ == "__main__":
    main()
