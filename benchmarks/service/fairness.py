# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""How the device is shared out among clients that want all of it."""

import clients

WIDTH = 512


def jain(shares):
    """Jain's index of fairness: 1 if all are equal, 1/n if one has everything.
    Source: R. Jain, D. Chiu and W. Hawe, DEC-TR-301, 1984."""
    return sum(shares) ** 2 / (len(shares) * sum(s * s for s in shares))


def quantile(values, q):
    return sorted(values)[min(len(values) - 1, int(q * len(values)))]


def trainers(address, count, seconds):
    """Steps per second of each."""
    started = [clients.Client("train", address, WIDTH) for _ in range(count)]
    return [r["steps_per_s"] for r in clients.run(started, seconds)]


def equal_clients(r, address, seconds):
    alone = trainers(address, 1, seconds)[0]
    rates = trainers(address, 8, seconds)
    r.add("8 equal trainers: Jain's index", jain(rates), "", target=0.98, higher=True)
    r.add(
        "8 equal trainers: steps a second, against one alone",
        sum(rates),
        "/s",
        alone,
        target_ratio=0.95,
        higher=True,
    )


def interactive_client(r, address, seconds):
    idle = latencies(address, 0, seconds)
    busy = latencies(address, 4, seconds)
    for q in (50, 99):
        r.add(
            f"op and read beside 4 trainers, against an idle daemon: p{q}",
            quantile(busy, q / 100) * 1e3,
            "ms",
            quantile(idle, q / 100) * 1e3,
            target=20 if q == 99 else None,
        )


def latencies(address, beside, seconds):
    """Of an interactive client beside so many trainers, in seconds."""
    started = [clients.Client("train", address, WIDTH) for _ in range(beside)]
    one = clients.Client("interact", address)
    return clients.run([*started, one], seconds)[-1]["latencies"]
