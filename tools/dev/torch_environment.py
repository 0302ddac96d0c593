# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""./dev setup --torch, ./dev build --torch: PyTorch from PyPI in an environment of its
own, and holdfast_torch built there."""

import os
import shutil
import subprocess
from pathlib import Path

import environment
from workspace import ROOT, SYSTEM_PYTHON, Failure, python_env, run, say

FOLDER = ROOT / ".venv-torch"
PYTHON = FOLDER / "bin/python"
CLIENT = ROOT / "torch_client"
PACKAGES = Path(__file__).with_name("torch_packages.txt")
# A copy of the list, written when all that it names was installed.
INSTALLED = FOLDER / "holdfast_packages.txt"
# Asked for to learn whether the package index can be reached: the smallest.
PROBE = "iniconfig"
HINT = "Look at pip's message above; remove .venv-torch to begin anew."


def is_complete():
    """Whether the environment has what the list names, at its versions."""
    return INSTALLED.exists() and INSTALLED.read_text() == PACKAGES.read_text()


def index_is_reachable():
    """Whether pip, as it is configured here, finds packages."""
    if not make_interpreter():
        return False
    command = [PYTHON, "-m", "pip", "download", "-q", "--no-deps", "--no-cache-dir"]
    command += ["--retries", "0", "--timeout", "15", "--disable-pip-version-check"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    folder = ROOT / "build/torch_probe"
    try:
        command += ["-d", str(folder), PROBE]
        return subprocess.call(command, timeout=60, **quiet) == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def make_interpreter():
    """A virtual environment of Debian's Python without packages, if there is none."""
    if PYTHON.exists():
        return True
    return subprocess.call([SYSTEM_PYTHON, "-m", "venv", str(FOLDER)]) == 0


def setup():
    """Installs what is missing. Failure: the index cannot be reached."""
    environment.setup()
    if is_complete():
        return
    if not index_is_reachable():
        raise Failure(
            "PyPI cannot be reached, so there is no PyTorch for torch_client. Check "
            "`pip config list` and the network, then run ./dev setup --torch again."
        )
    say("setup: PyTorch 2.15 and the CUDA libraries that PyPI's build is linked")
    say("setup: against: 2.1 GB to download from PyPI, 4.0 GB in .venv-torch")
    pip = [PYTHON, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
    run(
        [*pip, "--no-cache-dir", "--no-deps", "-r", PACKAGES],
        what="installing PyTorch into .venv-torch",
        hint=HINT,
    )
    shutil.copyfile(PACKAGES, INSTALLED)


def build():
    """Compiles holdfast_torch beside its sources, where git ignores it."""
    setup()
    run(
        [PYTHON, "setup.py", "-q", "build_ext", "--inplace"],
        what="building torch_client against PyTorch 2.15",
        hint="The compiler's message is above.",
        cwd=CLIENT,
        env={**os.environ, "MAX_JOBS": str(os.cpu_count() or 1)},
    )


def env(config=None):
    """Environment in which `import holdfast_torch` finds the tree's own build."""
    found = python_env(config)
    found["PYTHONPATH"] = os.pathsep.join([str(CLIENT), found["PYTHONPATH"]])
    return found
