# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Every public name of PyTorch 2.15 is here, or its error says what to do.

torch_names.txt is written by tools/list_torch_names.py.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast
from holdfast import _advice

PACKAGE = Path(holdfast.__file__).parent
LIST = Path(__file__).with_name("torch_names.txt")


def listed():
    """(module or class, its names, whether it is a class) of each line."""
    for line in LIST.read_text().splitlines():
        if line.startswith("#"):
            continue
        owner, *names = line.split()
        yield owner[:-1], names, owner.endswith(".")


LINES = list(listed())
# What stands for an object of each class, whose attributes are asked for.
OBJECTS = {
    "torch.Generator": lambda: holdfast.Generator(),
    "torch.Tensor": lambda: holdfast.ones(2, 2).cfloat(),
    "torch.UntypedStorage": lambda: holdfast.ones(2).untyped_storage(),
    "torch.nn.Module": lambda: holdfast.nn.Module(),
    "torch.optim.Optimizer": lambda: holdfast.optim.SGD([holdfast.ones(2)], lr=1),
    "torch.optim.lr_scheduler.LRScheduler": lambda: holdfast.optim.lr_scheduler.StepLR(
        holdfast.optim.SGD([holdfast.ones(2)], lr=1), 1
    ),
}


def test_the_list_is_whole():
    names = {owner: set(words) for owner, words, _ in LINES}
    assert LIST.read_text().startswith("# PyTorch 2.15")
    assert {"zeros", "compile", "UntypedStorage"} <= names["torch"]
    assert {"Muon", "AdamW"} <= names["torch.optim"] and "relu" in names["torch.Tensor"]
    assert "export" in names["torch.export"]
    assert sum(map(len, names.values())) > 6000


def program_said(tmp_path, text, *arguments):
    """What a program prints under `holdfast run`."""
    file = tmp_path / "program.py"
    file.write_text(text)
    command = [sys.executable, "-m", "holdfast", "run", str(file), *arguments]
    path = os.pathsep.join([str(PACKAGE.parent), os.environ.get("PYTHONPATH", "")])
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run(
        command, env=environment, stdout=subprocess.PIPE, text=True, check=True
    ).stdout


# Asks for each name as programs do, and tells the errors: {name: message}.
WALK = """
import importlib, json, sys
found = {}
for line in open(sys.argv[1]).read().splitlines():
    owner, *names = line.split()
    if line[0] == "#" or owner[-1] == ".":
        continue
    try:
        module = importlib.import_module(owner[:-1])
    except ModuleNotFoundError as error:
        found[owner[:-1]] = str(error)
        continue
    for name in names:
        try:
            getattr(module, name)
        except AttributeError as error:
            found[owner[:-1] + "." + name] = str(error)
json.dump(found, sys.stdout)
"""


def test_each_name_is_there_or_has_its_advice(tmp_path):
    errors = json.loads(program_said(tmp_path, WALK, str(LIST)))
    assert {"torch.export", "torch.qint8", "torch.nn.quantized"} <= errors.keys()
    assert not {"torch.compile", "torch.nn.Linear"} & errors.keys()
    assert [name for name in errors if _advice.find(name) is None] == []
    for name, said in errors.items():
        # Of what is below a module that is not there, the error is about that one.
        about = re.match(r"holdfast has no (?:module )?(torch[\w.]*?)[.:] ", said)[1]
        assert about.rpartition(".")[2] in name and said.endswith(_advice.find(about))


@pytest.mark.parametrize("owner", OBJECTS)
def test_each_attribute_is_there_or_has_its_advice(torch, owner):
    (names,) = [words for name, words, is_class in LINES if is_class and name == owner]
    value = OBJECTS[owner]()
    missing = [name for name in names if not hasattr(value, name)]
    assert [n for n in missing if _advice.find(f"{owner}.{n}") is None] == []
    for name in missing:
        with pytest.raises(AttributeError) as error:
            getattr(value, name)
        assert _advice.find(f"{owner}.{name}") in str(error.value)


def test_advice_names_what_is_here():
    """`torch.x.y` in an advice is a name that works."""
    said = set()
    for table in (_advice._MODULES, _advice._NAMES):
        said |= set(table.values())
    for text in said | set(_advice._GROUPS):
        for path in re.findall(r"\btorch((?:\.\w+)+)", text):
            value = holdfast
            for part in path.strip(".").split("."):
                value = getattr(value, part)


def test_words_of_errors():
    with pytest.raises(AttributeError, match=r"no torch.export. No graph .* install t"):
        holdfast.export
    with pytest.raises(AttributeError, match=r"torch.zerros. Did you mean: 'zeros'\?"):
        holdfast.zerros
    with pytest.raises(AttributeError, match="Is it spelt as PyTorch spells it"):
        holdfast.quite_another_thing
    with pytest.raises(ImportError, match=r"torch.qint8. No quantized types here"):
        from holdfast import qint8  # noqa: F401


PROGRAM = """
import importlib
for name in (
    "torch.export", "torch._dynamo", "torch._inductor.config", "torch.library"
):
    try:
        importlib.import_module(name)
    except ModuleNotFoundError as error:
        print(error)
try:
    from torch.distributed.device_mesh import init_device_mesh
except ImportError as error:
    print(error)
try:
    import torch
    torch.distributed.fsdp.fully_shard
except AttributeError as error:
    print(error)
"""


def test_imports_say_it_too(tmp_path):
    said = program_said(tmp_path, PROGRAM).splitlines()
    assert len(said) == 6
    for line, name in zip(
        said,
        (
            "module torch.export",
            "module torch._dynamo",
            "module torch._inductor",
            "module torch.library",
            "module torch.distributed.device_mesh",
            "torch.distributed.fsdp",
        ),
    ):
        assert f"holdfast has no {name}" in line and "holdfast-torch" in line
