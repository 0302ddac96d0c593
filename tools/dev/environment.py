# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""./dev setup: Debian packages and the virtual environment. PyTorch's own environment
is torch_environment's."""

import os
import shutil
import subprocess
from pathlib import Path

from workspace import ROOT, SYSTEM_PYTHON, VENV_PYTHON, Failure, run

PACKAGES = Path(__file__).with_name("packages.txt")


def configure(_name, parser):
    parser.add_argument(
        "--minimal",
        action="store_true",
        help="leave out packages that are only compared with (python3-torch)",
    )
    parser.add_argument(
        "--torch",
        action="store_true",
        help="also PyTorch from PyPI, with holdfast_torch, in .venv-torch",
    )
    parser.set_defaults(main=main)


def main(args):
    setup(args.minimal)
    if args.torch:
        import torch_environment

        torch_environment.build()


def setup(minimal=False):
    install_packages(minimal)
    create_venv()


def install_packages(minimal):
    missing = missing_packages(wanted_packages(minimal))
    if not missing:
        return
    apt = ["apt-get"] if os.geteuid() == 0 else ["sudo", "apt-get"]
    hint = (
        "Holdfast builds on Debian 12; check the network and the package sources, "
        "or install by hand: apt-get install " + " ".join(missing)
    )
    run([*apt, "update", "-qq"], what="reading the package lists", hint=hint)
    run(
        [
            *apt,
            "install",
            "-y",
            "-qq",
            "--no-install-recommends",
            "-o",
            "Dpkg::Progress-Fancy=0",
            *missing,
        ],
        what=f"installing {len(missing)} Debian packages: {' '.join(missing)}",
        hint=hint,
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
    )


def wanted_packages(minimal):
    wanted = []
    for line in PACKAGES.read_text().splitlines():
        if line == "# [comparison]" and minimal:
            break
        if line and not line.startswith("#"):
            wanted.append(line)
    return wanted


def missing_packages(wanted):
    if not shutil.which("dpkg-query"):
        raise Failure("needs Debian 12: dpkg is not here. Use a Debian 12 container.")
    listing = subprocess.run(
        ["dpkg-query", "-W", "-f", "${db:Status-Status} ${Package}\n", *wanted],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ).stdout
    installed = {
        line.split()[1]
        for line in listing.splitlines()
        if line.startswith("installed ")
    }
    return [package for package in wanted if package not in installed]


def create_venv():
    """A .venv of Debian's interpreter, which sees Debian's numpy and pytest."""
    if VENV_PYTHON.exists():
        return
    run(
        [SYSTEM_PYTHON, "-m", "venv", "--system-site-packages", ROOT / ".venv"],
        what="creating .venv",
        hint="Remove .venv and run ./dev setup again.",
    )
