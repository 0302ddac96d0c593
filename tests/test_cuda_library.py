# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""What the CUDA library exports: a kernel for each op of the table, but for those
that docs/gpu_results.md lists, whose number only goes down. And what a daemon says
that cannot use it."""

import ctypes
import json
import os
import pathlib
import subprocess
import sys

import cuda_ops
import pytest

from holdfast.daemon import find_daemon

# Every op has one; a new op comes with its own.
MISSING = 0

ROOT = pathlib.Path(__file__).parent.parent
BUNDLE = ROOT / "dist/holdfast-bundle"
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


def needs_the_library():
    if not CUDA_LIBRARY.exists():
        pytest.skip("no CUDA library was built (./dev build --cuda)")


def has_driver():
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    return True


def test_the_cuda_library_has_its_entry_point():
    needs_the_library()
    listing = subprocess.run(
        ["nm", "-D", "--defined-only", CUDA_LIBRARY],
        capture_output=True,
        text=True,
        check=True,
    )
    assert " T holdfast_device_plugin\n" in listing.stdout


def test_without_a_driver_the_daemon_says_what_is_missing(tmp_path):
    needs_the_library()
    if has_driver():
        pytest.skip("this machine has a driver")
    result = subprocess.run(
        [
            find_daemon(),
            f"--socket={tmp_path}/d.sock",
            "--device=cuda",
            f"--device_library={CUDA_LIBRARY}",
        ],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert result.returncode == 1
    assert "libcuda.so.1" in result.stderr
    assert "Install NVIDIA's driver, or use --device=cpu" in result.stderr


def test_the_cuda_library_has_the_same_kernels():
    needs_the_library()
    assert cuda_ops.kernels(CUDA_LIBRARY) == cuda_ops.kernels(cuda_ops.FAKE_LIBRARY)


@pytest.mark.parametrize("program", ["tests/gpu/run", "benchmarks/gpu/run"])
def test_the_suites_for_a_gpu_say_why_they_skip(program, tmp_path):
    """On the bundle that `./dev bundle --cuda` made."""
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    if not (BUNDLE / "lib/libholdfast_cuda.so").exists():
        pytest.skip("no bundle with CUDA was made (./dev bundle --cuda)")
    report = tmp_path / "report.json"
    result = subprocess.run(
        [ROOT / program, BUNDLE, "--json", report],
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "PYTHON": sys.executable, "HOLDFAST_PLUGIN_PATH": ""},
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[-1].startswith(f"{program}: skipped, no GPU: ")
    told = json.loads(report.read_text())
    assert told["skipped"].startswith("no GPU: ") and told["results"] == []
    if not has_driver():
        assert "libcuda.so.1" in told["skipped"]
