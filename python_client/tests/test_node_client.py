# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""`holdfast ops --json` is enough for a client in another language: the example in
JavaScript, on a real daemon."""

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast import _C, op_signatures
from holdfast.commands import token
from holdfast.daemon import Daemon

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/train_mlp.mjs"


@pytest.fixture(scope="module")
def node():
    """The interpreter."""
    path = shutil.which("node")
    if path is None:
        pytest.skip("node is not installed")
    version = subprocess.check_output([path, "--version"], text=True)
    if int(version[1:].partition(".")[0]) < 20:
        pytest.skip(f"node is {version.strip()}, not 20 or later")
    return path


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """The file of `holdfast ops --json`."""
    file = tmp_path_factory.mktemp("ops") / "ops.json"
    command = [sys.executable, "-m", "holdfast", "ops", "--json"]
    file.write_bytes(subprocess.check_output(command))
    return file


def train(node, table, address, **env):
    return subprocess.run(
        [node, EXAMPLE, address, table],
        capture_output=True,
        text=True,
        timeout=120,
        env={"PATH": "/usr/bin:/bin", **env},
    )


def test_it_trains(node, table, daemon):
    done = train(node, table, daemon.grpc_address)
    assert done.returncode == 0, done.stderr
    losses = [float(text) for text in re.findall(r"^\d+ ([\d.]+)$", done.stdout, re.M)]
    assert len(losses) == 4 and losses[-1] < losses[0] / 2
    assert float(re.search(r"accuracy ([\d.]+)", done.stdout)[1]) > 0.95
    assert "refused: [matmul]" in done.stdout and "f32[512,2]" in done.stdout


def test_it_shows_its_token(node, table, tmp_path):
    secret = token.make(str(tmp_path / "tokens"), "alice")
    with Daemon(f"--token_file={tmp_path / 'tokens'}") as daemon:
        done = train(node, table, daemon.grpc_address, HOLDFAST_TOKEN=secret)
        assert done.returncode == 0 and "accuracy" in done.stdout, done.stderr
        refused = train(node, table, daemon.grpc_address)
        assert refused.returncode == 1 and "asks for a token" in refused.stderr


def test_it_is_as_short_as_it_is_meant_to_be():
    assert len(EXAMPLE.read_text().splitlines()) < 300


def test_the_table_takes_every_signature_apart(table):
    ops = {op["name"]: op for op in json.loads(table.read_text())["ops"]}
    assert len(ops) == len(_C.schema())
    for op in ops.values():
        slots = [p["slot"] for p in op["parameters"] if "slot" in p]
        assert slots == list(range(len(slots))), op["name"]
        for parameter in op["parameters"]:
            assert ("slot" in parameter) == (parameter["kind"][:6] != "tensor")
            assert parameter["kind"] != "attribute" or parameter["fields"]
    add, sgd, mean = ops["add"], ops["sgd"], ops["mean"]
    assert [p["kind"] for p in add["parameters"]] == ["operand", "operand"]
    assert [p["fields"] for p in add["parameters"]] == [["b", "i", "f"]] * 2
    assert [p["written"] for p in sgd["parameters"]][:4] == [True, False, True, False]
    assert sgd["outputs"] == [] and ops["nll_loss"]["outputs"][1] == "total_weight"
    assert mean["parameters"][1] == {
        "name": "dim",
        "type": "int[]?",
        "kind": "attribute",
        "optional": True,
        "written": False,
        "fields": ["ints", "none"],
        "default": None,
        "slot": 0,
    }


def test_defaults_are_values():
    parsed = op_signatures.parse(
        "(Tensor! a, int[2] size, Scalar? x=1e-8, str r='mean', *, dtype? d=None) -> ()"
    )
    defaults = {p["name"]: p.get("default", "none") for p in parsed["parameters"]}
    assert defaults == dict(a="none", size="none", x=1e-8, r="mean", d=None)
    assert parsed["outputs"] == []
