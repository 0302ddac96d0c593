# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Where things are, how commands run, and how a failure is told."""

import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
VENV_PYTHON = ROOT / ".venv/bin/python"
SYSTEM_PYTHON = "/usr/bin/python3"
PACKAGE = ROOT / "python_client/holdfast"
EXTENSION = PACKAGE / "_C.abi3.so"
DIST = ROOT / "dist"
# Reports of a test run.
REPORTS = ROOT / "build/reports"

DAEMON_TARGET = "//server:holdfastd"
EXTENSION_TARGET = "//python_client:_C.abi3.so"
# The asynchronous device that tests run on (holdfastd --device=fake).
FAKE_DEVICE_TARGET = "//server:libholdfast_fake.so"
# Exists where a CUDA toolkit was found.
PLUGIN_TARGET = "//kernels/cuda:libholdfast_cuda.so"


class Failure(Exception):
    """A failure to tell the user about in one line, without a traceback.

    The message says what to do next.
    """


def say(message):
    """Progress, on stderr so that stdout stays for results."""
    print(f"dev: {message}", file=sys.stderr, flush=True)


def run(command, *, what, hint, env=None, check=True, cwd=ROOT):
    """Runs a command, showing its output; returns its status."""
    say(what)
    start = time.monotonic()
    command = [str(part) for part in command]
    try:
        status = subprocess.call(command, cwd=cwd, env=env)
    except FileNotFoundError:
        raise Failure(f"{command[0]} is not installed. Run ./dev setup.") from None
    if status and check:
        raise Failure(f"{what}: failed with status {status}. {hint}")
    say(f"{what}: done in {time.monotonic() - start:.1f} s")
    return status


def capture(command, *, hint=""):
    """The standard output of a command; its errors become a Failure."""
    command = [str(part) for part in command]
    try:
        result = subprocess.run(
            command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
    except FileNotFoundError:
        raise Failure(f"{command[0]} is not installed. Run ./dev setup.") from None
    if result.returncode:
        detail = result.stderr.strip() or result.stdout.strip()
        raise Failure(f"`{' '.join(command)}` failed: {detail}. {hint}")
    return result.stdout


def bazel_bin(config=None):
    """The output folder of a configuration (None, "asan" or "tsan")."""
    return ROOT / (f"bazel-{config}-bin" if config else "bazel-bin")


def daemon(config=None):
    return bazel_bin(config) / "server/holdfastd"


def plugin(config=None):
    return bazel_bin(config) / "kernels/cuda/libholdfast_cuda.so"


def fake_plugin(config=None):
    return bazel_bin(config) / "server/libholdfast_fake.so"


def python_env(config=None):
    """Environment in which `import holdfast` finds the tree's own build."""
    env = dict(os.environ)
    paths = [str(ROOT / "python_client")]
    if env.get("PYTHONPATH"):
        paths.append(env["PYTHONPATH"])
    env["PYTHONPATH"] = os.pathsep.join(paths)
    env["HOLDFAST_DAEMON"] = str(daemon(config))
    # In a bundle the daemon finds its device plugins in ../lib.
    env["HOLDFAST_PLUGIN_PATH"] = str(plugin(config).parent)
    return env


def exec_python(arguments):
    """Becomes the interpreter of .venv; does not return."""
    command = [str(VENV_PYTHON), *map(str, arguments)]
    try:
        os.execve(command[0], command, python_env())
    except OSError as error:
        raise Failure(f"{command[0]}: {error.strerror}. Run ./dev setup.") from None
