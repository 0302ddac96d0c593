# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Licence texts of what a package carries."""

import shutil
from pathlib import Path

from shared_libraries import debian_packages
from workspace import ROOT, Failure

_ARCHIVES = "/usr/lib/x86_64-linux-gnu"
_COMPILER = "/usr/lib/gcc/x86_64-linux-gnu/12"
# Part of holdfastd itself, so that no library file names them.
STATIC_ARCHIVES = [
    f"{_ARCHIVES}/libabsl_base.a",
    f"{_ARCHIVES}/libaddress_sorting.a",
    f"{_ARCHIVES}/libcares.a",
    f"{_ARCHIVES}/libcrypto.a",
    f"{_ARCHIVES}/libgrpc++.a",
    f"{_ARCHIVES}/libprotobuf.a",
    f"{_ARCHIVES}/libre2.a",
    f"{_ARCHIVES}/libz.a",
    f"{_ARCHIVES}/openblas-openmp/libopenblas.a",
    f"{_COMPILER}/libgfortran.a",
    f"{_COMPILER}/libquadmath.a",
    "/usr/share/javascript/chart.js/chart.min.js",
]


def collect(folder, libraries):
    """Writes Holdfast's licence and one file per Debian package."""
    folder.mkdir(parents=True, exist_ok=True)
    own = ROOT / "LICENSE"
    if own.exists():
        shutil.copyfile(own, folder / "holdfast.txt")
    for package in debian_packages(libraries):
        text = Path("/usr/share/doc") / package / "copyright"
        if not text.exists():
            raise Failure(
                f"{text} is missing, so the licence of {package} cannot be carried "
                f"along. Reinstall it: apt-get install --reinstall {package}"
            )
        shutil.copyfile(text, folder / f"{package}.txt")
