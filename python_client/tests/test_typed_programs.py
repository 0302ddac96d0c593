# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Ten programs with types, as people write them: they run, and a checker that reads the
package's stubs finds no mistake in them. Checkers: mypy and pyright, if on PATH."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import holdfast

PACKAGE = Path(holdfast.__file__).parent
GENERATOR = Path(__file__).parents[1] / "generate_stubs.py"
PROGRAMS = sorted(Path(__file__).with_name("typed_programs").glob("*.py"))
OPTIONS = {"mypy": ["--follow-imports=silent"], "pyright": []}


def test_there_are_ten():
    assert len(PROGRAMS) == 10


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_programs_run(program, daemon, transport):
    path = os.pathsep.join([str(PACKAGE.parent), os.environ.get("PYTHONPATH", "")])
    address = daemon.address(transport)
    result = subprocess.run(
        [sys.executable, str(program)],
        env={**os.environ, "PYTHONPATH": path, "HOLDFAST_ADDRESS": address},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """The package as it is installed: with its stubs, and without what pytest sees."""
    folder = tmp_path_factory.mktemp("site") / "holdfast"
    unseen = shutil.ignore_patterns("*.so", "*.pyi", "__pycache__")
    shutil.copytree(PACKAGE, folder, ignore=unseen)
    subprocess.run([sys.executable, str(GENERATOR), str(folder)], check=True)
    return folder


def checked(checker, package, folder, files):
    """What a checker says of the files in a folder, which has no package in it."""
    if shutil.which(checker) is None:
        pytest.skip(f"{checker} is not installed")
    path = str(package.parent)
    return subprocess.run(
        [checker, *OPTIONS[checker], *files],
        cwd=folder,
        env={**os.environ, "MYPYPATH": path, "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize("checker", OPTIONS)
def test_checkers_find_no_mistake(checker, package, tmp_path):
    for program in PROGRAMS:
        shutil.copy(program, tmp_path)
    names = [program.name for program in PROGRAMS]
    said = checked(checker, package, tmp_path, names)
    assert said.returncode == 0, said.stdout


@pytest.mark.parametrize("checker", OPTIONS)
def test_checkers_find_a_mistake(checker, package, tmp_path):
    """They read the stubs: a parameter that there is not is told."""
    (tmp_path / "program.py").write_text(
        "import holdfast as torch\n"
        "torch.ones(2).no_such_method()\n"
        "torch.relu(torch.ones(2), no_such_parameter=1)\n"
    )
    said = checked(checker, package, tmp_path, ["program.py"])
    assert said.returncode == 1
    assert "no_such_method" in said.stdout or "no_such_parameter" in said.stdout


def documented(body):
    """(name, docstring) of the functions and methods in a stub."""
    for node in body:
        if isinstance(node, ast.ClassDef) and node.name == "Tensor":
            yield from documented(node.body)
        elif isinstance(node, ast.FunctionDef) and not node.decorator_list:
            yield node.name, ast.get_docstring(node)


@pytest.mark.parametrize("stub", ["__init__.pyi", "_C.pyi"])
def test_stubs_tell_what_help_tells(package, stub):
    """Editors show a stub's text, not the source's."""
    owner = holdfast if stub == "__init__.pyi" else holdfast.Tensor
    count = 0
    for name, text in documented(ast.parse((package / stub).read_text()).body):
        value = getattr(owner, name, None)
        if name[:2] != "__" and callable(value) and value.__doc__:
            assert text is not None, name
            assert text.split() == value.__doc__.split(), name
            count += 1
    assert count > 500
