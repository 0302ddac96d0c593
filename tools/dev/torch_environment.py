# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""./dev setup --torch, ./dev build --torch: PyTorch from PyPI in an environment of its
own, and holdfast_torch built there."""

import contextlib
import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import environment
from workspace import ROOT, SYSTEM_PYTHON, VENV_PYTHON, Failure, python_env, run, say

FOLDER = ROOT / ".venv-torch"
PYTHON = FOLDER / "bin/python"
CLIENT = ROOT / "torch_client"
PACKAGES = Path(__file__).with_name("torch_packages.txt")
# A copy of the list, written when all that it names was installed.
INSTALLED = FOLDER / "holdfast_packages.txt"
# Asked for to learn whether the package index can be reached: the smallest.
PROBE = "iniconfig"


class Unreachable(Failure):
    """There is no PyTorch here, and none to be had."""


@contextlib.contextmanager
def alone():
    """One process at a time makes or builds: CI does so beside other work."""
    lock = ROOT / "build/torch_setup.lock"
    lock.parent.mkdir(exist_ok=True)
    with open(lock, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def is_complete():
    """Whether the environment has what the list names, at its versions."""
    return INSTALLED.exists() and INSTALLED.read_text() == PACKAGES.read_text()


def index_is_reachable():
    """Whether pip, as it is configured here, finds packages."""
    command = [VENV_PYTHON, "-m", "pip", "download", "-q", "--no-deps"]
    command += ["--no-cache-dir", "--retries", "0", "--timeout", "15"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with tempfile.TemporaryDirectory() as folder:
        try:
            status = subprocess.call(
                [*command, "-d", folder, PROBE], timeout=60, **quiet
            )
        except subprocess.TimeoutExpired:
            return False
    return status == 0


def setup():
    """Installs what is missing. Unreachable: it cannot be fetched."""
    environment.setup()
    with alone():
        if not is_complete():
            install()


def install():
    if not index_is_reachable():
        raise Unreachable(
            "PyPI cannot be reached, so there is no PyTorch for torch_client. Check "
            "`pip config list` and the network, then run ./dev setup --torch."
        )
    say("setup: PyTorch, and the CUDA libraries without which PyPI's does not load:")
    say("setup: 2.7 GB to download from PyPI, 4.4 GB in .venv-torch, some minutes")
    hint = "Look at pip's message above; remove .venv-torch to begin anew."
    if not PYTHON.exists():
        run(
            [SYSTEM_PYTHON, "-m", "venv", FOLDER],
            what="creating .venv-torch",
            hint=hint,
        )
    pip = [PYTHON, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    run(
        [*pip, "--no-cache-dir", "--no-deps", "-r", PACKAGES],
        what="installing PyTorch into .venv-torch",
        hint=hint,
    )
    shutil.copyfile(PACKAGES, INSTALLED)


def build():
    """Compiles holdfast_torch beside its sources, where git ignores it."""
    setup()
    with alone():
        run(
            [PYTHON, "setup.py", "-q", "build_ext", "--inplace"],
            what="building holdfast_torch",
            hint="The compiler's message is above.",
            cwd=CLIENT,
            env={**os.environ, "MAX_JOBS": str(os.cpu_count() or 1)},
        )


def env(config=None):
    """Environment in which `import holdfast_torch` finds the tree's own build."""
    found = python_env(config)
    found["PYTHONPATH"] = os.pathsep.join([str(CLIENT), found["PYTHONPATH"]])
    return found
