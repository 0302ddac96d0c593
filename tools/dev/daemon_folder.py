# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""A folder with the daemon in bin/ and all that it loads in lib/."""

import shutil
import subprocess

import licences
from shared_libraries import GLIBC, carry, closure, needed, point_at, require_inside
from workspace import Failure, capture, daemon, plugin, say


def is_platform(name):
    return bool(GLIBC.match(name))


def stage(folder, cuda):
    """Fills the folder, with the CUDA device's library if wanted; returns the files
    that licences are due for."""
    binary = folder / "bin/holdfastd"
    binary.parent.mkdir(parents=True)
    shutil.copyfile(daemon(), binary)
    binary.chmod(0o755)
    capture(["strip", "--strip-debug", binary])
    libraries = closure(daemon(), is_platform)
    # An executable's libraries are its own, so they keep their names.
    names = carry(libraries, folder / "lib", private_names=False)
    point_at(binary, names, "$ORIGIN/../lib")
    if cuda:
        copy = folder / "lib" / plugin().name
        shutil.copyfile(plugin(), copy)
        copy.chmod(0o755)
        capture(["strip", "--strip-debug", copy])
        # CUDA's own libraries are the machine's, not the folder's.
        point_at(copy, names, "$ORIGIN:/usr/local/cuda/lib64")
    return [*libraries.values(), *licences.STATIC_ARCHIVES]


def verify(folder):
    """Fails unless the daemon needs only the folder and glibc, and starts."""
    inside = folder.resolve()
    binary = inside / "bin/holdfastd"
    require_inside(binary, inside, is_platform)
    for library in (inside / "lib").iterdir():
        for name in needed(library):
            if library.name == plugin().name or is_platform(name):
                continue
            if not (inside / "lib" / name).exists():
                raise Failure(f"{library.name} needs {name}, not in {folder.name}.")
    status = subprocess.call(
        [binary, "--help"],
        env={"PATH": "/nonexistent"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    if status:
        raise Failure(f"the packaged `holdfastd --help` ends with status {status}.")
    say(f"{folder.name}: nothing outside it and glibc is needed")
