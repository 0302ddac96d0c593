# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""`holdfast run`: programs written for PyTorch, unchanged."""

import importlib.util
import os
import subprocess
import sys
import textwrap

import pytest

from holdfast._advice import CLIENT

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "programs")


def run(*arguments, check=True, **environment):
    result = subprocess.run(
        [sys.executable, *arguments],
        env=dict(os.environ, OMP_NUM_THREADS="1", **environment),
        capture_output=True,
        text=True,
    )
    assert not check or result.returncode == 0, result.stderr
    return result


def script(tmp_path, text):
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(text))
    return str(path)


def test_a_program_prints_what_it_prints_with_pytorch(daemon, transport):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    program = os.path.join(FOLDER, "classifier.py")
    theirs = run(program, "--epochs", "3").stdout
    ours = run(
        "-m",
        "holdfast",
        "run",
        "--address",
        daemon.address(transport),
        program,
        "--epochs",
        "3",
    )
    assert ours.stdout == theirs
    assert "epoch 2" in theirs


def test_torch_is_the_package_in_every_form_of_import(daemon, tmp_path):
    path = script(
        tmp_path,
        """
        import importlib
        import sys

        import torch
        import torch.nn as nn
        from torch.nn.utils.rnn import pad_sequence
        from torch.utils.data import DataLoader

        assert torch.nn is nn and sys.modules["torch"] is torch
        assert importlib.import_module("torch.nn.functional") is nn.functional
        assert torch.__version__.startswith("2.9.0+holdfast.")
        assert torch.__version__ >= "1.5.0" and torch.__version__ < (3, 0)
        assert sys.argv[1:] == ["a", "--flag"], sys.argv
        assert isinstance(torch.zeros(1), torch.Tensor)
        print(torch.__name__)
        """,
    )
    flags = ["-m", "holdfast.run", "--address", daemon.address("shm"), path]
    assert run(*flags, "a", "--flag").stdout.strip() == "holdfast"


def test_modules_run_too(daemon, tmp_path):
    script(tmp_path, "import torch; print(__name__, torch.ones(2).sum().item())")
    result = subprocess.run(
        [sys.executable, "-m", "holdfast.run", "-m", "program"],
        cwd=tmp_path,
        env=dict(os.environ, HOLDFAST_ADDRESS=daemon.address("shm")),
        capture_output=True,
        text=True,
    )
    assert result.stdout.strip() == "__main__ 2.0", result.stderr


def test_what_is_missing_is_named(daemon, tmp_path):
    flags = ["-m", "holdfast.run", "--address", daemon.address("shm")]
    path = script(tmp_path, "import torch.no_such_module")
    result = run(*flags, path, check=False)
    assert result.returncode == 1
    assert "ModuleNotFoundError: holdfast has no module torch.no_such_module" in (
        result.stderr
    )
    path = script(tmp_path, "import torch; torch.distributed.no_such_function(1)")
    result = run(*flags, path, check=False)
    assert "holdfast has no torch.distributed.no_such_function" in result.stderr


@pytest.mark.parametrize(
    "module", ["torch", "torch.nn.functional", "torch.optim", "torch.nn.modules.conv"]
)
def test_names_that_cannot_be_imported(daemon, tmp_path, module):
    """The error begins as PyTorch's does, and says whose fault it is."""
    path = script(
        tmp_path,
        f"""
        import importlib
        assert not hasattr(importlib.import_module({module!r}), "nope")
        try:
            from {module} import nope
        except ImportError as error:
            assert error.name == {module!r}, error.name
        from {module} import (
            _nope,
        )
        """,
    )
    result = run("-m", "holdfast", "run", path, check=False)
    said = result.stderr.splitlines()[-1]
    assert said.startswith(
        f"ImportError: cannot import name '_nope' from '{module}' (holdfast has no "
        f"{module}._nope. "
    )
    assert "pip install torch holdfast-torch" in said


def test_names_that_cannot_be_imported_from_the_package():
    with pytest.raises(ImportError, match="'nope' from 'holdfast.nn' .holdfast has no"):
        from holdfast.nn import nope  # noqa: F401


@pytest.mark.skipif(
    importlib.util.find_spec("torchvision") is not None,
    reason="the installed torchvision comes first",
)
def test_torchvision_is_the_packages_where_it_is_not_installed(daemon, tmp_path):
    path = script(
        tmp_path,
        """
        import torch
        import torchvision
        import torchvision.models as models
        from torchvision.models.resnet import BasicBlock

        net = models.resnet18(num_classes=2)
        assert isinstance(net.layer1[0], BasicBlock)
        print(net.eval()(torch.zeros(1, 3, 32, 32)).shape, torchvision.__version__)
        try:
            torchvision.models.nope
        except AttributeError as error:
            print(error)
        """,
    )
    result = run("-m", "holdfast", "run", "--address", daemon.shm_address, path)
    assert result.stdout.splitlines() == [
        "torch.Size([1, 2]) 0.14.1+holdfast",
        "holdfast has no torchvision.models.nope. holdfast.vision has the usual data "
        f"sets, transforms and models. {CLIENT}",
    ]


def test_exit_codes_and_devices(daemon, tmp_path):
    flags = ["-m", "holdfast.run", "--address", daemon.address("shm")]
    path = script(tmp_path, "import sys; sys.exit(7)")
    assert run(*flags, path, check=False).returncode == 7
    result = run(*flags, "--device", "cuda", path, check=False)
    assert result.returncode == 1 and "computes on cpu" in result.stderr
    result = run(*flags, str(tmp_path / "none.py"), check=False)
    assert result.returncode == 1 and "there is no" in result.stderr


def test_a_traceback_begins_in_the_program(daemon, tmp_path):
    flags = ["-m", "holdfast", "run", "--address", daemon.address("shm")]
    path = script(
        tmp_path,
        """
        import torch

        class Net(torch.nn.Module):
            def forward(self, x):
                return x @ torch.ones(3)

        Net()(torch.ones(2))
        """,
    )
    lines = run(*flags, path, check=False).stderr.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[1] == f'  File "{path}", line 8, in <module>'
    assert lines[-1].startswith("holdfast.errors.OpError: [matmul]")
    files = [line for line in lines if line.startswith("  File")]
    assert files[-1] == f'  File "{path}", line 6, in forward'
    assert not any("run.py" in line or "runpy" in line for line in files)

    path = script(tmp_path, "x = = 1")
    lines = run(*flags, path, check=False).stderr.splitlines()
    assert lines[0] == f'  File "{path}", line 1'
    assert lines[-1] == "SyntaxError: invalid syntax"

    result = subprocess.run(
        [sys.executable, *flags, "-m", "program"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert result.returncode == 1 and "holdfast/run.py" not in result.stderr

    path = script(tmp_path, "raise SystemExit('stopped')")
    result = run(*flags, path, check=False)
    assert (result.returncode, result.stderr) == (1, "stopped\n")


def test_what_is_printed_is_what_pytorch_prints(daemon, tmp_path):
    path = script(
        tmp_path,
        """
        import torch
        x = torch.ones(2, 3, dtype=torch.float64)
        print(x.shape, x.dtype, x.type(), repr(torch.Size([1])))
        print(x.sum(0, keepdim=True))
        """,
    )
    flags = ["-m", "holdfast.run", "--address", daemon.address("shm")]
    assert run(*flags, path).stdout == (
        "torch.Size([2, 3]) torch.float64 torch.DoubleTensor torch.Size([1])\n"
        "tensor([[2., 2., 2.]], dtype=torch.float64)\n"
    )


def test_spawned_processes_run_the_program_too(daemon, tmp_path):
    path = script(
        tmp_path,
        """
        import multiprocessing
        import torch

        def work(n):
            return torch.arange(n).sum().item()

        if __name__ == "__main__":
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                print(pool.map(work, [3, 5]), torch.__name__)
        """,
    )
    flags = ["-m", "holdfast.run", "--address", daemon.address("shm")]
    result = run(*flags, path, HOLDFAST_ADDRESS=daemon.address("shm"))
    assert result.stdout.strip() == "[3, 10] holdfast"


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_of_a_data_loader_find_the_programs_dataset(daemon, tmp_path, method):
    path = script(
        tmp_path,
        f"""
        import torch
        from torch.utils.data import DataLoader, Dataset, get_worker_info

        class Squares(Dataset):
            def __len__(self):
                return 12

            def __getitem__(self, i):
                assert get_worker_info().num_workers == 2
                return torch.full((2,), float(i)) ** 2, i

        def seed(worker):
            torch.manual_seed(worker)

        if __name__ == "__main__":
            loader = DataLoader(
                Squares(), batch_size=5, num_workers=2, worker_init_fn=seed,
                multiprocessing_context="{method}", persistent_workers=True,
            )
            for _ in range(2):
                for x, i in loader:
                    print(torch.equal(x[:, 1], i.float() ** 2), i.tolist())
            print(torch.__name__)
        """,
    )
    flags = ["-m", "holdfast.run", "--address", daemon.address("shm")]
    result = run(*flags, path, HOLDFAST_ADDRESS=daemon.address("shm"))
    lines = result.stdout.splitlines()
    assert lines.pop() == "holdfast"
    epoch = ["True [0, 1, 2, 3, 4]", "True [5, 6, 7, 8, 9]", "True [10, 11]"]
    assert lines == 2 * epoch


def test_classes_of_the_program_can_be_pickled(daemon, tmp_path):
    path = script(
        tmp_path,
        """
        import atexit, pickle
        import torch

        class Net(torch.nn.Linear):
            pass

        atexit.register(lambda: print(type(pickle.loads(text)) is Net))
        text = pickle.dumps(Net(1, 1))
        """,
    )
    flags = ["-m", "holdfast.run", "--address", daemon.address("shm")]
    assert run(*flags, path).stdout.strip() == "True"


def test_marks_of_other_tools(torch):
    with pytest.raises(NotImplementedError, match="torch.jit.save"):
        torch.jit.save(torch.nn.Linear(1, 1), "x.pt")
    with pytest.raises(NotImplementedError, match="torch.onnx.export"):
        torch.onnx.export(None, None, "x.onnx")
    with pytest.raises(NotImplementedError, match="torch.quantization.prepare"):
        torch.quantization.prepare(None)
    assert torch.jit.annotate(int, 3) == 3 and torch.jit.freeze(len) is len
    assert torch._C._get_tracing_state() is None
    assert torch.functional.einsum is torch.einsum


def test_compile_and_script_return_what_they_are_given(torch):
    layer = torch.nn.Linear(2, 2)
    assert torch.compile(layer) is layer
    assert torch.compile(mode="default")(len) is len
    assert torch.jit.script(layer) is layer
    assert torch.jit.unused(len) is len


def test_autocast_of_a_gpu_that_is_not_there(torch):
    with pytest.warns(UserWarning, match="CUDA is not available"):
        with torch.cuda.amp.autocast():
            assert (torch.ones(2) @ torch.ones(2)).dtype is torch.float32
    with torch.autocast("cuda", enabled=False):
        pass


SAFETENSORS = """
    import sys
    import torch
    import safetensors.torch
    from safetensors import safe_open
    from safetensors.torch import load_file, save_file

    path = sys.argv[1]
    save_file({"a": torch.ones(2), "b": torch.arange(3)}, path)
    print(load_file(path)["b"].tolist())
    with safe_open(path, framework="pt") as f:
        print(sorted(f.keys()), f.get_tensor("a").tolist())
    assert safetensors.torch.save_file is save_file
    # As PyTorch's do, with the bytes at an address.
    import ctypes
    x = torch.arange(4.0)[1:]
    if x.data_ptr():
        x.mul_(2)
        print((ctypes.c_float * 3).from_address(x.data_ptr())[:])
    else:
        print([2.0, 4.0, 6.0])
"""
INSTALLED = """
    def safe_open(filename, framework):
        return "theirs " + framework
"""


@pytest.mark.parametrize("installed", [False, True])
def test_safetensors_is_ours(daemon, transport, tmp_path, installed):
    if installed:
        package = tmp_path / "site" / "safetensors"
        package.mkdir(parents=True)
        (package / "__init__.py").write_text(textwrap.dedent(INSTALLED))
        (package / "torch.py").write_text("1 / 0")
        (package / "numpy.py").write_text("theirs = True")
    more = """
    import safetensors.numpy
    print(safe_open("x", "np"), safetensors.numpy.theirs)
    """
    program = script(tmp_path, SAFETENSORS + (more if installed else ""))
    out = run(
        *("-m", "holdfast", "run", "--address", daemon.address(transport)),
        *(program, str(tmp_path / "x.safetensors")),
        PYTHONPATH=os.pathsep.join(
            [str(tmp_path / "site"), os.environ.get("PYTHONPATH", "")]
        ),
    ).stdout
    expected = ["[0, 1, 2]", "['a', 'b'] [1.0, 1.0]", "[2.0, 4.0, 6.0]"]
    if installed:
        expected.append("theirs np True")
    assert out.splitlines() == expected
