# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""What must not go on, and says why: PyTorch's exceptions with our text."""

import subprocess
import sys

import holdfast
import holdfast_torch
import pytest
import torch
from holdfast.daemon import Daemon
from holdfast_torch import library

# There is no GPU where the tests run, so PyTorch is told of one.
WITH_CUDA = """
import torch
torch.cuda.is_available = lambda: True
try:
    import holdfast_torch
except ImportError as error:
    print("ImportError:", error)
else:
    print(torch.ones(2, device="holdfast").sum().item())
"""
OTHER_SERIES = """
import torch
torch.__version__ = "2.9.1+cpu"
try:
    import holdfast_torch
except ImportError as error:
    print("ImportError:", error)
"""


def test_a_gpu_of_ones_own(run):
    said = run(WITH_CUDA, env={"HOLDFAST_TORCH_BESIDE_CUDA": ""})
    assert said.startswith("ImportError:") and "one accelerator" in said
    assert "CUDA_VISIBLE_DEVICES=" in said and "HOLDFAST_TORCH_BESIDE_CUDA=1" in said


def test_a_gpu_of_ones_own_beside_which_the_program_insists(run):
    assert run(WITH_CUDA, env={"HOLDFAST_TORCH_BESIDE_CUDA": "1"}) == "2.0\n"


def test_another_series_of_pytorch(run):
    said = run(OTHER_SERIES)
    assert said.startswith("ImportError: holdfast_torch works with PyTorch")
    assert ", ".join(library.SUPPORTED) in said and "2.9.1+cpu" in said
    assert "pip install" in said


def test_no_compiler_for_a_library_that_is_missing(tmp_path, monkeypatch):
    monkeypatch.setenv("HOLDFAST_TORCH_CACHE", str(tmp_path))
    monkeypatch.setenv("CXX", "/nonexistent/c++")
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(ImportError, match="could not build one.*g\\+\\+") as error:
        library.build()
    assert torch.__version__[:4] in str(error.value)
    assert not list(tmp_path.glob("*/torch_*/*"))


def test_nobody_listens(tmp_path):
    with pytest.raises(torch.AcceleratorError, match="nobody") as error:
        holdfast_torch.connect(f"unix:{tmp_path}/nobody.sock", timeout=1)
    assert isinstance(error.value, ConnectionError)
    assert isinstance(error.value, holdfast.errors.DaemonUnavailableError)


def test_a_lost_daemon(transport):
    with Daemon() as daemon:
        holdfast_torch.connect(daemon.address(transport), reconnect_timeout=0.5)
        x = torch.ones(3, device="holdfast")
        assert x.sum().item() == 3
        daemon.kill()
        with pytest.raises(torch.AcceleratorError) as error:
            for _ in range(50):
                (x + 1).cpu()
        assert str(error.value)
    with pytest.raises(torch.AcceleratorError):
        torch.holdfast.synchronize()
        x.cpu()
    holdfast_torch.close()


def test_no_memory(transport, tmp_path):
    config = tmp_path / "config"
    config.write_text('default_limits { memory: "16MiB" }')
    with Daemon(f"--config={config}") as daemon:
        holdfast_torch.connect(daemon.address(transport))
        with pytest.raises(torch.OutOfMemoryError, match="MiB"):
            torch.zeros(64 << 20, device="holdfast").sum().item()
        assert torch.ones(3, device="holdfast").sum().item() == 3
        holdfast_torch.close()


def test_errors_of_the_package_are_pytorchs_too():
    errors = holdfast_torch.errors
    with pytest.raises(torch.OutOfMemoryError) as raised:
        with errors.as_pytorchs():
            error = holdfast.errors.OutOfMemoryError("no memory")
            error.op = "add"
            raise error
    assert isinstance(raised.value, holdfast.errors.OutOfMemoryError)
    assert raised.value.op == "add" and str(raised.value) == "no memory"
    with pytest.raises(LookupError):
        with errors.as_pytorchs():
            raise holdfast.errors.NotFoundError("nothing")


def test_the_package_holdfast_is_missing(tmp_path):
    paths = [p for p in sys.path if "python_client" not in p]
    program = f"import sys; sys.path[:] = {paths!r}\nimport holdfast_torch"
    done = subprocess.run(
        [sys.executable, "-I", "-c", program], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "needs the package holdfast that came with it" in done.stderr
