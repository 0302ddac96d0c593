# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Short kernels beside busy processes, against PyTorch under the same conditions.

  matmul, N clients   100 x 100 floats, submitted and executed: products a second
  mlp shm / grpc      training steps a second of 64 x 256 - 256 - 10, with Adam

Each once on a machine that does nothing else and once beside --busy processes that
compute all the time. What else the machine does is in the figures of both sides, so
their ratio is what counts.
"""

import contextlib
import json
import os
import statistics
import subprocess
import sys
import time

import daemon
import peer
import report

BUSY = "while True: pass"


def matmul(torch, seconds):
    a = torch.ones(100, 100)
    count = 0
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for _ in range(100):
            b = a @ a  # noqa: F841
        synchronize(torch)
        count += 100
    return count


def mlp(torch, seconds):
    nn = torch.nn
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10))
    optimizer = torch.optim.Adam(model.parameters())
    x, y = torch.randn(64, 64), torch.arange(64) % 10
    loss_of = nn.CrossEntropyLoss()
    count = 0
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for _ in range(5):
            optimizer.zero_grad()
            loss = loss_of(model(x), y)
            loss.backward()
            optimizer.step()
        loss.item()
        count += 5
    return count


PROGRAMS = {"matmul": matmul, "mlp": mlp}


def synchronize(torch):
    if torch.__name__ == "holdfast":
        torch.synchronize()


def client(arguments):
    """Prints calls a second, warm, when a line says that all are ready."""
    which, address, seconds = arguments
    if address:
        import holdfast as torch

        torch.connect(address)
    else:
        import torch
    run = PROGRAMS[which]
    run(torch, 0.3)
    print("ready", flush=True)
    sys.stdin.readline()
    start = time.perf_counter()
    count = run(torch, float(seconds))
    print(json.dumps(count / (time.perf_counter() - start)))


def rate(which, address, clients, seconds):
    """Calls a second of all clients together, PyTorch's if there is no address."""
    python = sys.executable if address else peer.python()
    env = dict(os.environ, OMP_NUM_THREADS=str(peer.threads()))
    processes = [
        subprocess.Popen(
            [python, __file__, "--client", which, address, str(seconds)],
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(clients)
    ]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    return sum(json.loads(process.communicate()[0]) for process in processes)


@contextlib.contextmanager
def busy(count):
    processes = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(count)]
    try:
        yield
    finally:
        for process in processes:
            process.kill()
            process.wait()


def main():
    if sys.argv[1:2] == ["--client"]:
        return client(sys.argv[2:])
    parser = report.parser(__doc__)
    parser.add_argument("--busy", type=int, default=1, help="processes beside it")
    args = parser.parse_args()
    seconds, rounds = (0.5, 1) if args.quick else (1.0, 5)
    result = report.Report("Short kernels beside busy processes")
    with daemon.running() as running:
        shm, grpc = "unix:" + running["socket"], running["listen"]
        rows = [
            ("matmul, 1 client", "matmul", shm, 1),
            ("matmul, 4 clients", "matmul", shm, 4),
            ("mlp shm", "mlp", shm, 1),
            ("mlp grpc", "mlp", grpc, 1),
        ]
        for beside in (0, args.busy):
            with busy(beside):
                for name, which, address, clients in rows:
                    ours, theirs = [], []
                    for _ in range(rounds):
                        ours.append(rate(which, address, clients, seconds))
                        theirs.append(rate(which, "", clients, seconds))
                    result.add(
                        f"{name}, {'beside busy processes' if beside else 'quiet'}",
                        statistics.median(ours),
                        "/s",
                        peer=statistics.median(theirs),
                        higher=True,
                        **({"target_ratio": 0.9} if beside else {}),
                    )
    return result.finish(args)


if __name__ == "__main__":
    sys.exit(main())
