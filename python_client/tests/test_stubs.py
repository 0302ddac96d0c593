# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The type stubs that the build makes."""

import ast
import inspect
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast

GENERATOR = Path(__file__).parents[1] / "generate_stubs.py"
PACKAGE = Path(holdfast.__file__).parent


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
    assert "volatile" not in methods and "untyped_storage" in methods


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


# A training script as people write them.
TRAINING = """
from holdfast.utils.data import DataLoader, Dataset, TensorDataset

import holdfast as torch
import holdfast.nn.functional as F
from holdfast import Tensor, nn, optim


class Data(Dataset):
    def __len__(self) -> int:
        return 3

    def __getitem__(self, i: int) -> Tensor:
        return torch.zeros(3)


class Attention(nn.Module):
    def __init__(self, dim: int, heads: int = 4) -> None:
        super().__init__()
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.conv = nn.Conv2d(1, 2, 3, padding=(1, 1), stride=1)
        self.heads = heads
        self.register_buffer("mask", torch.ones(8, 8).tril().bool())

    def forward(self, x: Tensor) -> Tensor:
        b, t, c = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        q = q.view(b, t, self.heads, c // self.heads).transpose(1, 2)
        k = k.view(b, t, self.heads, -1).transpose(1, 2)
        v = v.reshape(b, t, self.heads, -1).permute(0, 2, 1, 3)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return F.dropout(y.transpose(1, 2).contiguous().view(b, t, c), 0.1)


@torch.no_grad()
def evaluate(model: nn.Module, loader: DataLoader) -> float:
    model.eval()
    right, total = 0, 0
    for x, y in loader:
        right += int((model(x).argmax(1) == y).sum().item())
        total += y.numel()
    return right / total


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Dropout(0.5)).to(device)
opt = optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
sched = optim.lr_scheduler.CosineAnnealingLR(opt, T_max=10)
data = TensorDataset(torch.randn(16, 4), torch.randint(0, 2, (16,)))
loader = DataLoader(data, batch_size=4, shuffle=True)
for x, y in loader:
    opt.zero_grad(set_to_none=True)
    loss = nn.CrossEntropyLoss(label_smoothing=0.1)(model(x), y)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    print(f"{loss.item():.3f} {opt.param_groups[0]['lr']}")
sched.step()
a = torch.arange(12).reshape(3, 4).float()
b = a[1:, ::2] + a[..., None].sum() * 2 - 1
b[0] = 3.0
c = (a > 2) & ~(a < 1) | (a == 5)
z = torch.zeros((2, 3), dtype=torch.int64, device=device)
w = torch.where(a > 1, a, 0.0)
s: tuple[int, ...] = a.shape
torch.save(model.state_dict(), "model.pt")
model.load_state_dict(torch.load("model.pt"))
u, sv, vh = torch.linalg.svd(a, full_matrices=False)
f = float(a.sum()) + int(z.sum()) + len(a)
session = torch.connect("localhost:1")
print(session.name, session.attached, torch.kept())
torch.distributed.init_process_group("gloo", rank=0, world_size=1)
model = torch.vision.models.resnet18()
"""


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """The package as it is installed: with its stubs, and without what pytest sees."""
    folder = tmp_path_factory.mktemp("site") / "holdfast"
    shutil.copytree(
        PACKAGE, folder, ignore=shutil.ignore_patterns("*.so", "*.pyi", "__pycache__")
    )
    subprocess.run([sys.executable, str(GENERATOR), str(folder)], check=True)
    return folder


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
@pytest.mark.parametrize("program", ["PROGRAM", "TRAINING"])
def test_checkers_find_no_mistake_in_correct_programs(
    checker, program, package, tmp_path
):
    if shutil.which(checker) is None:
        pytest.skip(f"{checker} is not installed")
    file = tmp_path / "program.py"
    file.write_text(globals()[program])
    options = {"mypy": ["--follow-imports=silent"], "pyright": []}[checker]
    path = str(package.parent)
    said = subprocess.run(
        [checker, *options, str(file)],
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": path, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert said.returncode == 0, said.stdout


def sources():
    for path in sorted(PACKAGE.rglob("*.py")):
        yield path, path.read_text()


def test_names_that_a_module_passes_on_are_its_own():
    """In a typed package a checker takes an imported name for private, unless it says
    `x as x` or is in __all__."""
    private = []
    for path, text in sources():
        if path == PACKAGE / "__init__.py" or "\n__all__ = " in text:
            continue
        lines = text.split("\n")
        for node in ast.parse(text).body:
            # So are imports marked that are there to be imported from here.
            if not isinstance(node, ast.ImportFrom):
                continue
            if "noqa: F401" not in lines[node.lineno - 1]:
                continue
            private += [
                f"{path.name}: {alias.name}"
                for alias in node.names
                if alias.asname is None and alias.name[0] not in "_*"
            ]
    assert private == []


# What takes other numbers, or one for each dimension, where the default is an int.
NUMBERS = """alpha beta dampening eta_min gain lr_decay margin min_lr momentum threshold
tau weight_decay padding stride dilation output_padding""".split()


def test_an_int_as_default_is_no_promise_of_ints():
    """A checker takes the type of a parameter without one from its default."""
    narrow = []
    for path, text in sources():
        if path.parent.name not in ("nn", "optim", "functional", "lr_scheduler"):
            continue
        for node in ast.walk(ast.parse(text)):
            if not isinstance(node, ast.FunctionDef):
                continue
            if node.name[0] == "_" and node.name != "__init__":
                continue
            known = node.args.args[::-1], node.args.defaults[::-1]
            for parameter, default in zip(*known, strict=False):
                if parameter.arg not in NUMBERS or parameter.annotation is not None:
                    continue
                if isinstance(default, ast.Constant) and type(default.value) is int:
                    narrow.append(f"{path.name}: {node.name}({parameter.arg})")
    assert narrow == []
