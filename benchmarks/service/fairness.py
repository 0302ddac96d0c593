# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""How the device is shared out among clients that want all of it."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

import clients
import daemon

WEIGHTS = (1, 2, 4)
WIDTH = 512
TURN_S = 6


def jain(shares):
    """Jain's index of fairness: 1 if all are equal, 1/n if one has everything.
    Source: R. Jain, D. Chiu and W. Hawe, DEC-TR-301, 1984."""
    return sum(shares) ** 2 / (len(shares) * sum(s * s for s in shares))


def quantile(values, q):
    return sorted(values)[min(len(values) - 1, int(q * len(values)))]


def equal_clients(r, address, seconds):
    """One of them alone and all of them, by turns: the machine's own ups and downs
    are larger than the difference, and fall on both alike."""
    crowd = [clients.Client("train", address, WIDTH) for _ in range(8)]
    for client in crowd:
        client.wait_until_ready()
    turns = max(1, round(seconds / TURN_S))
    alone, together = [], []
    for _ in range(turns):
        for rates, some in ((alone, crowd[:1]), (together, crowd)):
            results = clients.turn(some, seconds / turns)
            rates.append([result["steps_per_s"] for result in results])
    for client in crowd:
        client.end()
    shares = [sum(rates) for rates in zip(*together)]
    r.add("8 equal trainers: Jain's index", jain(shares), "", target=0.98, higher=True)
    r.add(
        "8 equal trainers: steps a second, against one alone, medians",
        statistics.median(map(sum, together)),
        "/s",
        statistics.median(map(sum, alone)),
        target_ratio=0.95,
        higher=True,
    )


def weighted_clients(r, seconds):
    """Three users of different weights, told apart by their tokens."""
    with tempfile.TemporaryDirectory() as folder:
        tokens, config = os.path.join(folder, "tokens"), os.path.join(folder, "config")
        env = [{"HOLDFAST_TOKEN": new_token(f"user{w}", tokens)} for w in WEIGHTS]
        with open(config, "w") as f:
            for w in WEIGHTS:
                f.write(f'user {{ name: "user{w}" limits {{ weight: {w} }} }}\n')
        with daemon.running(f"--token_file={tokens}", f"--config={config}") as d:
            started = [clients.Client("train", d["listen"], WIDTH, **e) for e in env]
            for client in started:
                client.wait_until_ready()
            for client in started:
                client.begin(seconds)
            time.sleep(0.2 * seconds)
            before = device_seconds(d["socket"])
            time.sleep(0.6 * seconds)
            after = device_seconds(d["socket"])
            for client in started:
                client.result()
                client.end()
    used = [after[f"user{w}"] - before[f"user{w}"] for w in WEIGHTS]
    share = [u / sum(used) * sum(WEIGHTS) / w for u, w in zip(used, WEIGHTS)]
    r.add(
        "weights 1:2:4: the device time farthest from its weight's",
        max(abs(s - 1) for s in share) * 100,
        "%",
        target=5,
    )


def device_seconds(socket):
    """Device time that each user's session has had."""
    command = [sys.executable, "-m", "holdfast", "status", "unix:" + socket, "--json"]
    out = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    sessions = json.loads(out.stdout)["sessions"]
    return {session["user"]: session["device_seconds"] for session in sessions}


def new_token(user, file):
    command = [sys.executable, "-m", "holdfast", "token", "create", user]
    out = subprocess.run(
        [*command, "--file", file], stdout=subprocess.PIPE, text=True, check=True
    )
    return out.stdout.strip()


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
