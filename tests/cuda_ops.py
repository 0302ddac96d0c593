# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Writes into docs/gpu_results.md which ops have no CUDA kernel yet.

    ./dev python tests/cuda_ops.py

A kernel is a function holdfast::cuda::Cuda_<op> of the CUDA library, and of the fake
device's, which has the same sources compiled for the host.
"""

import pathlib
import re
import subprocess

import holdfast
from holdfast.daemon import find_daemon

PAGE = pathlib.Path(__file__).parent.parent / "docs/gpu_results.md"
HEADING = "## Ops without a CUDA kernel\n"
UNKNOWN_SIZES = {"data_shape", "device_sized"}
FAKE_LIBRARY = pathlib.Path(find_daemon()).parent / "libholdfast_fake.so"


def kernels(library):
    """Names of the ops that a library has a kernel for, and of sizes functions."""
    symbols = subprocess.run(
        ["nm", "--defined-only", library], capture_output=True, text=True
    )
    assert symbols.returncode == 0, symbols.stderr
    # _ZN8holdfast4cuda<length>Cuda_<op>ERNS_...
    mangled = re.findall(r" t _ZN8holdfast4cuda(\d+)(Cuda_\w+)", symbols.stdout)
    names = {name[: int(length)] for length, name in mangled}
    return {name.removeprefix("Cuda_") for name in names}


def needed():
    """Ops of the table that need a kernel: all but views."""
    return {op["name"]: op for op in holdfast._C.schema() if "view" not in op["flags"]}


def missing(library=FAKE_LIBRARY):
    """Names in the table's order."""
    there = kernels(library)
    return [
        name
        for name, op in needed().items()
        if name not in there
        or (UNKNOWN_SIZES & set(op["flags"]) and f"{name}_sizes" not in there)
    ]


def page():
    names = missing()
    text = PAGE.read_text()
    head = text[: text.index(HEADING)]
    rows = "".join(f"| `{name}` |\n" for name in names)
    return (
        f"{head}{HEADING}\n{len(names)} of {len(needed())}. Written by "
        "`./dev python tests/cuda_ops.py`.\n"
        + (f"\n| op |\n|---|\n{rows}" if rows else "")
    )


if __name__ == "__main__":
    PAGE.write_text(page())
