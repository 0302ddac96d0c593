# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""./dev wheel --torch: holdfast_torch for the PyTorch of .venv-torch, with the sources
that it builds itself from for another, and the archive of those alone."""

import re
import shutil
import tarfile

import wheel_file
from shared_libraries import needed
from torch_environment import CLIENT, PYTHON
from workspace import DIST, ROOT, Failure, capture, run, say

PACKAGE = CLIENT / "holdfast_torch"
# One for every Python: the library of another is built on its first import.
TAG = f"py3-none-{wheel_file.PLATFORM}"
# What a library is built from (torch_client/setup.py names the same).
SOURCES = ["setup.py", "client_api.h", "csrc"]
METADATA = """\
Metadata-Version: 2.1
Name: holdfast-torch
Version: {version}
Summary: PyTorch with a Holdfast daemon as its device
Author: The Holdfast Authors
License: Apache-2.0
Keywords: pytorch,tensor,deep learning,remote,daemon
{classifiers}
Requires-Python: >=3.11
Requires-Dist: torch >=2.15,<2.16
Requires-Dist: numpy
Description-Content-Type: text/markdown

PyTorch, unmodified, with the tensors in a daemon, holdfastd, where they stay when the
program does not:

```python
import torch, holdfast_torch

holdfast_torch.connect("gpu-box:50151", session="llm")  # or nothing: a private daemon
model = torch.nn.Linear(4, 2).to("holdfast")
```

It works with the package `holdfast` of the same version, whose wheel was built with
this one (on PyPI that name is another project). There is a library in it for PyTorch
{series} and Python {python}; for others it is compiled once, at the first import,
which takes g++ and Python's headers.
"""


def make_wheel():
    """Of what `torch_environment.build` left; returns its path."""
    tree = ROOT / "build/torch_wheel"
    shutil.rmtree(tree, ignore_errors=True)
    for name in git_files("holdfast_torch"):
        copy(CLIENT / name, tree / name)
    for name in git_files(*SOURCES):
        copy(CLIENT / name, tree / "holdfast_torch/sources" / name)
    library = built()
    staged = tree / library.relative_to(CLIENT)
    copy(library, staged)
    capture(["strip", "--strip-debug", staged])
    require_no_cuda(staged)
    metadata = METADATA.format(
        version="{version}",
        classifiers="{classifiers}",
        series=library.parent.name.partition("_")[2].replace("_", "."),
        python=capture(
            [PYTHON, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        ).strip(),
    )
    return wheel_file.pack(tree, "holdfast_torch", TAG, metadata, None, [])


def make_source_archive():
    """The sdist, by setuptools; returns its path."""
    DIST.mkdir(exist_ok=True)
    run(
        [PYTHON, "setup.py", "-q", "sdist", "-d", DIST],
        what="packing holdfast_torch's sources",
        hint="The message is above.",
        cwd=CLIENT,
    )
    archive = DIST / f"holdfast_torch-{wheel_file.version()}.tar.gz"
    with tarfile.open(archive) as packed:
        names = packed.getnames()
    if any(name.endswith((".so", ".o")) for name in names):
        raise Failure(f"{archive.name} holds built files. Remove them from {CLIENT}.")
    say(f"{archive.name}: {len(names)} files")
    return archive


def git_files(*names):
    """Files that git knows, or would, below torch_client."""
    paths = [CLIENT / name for name in names]
    listing = capture(["git", "ls-files", "-co", "--exclude-standard", *paths])
    root = CLIENT.relative_to(ROOT)
    found = [name for name in listing.splitlines() if (ROOT / name).exists()]
    return [str((ROOT / name).relative_to(ROOT / root)) for name in found]


def copy(path, to):
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, to)


def built():
    """The library of the environment's PyTorch."""
    found = sorted(PACKAGE.glob("built/torch_*/_torch.*.so"))
    if len(found) != 1:
        raise Failure(
            f"one library is expected in {PACKAGE}/built. Got {len(found)}: remove the "
            "folder and run ./dev build --torch."
        )
    return found[0]


def require_no_cuda(library):
    wrong = [name for name in needed(library) if re.search("cuda|nv", name)]
    if wrong:
        raise Failure(f"{library.name} is linked against {', '.join(wrong)}.")
