# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""What a client of a daemon with a GPU waits for besides ops: uploads and downloads
beside PyTorch's copy of pinned memory, the first result of a fresh process, and the
GPU memory that another idle user takes. See `run`."""

import os
import statistics
import subprocess
import sys
import time

import numpy

BYTES = 1 << 28
USERS = 8


def _median(work, rounds=7):
    work()
    times = []
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def copies(holdfast, torch, device="cuda"):
    """Rows with bytes per second: from a NumPy array, back to one, and PyTorch's
    copies of pinned memory, which is as fast as the bus allows."""
    array = numpy.ones(BYTES // 4, numpy.float32)
    there = holdfast.ones(BYTES // 4, device=device)

    def upload():
        holdfast.tensor(array, device=device)
        holdfast.synchronize()

    rows = {"upload": upload, "download": lambda: there.numpy()}
    pinned = on_gpu = None
    if torch is not None:
        pinned = torch.ones(BYTES // 4).pin_memory()
        on_gpu = torch.ones(BYTES // 4, device=device)

    def peer_upload():
        on_gpu.copy_(pinned)
        torch.cuda.synchronize()

    def peer_download():
        pinned.copy_(on_gpu)
        torch.cuda.synchronize()

    peers = {"upload": peer_upload, "download": peer_download}
    for name, work in rows.items():
        row = {"program": f"{name} of 256 MiB", "seconds": _median(work)}
        row["gb_per_s"] = BYTES / row["seconds"] / 1e9
        if torch is not None:
            row["torch"] = _median(peers[name])
        yield row


_FIRST = "import {0}; print({0}.ones(3, device='{1}').sum().item())"


def _first_result(code, address):
    env = dict(os.environ, PYTHONPATH=os.pathsep.join(sys.path))
    if address:
        env["HOLDFAST_ADDRESS"] = address
    return _median(
        lambda: subprocess.run(
            [sys.executable, "-c", code], env=env, check=True, capture_output=True
        ),
        rounds=3,
    )


def start(address, device="cuda", peer=True):
    """From nothing to a first result in a new process: the daemon runs already."""
    row = {
        "program": "start of a notebook to its first result",
        "seconds": _first_result(_FIRST.format("holdfast", device), address),
    }
    if peer:
        row["torch"] = _first_result(_FIRST.format("torch", device), "")
    return row


def idle_users(holdfast, address):
    """Bytes of GPU memory per further session that has connected and waits."""
    free = holdfast.cuda.mem_get_info()[0]
    users = [holdfast.connect(address, default=False) for _ in range(USERS)]
    taken = (free - holdfast.cuda.mem_get_info()[0]) / USERS
    for user in users:
        user.close()
    return {"program": "GPU memory of a further idle user", "bytes": taken}
