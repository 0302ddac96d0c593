# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The type stubs that the build makes."""

import ast
import inspect
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast

GENERATOR = Path(__file__).parents[1] / "generate_stubs.py"


def test_stubs_list_what_there_is(tmp_path):
    subprocess.run([sys.executable, str(GENERATOR), str(tmp_path)], check=True)
    package = ast.parse((tmp_path / "__init__.pyi").read_text())
    functions = {n.name: n for n in package.body if isinstance(n, ast.FunctionDef)}
    for row in holdfast._C.schema():
        if row["public"] and "inplace_only" not in row["flags"]:
            assert row["name"] in functions
    relu = functions["relu"]
    assert ast.unparse(relu.args) == "input: Tensor, *, out: Any=None"
    assert ast.get_docstring(relu) and ast.unparse(relu.returns) == "Tensor"
    assert "alpha" in [arg.arg for arg in functions["add"].args.kwonlyargs]
    assert functions["stack"].args.args[0].arg == "tensors"

    extension = ast.parse((tmp_path / "_C.pyi").read_text())
    (tensor,) = [
        n for n in extension.body if isinstance(n, ast.ClassDef) and n.name == "Tensor"
    ]
    methods = {n.name: n for n in tensor.body if isinstance(n, ast.FunctionDef)}
    assert ast.unparse(methods["view"].args) == "self, *size: _int | Sequence[_int]"
    assert ast.unparse(methods["__add__"].returns) == "Tensor"
    assert "untyped_storage" not in methods


def test_stubs_list_every_public_name(tmp_path):
    """A name that a stub has not is an error in an editor, though it works."""
    subprocess.run([sys.executable, str(GENERATOR), str(tmp_path)], check=True)
    body = ast.parse((tmp_path / "__init__.pyi").read_text()).body
    named = {n.name for n in body if isinstance(n, ast.FunctionDef)}
    for node in body:
        if isinstance(node, ast.ImportFrom):
            # Only "x as x" is public in a stub.
            named |= {alias.asname for alias in node.names}
        elif isinstance(node, ast.AnnAssign):
            named.add(node.target.id)
        elif isinstance(node, ast.Assign):
            named |= {target.id for target in node.targets}
    public = {
        name
        for name in dir(holdfast)
        if not name.startswith("_") and not inspect.ismodule(getattr(holdfast, name))
    }
    assert public - named == set()
    assert {"cuda", "distributions", "fft", "func", "linalg", "nn", "vision"} <= named


# What checkers said to correct programs: names, parameters and types.
PROGRAM = """
import holdfast as torch
from holdfast import Tensor, nn
from holdfast.nn import functional as F


class Net(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.layer = nn.Linear(4, width)

    def forward(self, x: Tensor) -> Tensor:
        return F.relu(self.layer(x))


def train(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> float:
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    return float(loss.item())


session = torch.connect(session="x", grace=60)
print(session.transport.upper(), session.closed)
a = torch.ones(2, 3, dtype=torch.float32)
b: Tensor = torch.add(a, a, alpha=2)
c = torch.add(a, 1, out=torch.empty(2, 3, requires_grad=True, device="cpu"))
size: torch.Size = b.shape
d = torch.stack([a, b]).sum(dim=0).max()
with torch.no_grad(), torch.autocast("cpu"), torch.inference_mode():
    f = torch.rms_norm(torch.linalg.inv(a @ a.T), (3,))
g = torch.vmap(lambda v: v * 2)(torch.fft.fft(a))
n = torch.distributions.Normal(0.0, 1.0).sample()
kind: torch.dtype = a.dtype
x = torch.randn(2, 2, generator=torch.Generator())
x.requires_grad = True
values, indices = torch.max(a, dim=1)
try:
    print(torch.cuda.is_available(), torch.pi * 2, torch.device("cpu").type)
except torch.OutOfMemoryError:
    pass
"""


def test_a_checker_finds_no_mistake_in_a_correct_program(tmp_path):
    mypy = shutil.which("mypy")
    if mypy is None:
        pytest.skip("mypy is not installed")
    package = tmp_path / "site" / "holdfast"
    shutil.copytree(
        Path(holdfast.__file__).parent,
        package,
        ignore=shutil.ignore_patterns("*.so", "__pycache__"),
    )
    subprocess.run([sys.executable, str(GENERATOR), str(package)], check=True)
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    said = subprocess.run(
        [mypy, "--follow-imports=silent", str(program)],
        cwd=tmp_path,
        env={"MYPYPATH": str(package.parent), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
    )
    assert said.returncode == 0, said.stdout
