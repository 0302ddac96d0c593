# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""What the CUDA library exports: a kernel for each op of the table, but for those
that docs/gpu_results.md lists, whose number only goes down."""

import os
import pathlib

import cuda_ops
import pytest

# Take one away with each kernel that is added; never add.
MISSING = 33

CUDA_LIBRARY = pathlib.Path(
    os.environ.get("HOLDFAST_PLUGIN_PATH", "."), "libholdfast_cuda.so"
)


def test_no_more_ops_are_missing_than_before():
    assert (
        len(cuda_ops.missing()) == MISSING
    ), "a new op needs a CUDA kernel (kernels/cuda); a new kernel lowers MISSING"


def test_the_list_of_missing_ops_is_up_to_date():
    assert (
        cuda_ops.PAGE.read_text() == cuda_ops.page()
    ), "docs/gpu_results.md is out of date: ./dev python tests/cuda_ops.py"


def test_kernels_belong_to_ops_of_the_table():
    sizes = {f"{name}_sizes" for name in cuda_ops.needed()}
    assert cuda_ops.kernels(cuda_ops.FAKE_LIBRARY) <= set(cuda_ops.needed()) | sizes


def test_the_cuda_library_has_the_same_kernels():
    if not CUDA_LIBRARY.exists():
        pytest.skip("no CUDA library was built (./dev build --cuda)")
    assert cuda_ops.kernels(CUDA_LIBRARY) == cuda_ops.kernels(cuda_ops.FAKE_LIBRARY)
