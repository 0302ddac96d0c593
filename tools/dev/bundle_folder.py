# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""./dev bundle: a folder that runs on any newer x86-64 Linux with glibc 2.36."""

import shutil
import subprocess

import build
import licences
import wheel_file
from shared_libraries import GLIBC, carry, closure, needed, point_at, require_inside
from workspace import DIST, ROOT, Failure, capture, daemon, plugin, say

BUNDLE = DIST / "holdfast-bundle"
README = """\
Holdfast, relocatable. Start the daemon from anywhere:

    bin/holdfastd --help

and install the client into any Python from 3.11 on:

    python3 -m pip install holdfast-*.whl

The libraries that the daemon carries are in lib/, their licences in licences/.
The folder may be moved as a whole.
"""


def configure(_name, parser):
    parser.add_argument(
        "--cuda", action="store_true", help="with the CUDA device's library"
    )
    parser.set_defaults(main=main)


def main(args):
    build.build(cuda=args.cuda)
    wheel = wheel_file.make_wheel()
    # Built aside and renamed, so that a failure leaves the last good one.
    fresh = DIST / ".holdfast-bundle"
    shutil.rmtree(fresh, ignore_errors=True)
    make_bundle(fresh, wheel, args.cuda)
    verify(fresh)
    shutil.rmtree(BUNDLE, ignore_errors=True)
    fresh.rename(BUNDLE)
    print(BUNDLE.relative_to(ROOT))


def is_platform(name):
    return bool(GLIBC.match(name))


def make_bundle(folder, wheel, cuda):
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
        # CUDA's own libraries are the machine's, not the bundle's.
        point_at(copy, names, "$ORIGIN:/usr/local/cuda/lib64")
    shutil.copyfile(wheel, folder / wheel.name)
    origins = [*libraries.values(), *licences.STATIC_ARCHIVES]
    licences.collect(folder / "licences", origins)
    (folder / "README").write_text(README)
    size = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    say(f"bundle: {size / 2**20:.0f} MB, {len(libraries)} libraries")


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
                raise Failure(f"{library.name} needs {name}, not in the bundle.")
    status = subprocess.call(
        [binary, "--help"],
        env={"PATH": "/nonexistent"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    if status:
        raise Failure(f"the bundled `holdfastd --help` ends with status {status}.")
    say("bundle: nothing outside it and glibc is needed")
