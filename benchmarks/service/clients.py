# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""The clients of the service benchmark, each a process: run as
`clients.py ROLE ADDRESS ...`, started by Client, which tells it when to begin and
reads one line of JSON of each turn."""

import json
import os
import subprocess
import sys
import time

import holdfast as torch

PERIOD_S = 0.05  # of the interactive client


class Client:
    """A process in one of the roles below, ready to begin."""

    def __init__(self, role, address, *args, **env):
        self.process = subprocess.Popen(
            [sys.executable, __file__, role, address, *map(str, args)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **env},
        )

    def wait_until_ready(self):
        if self.process.stdout.readline() != "ready\n":
            raise RuntimeError("a client of the benchmark failed; see above")
        return self

    def begin(self, seconds):
        self.process.stdin.write(f"{seconds}\n")
        self.process.stdin.flush()

    def result(self):
        return json.loads(self.process.stdout.readline())

    def end(self):
        self.process.stdin.close()
        self.process.wait(60)


def turn(clients, seconds):
    """The results of clients that are ready and run for so long, all at once."""
    for client in clients:
        client.begin(seconds)
    return [client.result() for client in clients]


def run(clients, seconds):
    """The results of a turn that is the only one."""
    for client in clients:
        client.wait_until_ready()
    results = turn(clients, seconds)
    for client in clients:
        client.end()
    return results


def turns():
    """Seconds to run for, each time that the benchmark says so."""
    print("ready", flush=True)
    for line in iter(sys.stdin.readline, ""):
        yield float(line)


def train(width):
    """Trains a small network as fast as it can, the loss read every 10 steps."""
    nn = torch.nn
    model = nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    x, y = torch.randn(256, 64), torch.randint(0, 10, (256,))

    def steps(count):
        for _ in range(count):
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(x), y)
            loss.backward()
            optimizer.step()
        return loss.item()

    steps(20)
    for seconds in turns():
        # Everybody is under way when the counting begins, and nobody has ended
        # when it ends.
        begin = time.monotonic() + 0.1 * seconds
        end = begin + 0.8 * seconds
        counted, stop = 0, end + 0.1 * seconds
        while (now := time.monotonic()) < stop:
            steps(10)
            if begin <= now < end:
                counted += 10
        yield {"steps_per_s": counted / (end - begin)}


def interact():
    """A small op and a read every 50 ms; the latency of each, in seconds."""
    x = torch.ones(8)
    (x + 1).tolist()
    for seconds in turns():
        latencies = []
        end = time.monotonic() + seconds
        while (start := time.monotonic()) < end:
            (x + 1).tolist()
            took = time.monotonic() - start
            latencies.append(took)
            time.sleep(max(0, PERIOD_S - took))
        yield {"latencies": latencies}


def main():
    role, address, *args = sys.argv[1:]
    with torch.connect(address):
        for result in {"train": train, "interact": interact}[role](*map(int, args)):
            print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
