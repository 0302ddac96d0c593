# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""./dev wheel: the client (the package, its extension, their libraries), the daemon.
The wheel of holdfast_torch is torch_wheel's."""

import base64
import hashlib
import re
import shutil
import zipfile

import build
import daemon_folder
import licences
import torch_environment
from shared_libraries import GLIBC, carry, closure, point_at, require_inside
from workspace import DIST, EXTENSION, PACKAGE, ROOT, VENV_PYTHON, capture, say

# The manylinux_2_36 platform: glibc 2.36 and the C++ runtime of its time.
PLATFORM = "manylinux_2_36_x86_64"
TAG = f"cp311-abi3-{PLATFORM}"
SERVER_TAG = f"py3-none-{PLATFORM}"
# What pip knows the two as, in names of files; PyPI's `holdfast` is another project.
CLIENT = "holdfast_tensors"
SERVER = "holdfast_tensors_server"
RUNTIME = re.compile(r"lib(stdc\+\+|gcc_s)\.so")
METADATA = """\
Metadata-Version: 2.1
Name: holdfast-tensors
Version: {version}
Summary: Tensors that outlive your notebook: a PyTorch-like client of holdfastd
Author: The Holdfast Authors
License: Apache-2.0
Keywords: tensor,autograd,deep learning,notebook,daemon
{classifiers}
Requires-Python: >=3.11
Requires-Dist: numpy
Provides-Extra: top
Requires-Dist: rich; extra == "top"
Description-Content-Type: text/markdown

Tensors, autograd, `nn` and `optim` with PyTorch's API. They live in a daemon,
holdfastd, and stay there when the program does not: over shared memory on one
machine, over gRPC from another.

```python
import holdfast as torch

x = torch.randn(3, 3, requires_grad=True)
(x @ x).sum().backward()
print(x.grad)
```

The package to import is `holdfast`; PyPI's project of that name is another one. The
daemon is the wheel `holdfast-tensors-server` that was built with this one; where it
runs elsewhere, `HOLDFAST_ADDRESS=host:port` names it. `holdfast doctor` tells what a
machine lacks. The extra `top` is for `holdfast top`.
"""
SERVER_METADATA = """\
Metadata-Version: 2.1
Name: holdfast-tensors-server
Version: {version}
Summary: holdfastd, the daemon that holds Holdfast's tensors
Author: The Holdfast Authors
License: Apache-2.0
Keywords: tensor,deep learning,daemon
{classifiers}
Requires-Python: >=3.11
Description-Content-Type: text/markdown

`holdfastd` and the libraries that it carries, for the CPU. Programs that import
`holdfast` find it and start one where none runs; `holdfastd --help` lists its flags.
"""
# No licence among them: the field License has it.
CLASSIFIERS = """\
Classifier: Development Status :: 3 - Alpha
Classifier: Intended Audience :: Science/Research
Classifier: Operating System :: POSIX :: Linux
Classifier: Programming Language :: C++
Classifier: Programming Language :: Python :: 3
Classifier: Topic :: Scientific/Engineering :: Artificial Intelligence
Classifier: Typing :: Typed"""
WHEEL = """\
Wheel-Version: 1.0
Generator: holdfast-dev
Root-Is-Purelib: false
Tag: {tag}
"""
SERVER_PACKAGE = '''\
# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The daemon of Holdfast, as a wheel: `holdfastd`. Programs need not import this."""

import os
import sys
from pathlib import Path

BINARY = Path(__file__).resolve().parent / "bin/holdfastd"


def main():
    """Becomes the daemon."""
    os.execv(BINARY, [str(BINARY), *sys.argv[1:]])
'''


def configure(_name, parser):
    parser.add_argument(
        "--torch",
        action="store_true",
        help="also holdfast_torch's wheel and source archive (needs PyPI)",
    )
    parser.set_defaults(main=main)


def main(args):
    build.build()
    made = [make_wheel(), make_server_wheel()]
    if args.torch:
        import torch_wheel

        torch_environment.build()
        made += [torch_wheel.make_wheel(), torch_wheel.make_source_archive()]
    for path in made:
        print(path.relative_to(ROOT))


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
    command = "holdfast = holdfast.cli:main"
    return pack(tree, CLIENT, TAG, METADATA, command, libraries)


def make_server_wheel():
    """The daemon with its libraries, as a package; returns the wheel's path."""
    tree = ROOT / "build/server_wheel"
    shutil.rmtree(tree, ignore_errors=True)
    package = tree / "holdfast_server"
    origins = daemon_folder.stage(package, cuda=False)
    (package / "__init__.py").write_text(SERVER_PACKAGE)
    daemon_folder.verify(package)
    return pack(
        tree,
        SERVER,
        SERVER_TAG,
        SERVER_METADATA,
        "holdfastd = holdfast_server:main",
        origins,
    )


def pack(tree, name, tag, metadata, command, origins):
    """The wheel of what is staged in `tree`, with one command ("name = function") or
    None."""
    info = tree / f"{name}-{version()}.dist-info"
    licences.collect(info / "licenses", origins)
    (info / "METADATA").write_text(
        metadata.format(version=version(), classifiers=CLASSIFIERS)
    )
    (info / "WHEEL").write_text(WHEEL.format(tag=tag))
    if command is not None:
        (info / "entry_points.txt").write_text(f"[console_scripts]\n{command}\n")
    DIST.mkdir(exist_ok=True)
    wheel = DIST / f"{name}-{version()}-{tag}.whl"
    write_archive(tree, info, wheel)
    say(f"{wheel.name}: {wheel.stat().st_size / 2**20:.1f} MB")
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
