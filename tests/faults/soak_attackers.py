# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""The hostile users of ./dev soak --sessions, a process each, until it is killed:

    soak_attackers.py KIND SOCKET HOST:PORT SEED

Those of benchmarks/accounts/hostile.py are the others: each takes one kind of memory.
"""

import contextlib
import math
import random
import sys
import time
import types

import holdfast as torch
from holdfast.errors import HoldfastError


def channel(local, remote, draw):
    """A client that does with its rings, doorbells and memory what it likes."""
    import test_hostile_channel as hostile

    daemon = types.SimpleNamespace(socket=local)
    while True:
        with contextlib.suppress(*hostile.OWN_LOSS, AssertionError):
            client = hostile.Hostile(daemon, draw.randrange(1 << 30))
            try:
                client.deeds(draw.randint(1, 25))
            finally:
                client.close()
        yield


def long_ops(local, remote, draw):
    """Each as long as it is let."""
    torch.connect(remote, run_ahead=math.inf)
    while True:
        with contextlib.suppress(HoldfastError):
            a = torch.rand(1500, 1500)
            kinds = [
                lambda: torch.ones(1).expand(2**37).sum(),
                lambda: torch.ones(1, 256).expand(2**24, 256).sum(0),
                lambda: torch.special.zeta(torch.rand(3_000_000) + 1.5, 2.5).sum(),
                lambda: a.t().cumsum(0).sum(),
                lambda: torch.linalg.eigvals(torch.rand(3000, 40, 40)).sum(),
            ]
            draw.choice(kinds)().item()
        yield


def flood(local, remote, draw):
    """Far ahead, with products that take milliseconds each."""
    torch.connect(remote, run_ahead=math.inf)
    a = torch.rand(256, 256)
    while True:
        with contextlib.suppress(HoldfastError):
            for _ in range(200):
                last = a @ a
            last.sum().item()
        yield


def memory(local, remote, draw):
    """All that it may have, again and again."""
    torch.connect(remote)
    while True:
        kept = []
        with contextlib.suppress(HoldfastError):
            while True:
                kept.append(torch.ones(draw.choice((1000, 100_000, 4_000_000))))
                kept[-1][0].item()
        yield


KINDS = {"channel": channel, "long-ops": long_ops, "flood": flood, "memory": memory}


def main():
    kind, local, remote, seed = sys.argv[1:]
    role = KINDS[kind](local, remote, random.Random(f"{seed} {kind}"))
    print("ready", flush=True)
    while True:
        begin = time.monotonic()
        with contextlib.suppress(HoldfastError, OSError, EOFError):
            next(role)
        # A processor is not what they are after.
        time.sleep(min(2, 4 * (time.monotonic() - begin)) + 0.01)


if __name__ == "__main__":
    main()
