# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""A bundle (./dev bundle --cuda) in use on this machine: its client importable,
its daemon running on the GPU. For tests/gpu and benchmarks/gpu."""

import glob
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile


def use_client(bundle):
    """Puts the bundle's wheel into a folder of its own and on sys.path."""
    wheels = glob.glob(str(pathlib.Path(bundle) / "holdfast-*.whl"))
    if not wheels:
        raise SystemExit(f"{bundle} has no holdfast-*.whl: ./dev bundle --cuda")
    folder = tempfile.mkdtemp(prefix="holdfast-client-")
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--no-index", "--no-deps"]
        + ["--target", folder, wheels[0]],
        check=True,
    )
    sys.path.insert(0, folder)
    os.environ["HOLDFAST_DAEMON"] = str(pathlib.Path(bundle) / "bin/holdfastd")


def start_daemon(device):
    """The bundle's daemon, or a SystemExit with what it said."""
    from holdfast.daemon import Daemon

    with tempfile.TemporaryFile("w+") as log:
        try:
            return Daemon(f"--device={device}", log=log)
        except RuntimeError as error:
            log.seek(0)
            raise SystemExit(f"{error}\n{log.read()}") from None


def reason_to_skip(torch, device):
    """Why there is nothing to compare here, with the daemon's own words; None where
    PyTorch sees a GPU."""
    if torch.cuda.is_available():
        return None
    try:
        start_daemon(device).stop()
    except SystemExit as error:
        said = [line for line in str(error).splitlines() if "[device]" in line]
        return f"no GPU: {said[0] if said else error}"
    return "no GPU: PyTorch sees none"


def report(path, **results):
    """Writes what was found, and on what, where a path was given."""
    if path:
        text = json.dumps({"machine": machine(), **results}, indent=1)
        pathlib.Path(path).write_text(text)


def machine():
    """What the figures were taken on."""
    facts = {"host": platform.platform(), "python": platform.python_version()}
    try:
        import torch

        facts["torch"] = torch.__version__
        if torch.cuda.is_available():
            facts["gpu"] = torch.cuda.get_device_name()
            facts["cuda"] = torch.version.cuda
    except ImportError:
        facts["torch"] = None
    query = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
    try:
        facts["driver"] = subprocess.run(
            query, capture_output=True, text=True
        ).stdout.strip()
    except FileNotFoundError:
        facts["driver"] = None
    return facts
