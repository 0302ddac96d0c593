# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""tests/programs: what programs written for PyTorch print with Holdfast.

Each runs unmodified under both, from the same initial values, which it draws with
NumPy. Text must be equal, and numbers (losses, step by step) within the tolerance.
"""

import glob
import json
import math
import os
import re
import subprocess
import sys

import pytest

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs")
PROGRAMS = sorted(
    os.path.basename(path)[:-3] for path in glob.glob(os.path.join(FOLDER, "*.py"))
)
# |ours - theirs| <= absolute + relative * |theirs|.
RELATIVE, ABSOLUTE = 1e-4, 1e-5
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*(?:[eE][-+]?\d+)?|\bnan\b|\binf\b)")

# Runs programs under PyTorch in children of one process: importing it takes longer
# than they do. Its arguments are files; prints {file: what it printed} as JSON.
UNDER_PYTORCH = """
import json, os, runpy, sys, tempfile
import torch
torch.set_num_threads(1)
import torch.distributions, torch.distributed, torch.utils.data, torch.fft
printed = {}
for path in sys.argv[1:]:
    with tempfile.TemporaryFile("w+") as out:
        child = os.fork()
        if not child:
            os.dup2(out.fileno(), 1)
            sys.argv = [path]
            try:
                runpy.run_path(path, run_name="__main__")
                sys.stdout.flush()
            except BaseException:
                import traceback
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        status = os.waitpid(child, 0)[1]
        out.seek(0)
        printed[path] = out.read() if status == 0 else None
print(json.dumps(printed))
"""


@pytest.fixture(scope="module")
def expected():
    pytest.importorskip("torch", reason="PyTorch is not installed")
    paths = [os.path.join(FOLDER, name + ".py") for name in PROGRAMS]
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", UNDER_PYTORCH, *paths],
        env=dict(os.environ, OMP_NUM_THREADS="1"),
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    printed = json.loads(result.stdout)
    failed = [path for path, text in printed.items() if text is None]
    assert not failed, f"{failed} fail under PyTorch:\n{result.stderr}"
    return {os.path.basename(path)[:-3]: text for path, text in printed.items()}


def differences(ours, theirs):
    """Lines that differ in more than rounding, ready to be shown."""
    found = []
    for a, b in zip(ours.splitlines(), theirs.splitlines()):
        same_text = NUMBER.split(a) == NUMBER.split(b)
        numbers = zip(NUMBER.findall(a), NUMBER.findall(b))
        if not same_text or not all(close(float(x), float(y)) for x, y in numbers):
            found.append(f"holdfast: {a}\npytorch:  {b}")
    if len(ours.splitlines()) != len(theirs.splitlines()):
        found.append(f"{len(ours.splitlines())} lines, not {len(theirs.splitlines())}")
    return "\n".join(found)


def close(ours, theirs):
    if not math.isfinite(theirs):
        return ours == theirs or (math.isnan(ours) and math.isnan(theirs))
    return abs(ours - theirs) <= ABSOLUTE + RELATIVE * abs(theirs)


@pytest.mark.parametrize("name", PROGRAMS)
def test_program(expected, daemon, transport, name):
    path = os.path.join(FOLDER, name + ".py")
    address = daemon.address(transport)
    result = subprocess.run(
        [sys.executable, "-m", "holdfast", "run", "--address", address, path],
        env=dict(os.environ, OMP_NUM_THREADS="1"),
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    assert not differences(result.stdout, expected[name])
    assert len(expected[name].splitlines()) >= 3  # it printed something to compare


def test_there_are_enough():
    assert len(PROGRAMS) >= 25


def test_the_comparison_sees_differences():
    same = "loss 1.00001 at 3\nnan inf"
    assert not differences(same, "loss 1.00002 at 3\nnan inf")
    assert differences("loss 1.001", "loss 1.002")
    assert differences("loss 1.0", "cost 1.0")
    assert differences("loss 1.0\n", "loss 1.0\nloss 2.0")
    assert differences("loss nan", "loss 1.0")
