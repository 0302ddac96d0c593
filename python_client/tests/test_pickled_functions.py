# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Functions of the package go through pickle by their names."""

import inspect
import pickle
import subprocess
import sys

import pytest

import holdfast

MODULES = [
    "holdfast",
    "holdfast.nn.functional",
    "holdfast.nn.init",
    "holdfast.linalg",
    "holdfast.fft",
    "holdfast.special",
    "holdfast.autograd",
    "holdfast.utils.data",
    "holdfast.optim",
    "holdfast.cuda",
]


@pytest.mark.parametrize("module", MODULES)
def test_every_function_is_found_again(module):
    __import__(module)
    seen = 0
    for name, value in vars(sys.modules[module]).items():
        if name.startswith("_") or not inspect.isroutine(value):
            continue
        assert pickle.loads(pickle.dumps(value)) is value, name
        seen += 1
    assert seen


def test_methods_too():
    assert pickle.loads(pickle.dumps(holdfast.Tensor.add)) is holdfast.Tensor.add


def test_another_process_finds_them():
    functions = [holdfast.relu, holdfast.zeros, holdfast.add, holdfast.stack]
    code = (
        "import pickle, sys; f = pickle.load(sys.stdin.buffer); import holdfast as h;"
        "assert f == [h.relu, h.zeros, h.add, h.stack]; print(f[0].__name__)"
    )
    out = subprocess.run(
        [sys.executable, "-c", code],
        input=pickle.dumps(functions),
        capture_output=True,
        timeout=60,
    )
    assert out.stdout.strip() == b"relu", out.stderr
