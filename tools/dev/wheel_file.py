# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""./dev wheel: the Python package, its extension and their libraries."""

import base64
import hashlib
import re
import shutil
import zipfile

import build
import licences
from shared_libraries import GLIBC, carry, closure, point_at, require_inside
from workspace import DIST, EXTENSION, PACKAGE, ROOT, VENV_PYTHON, capture, say

# The manylinux_2_36 platform: glibc 2.36 and the C++ runtime of its time.
TAG = "cp311-abi3-manylinux_2_36_x86_64"
RUNTIME = re.compile(r"lib(stdc\+\+|gcc_s)\.so")
METADATA = """\
Metadata-Version: 2.1
Name: holdfast
Version: {version}
Summary: Tensors that outlive your notebook: a PyTorch-like client of holdfastd
License: Apache-2.0
Requires-Python: >=3.11
Requires-Dist: numpy
"""
WHEEL = f"""\
Wheel-Version: 1.0
Generator: holdfast-dev
Root-Is-Purelib: false
Tag: {TAG}
"""
ENTRY_POINTS = """\
[console_scripts]
holdfast = holdfast.cli:main
"""


def configure(_name, parser):
    parser.set_defaults(main=main)


def main(_args):
    build.build()
    print(make_wheel().relative_to(ROOT))


def is_platform(name):
    return GLIBC.match(name) or RUNTIME.match(name)


def version():
    """`__version__` as the package itself states it."""
    for name in ("version.py", "_version.py", "__init__.py"):
        source = PACKAGE / name
        if source.exists():
            match = re.search(
                r'^__version__ = "([^"]+)"', source.read_text(), re.MULTILINE
            )
            if match:
                return match.group(1)
    return "0.1.0"


def make_wheel():
    """Builds the wheel from what `build` left; returns its path."""
    tree = ROOT / "build/wheel"
    shutil.rmtree(tree, ignore_errors=True)
    stage_package(tree / "holdfast")
    libraries = stage_extension(tree)
    info = tree / f"holdfast-{version()}.dist-info"
    licences.collect(info / "licenses", libraries)
    (info / "METADATA").write_text(METADATA.format(version=version()))
    (info / "WHEEL").write_text(WHEEL)
    (info / "entry_points.txt").write_text(ENTRY_POINTS)

    DIST.mkdir(exist_ok=True)
    wheel = DIST / f"holdfast-{version()}-{TAG}.whl"
    write_archive(tree, info, wheel)
    say(f"wheel: {wheel.stat().st_size / 2**20:.1f} MB, {len(libraries)} libraries")
    return wheel


def stage_package(folder):
    """The files of the package that git knows, so that no scratch file is."""
    listing = capture(
        ["git", "ls-files", "-co", "--exclude-standard", PACKAGE.relative_to(ROOT)]
    )
    for name in listing.splitlines():
        target = folder / (ROOT / name).relative_to(PACKAGE)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, target)
    # Type stubs, which are made and not kept.
    capture([VENV_PYTHON, ROOT / "python_client/generate_stubs.py", folder])


def stage_extension(tree):
    """The extension with its libraries beside it; returns their origins."""
    extension = tree / "holdfast" / EXTENSION.name
    extension.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(EXTENSION, extension)
    extension.chmod(0o755)
    capture(["strip", "--strip-debug", extension])
    libraries = closure(EXTENSION, is_platform)
    names = carry(libraries, tree / "holdfast.libs", private_names=True)
    point_at(extension, names, "$ORIGIN/../holdfast.libs")
    require_inside(extension, tree, is_platform)
    return list(libraries.values())


def write_archive(tree, info, wheel):
    """Zips the tree with its RECORD; equal trees give equal archives."""
    record = info / "RECORD"
    lines = []
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(path for path in tree.rglob("*") if path.is_file()):
            data = path.read_bytes()
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest())
            name = path.relative_to(tree).as_posix()
            lines.append(f"{name},sha256={digest.decode().rstrip('=')},{len(data)}")
            archive.writestr(entry(name, path.stat().st_mode), data)
        name = record.relative_to(tree).as_posix()
        lines.append(f"{name},,")
        archive.writestr(entry(name, 0o100644), "\n".join(lines) + "\n")


def entry(name, mode):
    info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
    info.external_attr = mode << 16
    info.compress_type = zipfile.ZIP_DEFLATED
    return info
