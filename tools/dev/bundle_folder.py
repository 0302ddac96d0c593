# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""./dev bundle: a folder that runs on any newer x86-64 Linux with glibc 2.36."""

import shutil

import build
import daemon_folder
import licences
import wheel_file
from workspace import DIST, ROOT

BUNDLE = DIST / "holdfast-bundle"
README = """\
Holdfast, relocatable. Start the daemon from anywhere:

    bin/holdfastd --help

and install the client into any Python from 3.11 on:

    python3 -m pip install holdfast-*.whl

or both, so that programs find the daemon by themselves:

    python3 -m pip install holdfast*.whl

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
    wheels = wheel_file.make_wheel(), wheel_file.make_server_wheel()
    # Built aside and renamed, so that a failure leaves the last good one.
    fresh = DIST / ".holdfast-bundle"
    shutil.rmtree(fresh, ignore_errors=True)
    make_bundle(fresh, wheels, args.cuda)
    daemon_folder.verify(fresh)
    shutil.rmtree(BUNDLE, ignore_errors=True)
    fresh.rename(BUNDLE)
    print(BUNDLE.relative_to(ROOT))


def make_bundle(folder, wheels, cuda):
    origins = daemon_folder.stage(folder, cuda)
    for wheel in wheels:
        shutil.copyfile(wheel, folder / wheel.name)
    licences.collect(folder / "licences", origins)
    (folder / "README").write_text(README)
