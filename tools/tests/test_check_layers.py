# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

import check_layers
import pytest

TABLE = check_layers.read_table()


@pytest.fixture
def includes(tmp_path, monkeypatch):
    """Returns what the check says of one file with the given includes."""
    monkeypatch.chdir(tmp_path)

    def find(path, *included):
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("".join(f'#include "{name}"\n' for name in included))
        table = check_layers.read_table()
        return [name for _, name, _ in check_layers.violations(path, table)]

    return find


@pytest.fixture
def misplaced(tmp_path, monkeypatch):
    """Returns the lines that the check finds outside of a folder's namespace."""
    monkeypatch.chdir(tmp_path)

    def find(path, text):
        file = tmp_path / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return [line for _, line in check_layers.misplaced(path, TABLE)]

    return find


def test_families_of_kernels_have_namespaces(misplaced):
    assert misplaced("kernels/cpu/a.cc", "namespace holdfast {\n\nvoid F();\n") == [
        "void F();"
    ]
    nested = "namespace holdfast {\nclass D;  // d.h\nnamespace cuda {\nint x;\n"
    assert not misplaced("kernels/cuda/a.h", nested)
    assert misplaced("kernels/cpu/a.h", nested)
    assert not misplaced("kernels/cpu/b.cc", "namespace holdfast::cpu {\nint x;\n")
    assert not misplaced("kernels/b.cc", "namespace holdfast {\nint x;\n")


def test_allowed_includes(includes):
    assert not includes("ops/shape.cc", "ops/shape.h", "absl/status/status.h", "vector")
    assert not includes("server/main.cc", "kernels/kernel.h", "proto/wire.pb.h")
    assert not includes("python_client/ext.cc", "client/session.h", "Python.h")
    assert not includes("tests/all.cc", "server/store.h", "client/session.h")


@pytest.mark.parametrize(
    "path, included",
    [
        ("ops/shape.cc", "server/store.h"),
        ("client/session.cc", "kernels/kernel.h"),
        ("kernels/cpu/add.cc", "autograd/tape.h"),
        ("python_client/ext.cc", "ops/shape.h"),
        ("server/main.cc", "client/session.h"),
        ("server/main.cc", "tests/fake.h"),
        ("ops/shape.cc", "grpcpp/grpcpp.h"),
        ("autograd/tape.cc", "dnnl.hpp"),
        ("client/session.cc", "cuda_runtime.h"),
    ],
)
def test_forbidden_includes(includes, path, included):
    assert includes(path, included) == [included]
