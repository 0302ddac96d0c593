# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The type stubs that the build makes."""

import ast
import subprocess
import sys
from pathlib import Path

import holdfast

GENERATOR = Path(__file__).parents[1] / "generate_stubs.py"


def test_stubs_list_what_there_is(tmp_path):
    subprocess.run([sys.executable, str(GENERATOR), str(tmp_path)], check=True)
    package = ast.parse((tmp_path / "__init__.pyi").read_text())
    functions = {n.name: n for n in package.body if isinstance(n, ast.FunctionDef)}
    for row in holdfast._C.schema():
        if row["public"] and "inplace_only" not in row["flags"]:
            assert row["name"] in functions
    assert (
        ast.unparse(functions["relu"]) == "def relu(input: Tensor) -> Tensor:\n    ..."
    )
    assert functions["stack"].args.args[0].arg == "tensors"

    extension = ast.parse((tmp_path / "_C.pyi").read_text())
    (tensor,) = [
        n for n in extension.body if isinstance(n, ast.ClassDef) and n.name == "Tensor"
    ]
    methods = {n.name: n for n in tensor.body if isinstance(n, ast.FunctionDef)}
    assert ast.unparse(methods["view"].args) == "self, *size: _int | Sequence[_int]"
    assert ast.unparse(methods["__add__"].returns) == "Tensor"
    assert "untyped_storage" not in methods
