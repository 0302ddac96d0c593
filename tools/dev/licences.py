# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Licence texts of what a package carries."""

import shutil
from pathlib import Path

from shared_libraries import debian_packages
from workspace import ROOT, Failure

# Linked into holdfastd from archives, so that no library file names them.
STATIC_ARCHIVES = [
    f"/usr/lib/x86_64-linux-gnu/{name}"
    for name in (
        "libabsl_base.a",
        "libaddress_sorting.a",
        "libcares.a",
        "libcrypto.a",
        "libgrpc++.a",
        "libprotobuf.a",
        "libre2.a",
        "libz.a",
        "openblas-openmp/libopenblas.a",
    )
] + [
    f"/usr/lib/gcc/x86_64-linux-gnu/12/{name}"
    for name in ("libgfortran.a", "libquadmath.a")
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
