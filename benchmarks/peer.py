# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""PyTorch, measured in a process of its own beside Holdfast.

A process apart, because two OpenMP runtimes with live threads in one process
would disturb each other. It runs with the same number of threads as the daemon.
"""

import json
import os
import subprocess
import sys


def threads():
    """Threads on both sides: OMP_NUM_THREADS, else the processors we may use."""
    return int(os.environ.get("OMP_NUM_THREADS", len(os.sched_getaffinity(0))))


def python():
    """The interpreter whose PyTorch is the peer: $HOLDFAST_BENCH_PYTHON, of an
    environment with the newest one from PyPI, say; else this one."""
    return os.environ.get("HOLDFAST_BENCH_PYTHON", sys.executable)


def measure(script, *args):
    """Runs `script` (this folder) with `--peer`; returns its JSON dict, or {}
    when PyTorch cannot be imported."""
    env = dict(os.environ, OMP_NUM_THREADS=str(threads()))
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), script)
    out = subprocess.run(
        [python(), path, "--peer", *args],
        env=env,
        stdout=subprocess.PIPE,
        text=True,
    )
    if out.returncode != 0:
        print("PyTorch was not measured (see above)", file=sys.stderr)
        return {}
    return json.loads(out.stdout.splitlines()[-1])


def version():
    """PyTorch's version, or None."""
    out = subprocess.run(
        [python(), "-c", "import torch; print(torch.__version__)"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    return out.stdout.strip() or None
