# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The wheel and the source archive, installed with pip into environments that have
PyTorch and nothing of ours."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy
import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ROOT / "tools/dev"
PROGRAM = """
import torch, holdfast_torch
x = torch.nn.Linear(3, 1, device="holdfast").weight
x.sum().backward(); print(x.grad.tolist(), x.device, holdfast_torch.__file__)
"""
# A compiler for minutes: where it is asked for.
COMPILES = pytest.mark.skipif(
    not os.environ.get("HOLDFAST_TORCH_COMPILE_TESTS"),
    reason="HOLDFAST_TORCH_COMPILE_TESTS is not set: compiles the library anew",
)


@pytest.fixture(scope="module")
def wheels():
    """(holdfast's, holdfast_torch's, the archive of sources)"""
    make = (
        f"import sys; sys.path.insert(0, {str(TOOLS)!r})\n"
        "import torch_wheel, wheel_file\n"
        "print(wheel_file.make_wheel(), torch_wheel.make_wheel())\n"
        "print(torch_wheel.make_source_archive())\n"
    )
    done = subprocess.run(
        ["/usr/bin/python3", "-B", "-c", make], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return [Path(name) for name in done.stdout.split()]


@pytest.fixture
def install(tmp_path):
    """install(*files): run(program) in an environment with those and PyTorch."""

    def make(*files, options=()):
        venv = tmp_path / "venv"
        subprocess.run([sys.executable, "-m", "venv", venv], check=True)
        (site,) = venv.glob("lib/python*/site-packages")
        # PyTorch is gigabytes: it is found where the tests have it.
        folders = {Path(m.__path__[0]).parent for m in (torch, numpy)}
        (site / "pytorch.pth").write_text("\n".join(map(str, folders)))
        pip = [venv / "bin/python", "-m", "pip", "install", "-q", "--no-index"]
        pip += ["--no-deps", "--no-cache-dir", "--disable-pip-version-check"]
        env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        subprocess.run([*pip, *options, *files], check=True, env=env)
        env["HOLDFAST_TORCH_CACHE"] = str(tmp_path / "cache")
        env["HOLDFAST_SOCKET"] = str(tmp_path / "nobody.sock")

        def run(program, **more):
            return subprocess.run(
                [venv / "bin/python", "-c", program],
                capture_output=True,
                text=True,
                env={**env, **more},
                cwd=tmp_path,
            )

        run.package = site / "holdfast_torch"
        return run

    return make


def expect(done):
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("[[1.0, 1.0, 1.0]] holdfast:0 ")
    assert "/venv/" in done.stdout


def test_the_wheel_is_all_that_pytorch_needs(wheels, install):
    run = install(*wheels[:2])
    expect(run(PROGRAM))
    # Without a library for this PyTorch, and without a compiler to make one.
    for library in run.package.glob("built/torch_*/*"):
        library.unlink()
    done = run("import holdfast_torch", PATH="/nonexistent", CXX="/nonexistent/c++")
    last = done.stderr.strip().splitlines()[-1]
    assert done.returncode == 1 and last.startswith("ImportError: holdfast_torch has")
    assert "g++" in last and "could not build one" in last


def test_the_wheel_carries_sources_and_no_cuda(wheels):
    _, wheel, archive = wheels
    assert wheel.name.endswith("-py3-none-manylinux_2_36_x86_64.whl")
    assert archive.name.endswith(".tar.gz")
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
    assert "holdfast_torch/sources/csrc/bridge.cc" in names
    assert sum(name.endswith(".so") for name in names) == 1


def test_the_versions_are_one():
    import holdfast
    import holdfast_torch

    assert holdfast_torch.__version__ == holdfast.__version__


@COMPILES
def test_a_missing_library_is_built_once(wheels, install):
    run = install(*wheels[:2])
    for library in run.package.glob("built/torch_*/*"):
        library.unlink()
    done = run(PROGRAM)
    expect(done)
    assert "building the library for PyTorch" in done.stderr
    done = run(PROGRAM)
    expect(done)
    assert "building" not in done.stderr


@COMPILES
def test_the_sources_install(wheels, install):
    client, _, archive = wheels
    run = install(client, archive, options=["--no-build-isolation"])
    expect(run(PROGRAM))
