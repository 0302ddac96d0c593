# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""./dev bundle: a folder that runs on any newer x86-64 Linux with glibc 2.36, and an
archive of it."""

import shutil
import tarfile

import build
import daemon_folder
import licences
import wheel_file
from workspace import DIST, ROOT, Failure, say

BUNDLE = DIST / "holdfast-bundle"
ARCHIVE = DIST / "holdfast-bundle.tar.xz"
LARGEST_ARCHIVE = 60e6  # bytes: what is copied to other machines
README = """\
Holdfast, relocatable. Start the daemon from anywhere:

    bin/holdfastd --help

install the client into any Python from 3.11 on, and tell it where the daemon is:

    python3 -m pip install holdfast_tensors-*.whl
    export PATH="$PWD/bin:$PATH"

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
    daemon_folder.verify(fresh)
    shutil.rmtree(BUNDLE, ignore_errors=True)
    fresh.rename(BUNDLE)
    make_archive()
    print(BUNDLE.relative_to(ROOT))
    print(ARCHIVE.relative_to(ROOT))


def make_bundle(folder, wheel, cuda):
    origins = daemon_folder.stage(folder, cuda)
    shutil.copyfile(wheel, folder / wheel.name)
    licences.collect(folder / "licences", origins)
    (folder / "README").write_text(README)


def make_archive():
    """Packs the bundle; Failure if it is larger than it may be."""
    with tarfile.open(ARCHIVE, "w:xz") as archive:
        archive.add(BUNDLE, BUNDLE.name)
    unpacked = sum(f.stat().st_size for f in BUNDLE.rglob("*") if f.is_file())
    packed = ARCHIVE.stat().st_size
    say(f"{ARCHIVE.name}: {packed / 1e6:.1f} MB, unpacked {unpacked / 1e6:.1f} MB")
    if packed > LARGEST_ARCHIVE:
        raise Failure(
            f"{ARCHIVE.name} takes {packed / 1e6:.1f} MB, more than "
            f"{LARGEST_ARCHIVE / 1e6:.0f}. Look for what has grown in {BUNDLE.name}."
        )
