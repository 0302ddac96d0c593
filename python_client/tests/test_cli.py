# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The holdfast command."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast import _stats


def holdfast(*arguments, **env):
    return subprocess.run(
        [sys.executable, "-m", "holdfast", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **env},
    )


def test_ops(torch):
    table = json.loads(holdfast("ops", "--json").stdout)
    rows = torch._C.schema()
    assert len(table["ops"]) == len(rows)
    for op, row in zip(table["ops"], rows):
        assert row.items() <= op.items()  # and its parameters, one by one
    add = next(op for op in table["ops"] if op["name"] == "add")
    assert add["signature"] == "(Operand input, Operand other) -> Tensor"
    assert add["differentiable"] and add["inplace"] and "elementwise" in add["flags"]
    names = [f["name"] for f in table["functions"]]
    assert len(names) >= 300 and "linalg.inv" in names and "logsumexp" in names
    text = holdfast("ops").stdout
    assert "matmul(Tensor input, Tensor other) -> Tensor" in text
    assert "relu_backward" not in text


def test_status(torch, daemon, transport):
    x = torch.ones(1000)
    torch.synchronize()
    result = holdfast("status", daemon.address(transport), "--json")
    assert result.returncode == 0, result.stderr
    reply = json.loads(result.stdout)
    assert reply["server"].startswith("holdfastd") and reply["device"] == "cpu"
    mine = [s for s in reply["sessions"] if s["tensors"] and s["connected"]]
    assert any(s["bytes_in_use"] >= x.nbytes for s in mine)
    text = holdfast("status", "--ops", HOLDFAST_ADDRESS=daemon.address(transport))
    assert "CLIENT" in text.stdout and "holdfast-python" in text.stdout
    assert "full" in text.stdout


def test_status_without_a_daemon(tmp_path):
    result = holdfast(
        "status", HOLDFAST_ADDRESS="", HOLDFAST_SOCKET=str(tmp_path / "none.sock")
    )
    assert result.returncode == 1
    assert "none.sock" in result.stderr and "Traceback" not in result.stderr


def test_serve_runs_the_daemon():
    result = holdfast("serve", "--help")
    assert result.returncode == 0
    assert "--listen" in result.stdout


def test_usage():
    assert "serve" in holdfast("--help").stdout
    assert holdfast("frobnicate").returncode == 2


def test_every_file_is_a_subcommand():
    from holdfast import cli, commands

    names = cli.command_names()
    assert {"ops", "run", "serve", "status"} <= set(names)
    folder = Path(commands.__path__[0])
    files = {path.stem for path in folder.glob("*.py") if path.name[0] != "_"}
    assert set(names) == files
    text = holdfast("--help").stdout
    for name in names:
        assert f"    {name} " in text
        assert holdfast(name, "--help").returncode == 0


def test_stats_parser():
    session = b"\x08\x96\x01\x28\x01"
    data = b"\x0a\x03abc" + b"\x19" + bytes(8) + b"\x2a\x05" + session
    reply = _stats.parse(data)
    assert reply["server"] == "abc"
    (session,) = reply["sessions"]
    assert session["id"] == 150 and session["connected"] is True
    # What the daemon left out has its zero.
    others = {name: v for name, v in session.items() if name not in ("id", "connected")}
    assert len(others) >= 11 and not any(others.values())
    with pytest.raises(ValueError):
        _stats.parse(b"\x0f")
