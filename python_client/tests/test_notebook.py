# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Notebooks: the example, %holdfast, rich output, completion, help, interruption."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from service_environment import Person

import holdfast

EXAMPLE = Path(__file__).resolve().parents[2] / "examples/notebook.ipynb"

IPython = pytest.importorskip("IPython", reason="python3-ipykernel is not installed")


@pytest.fixture
def shell(torch):
    from IPython.core.interactiveshell import InteractiveShell

    made = InteractiveShell()
    made.history_manager.enabled = False
    made.run_cell("import holdfast as torch")
    yield made
    made.run_line_magic("unload_ext", "holdfast")


RESTORE = """
import holdfast
from holdfast.service.namespace import Namespace
names = {}
Namespace(holdfast.connect(session="spirals"), names).restore()
assert isinstance(names["model"], holdfast.nn.Sequential)
print(*names)
"""


def kept_names(person):
    """Names that another process finds in the example's session."""
    found = person.python(RESTORE)
    assert found.returncode == 0, found.stderr
    return set(found.stdout.split())


def test_the_example_runs(tmp_path):
    nbclient = pytest.importorskip("nbclient", reason="python3-nbclient is missing")
    nbformat = pytest.importorskip("nbformat")
    notebook = nbformat.read(EXAMPLE, as_version=4)
    client = nbclient.NotebookClient(
        notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}
    )
    person = Person()
    try:
        client.execute(env=person.env)
        # What it says at its end is true of another kernel.
        assert {"model", "optimizer", "x", "y"} <= kept_names(person)
        assert person.holdfast("stop", "--force").returncode == 0
    finally:
        person.leave()
    outputs = [c.get("outputs", []) for c in notebook.cells]
    texts = [o["data"] for cell in outputs for o in cell if "data" in o]
    status = texts[0]
    assert "holdfastd" in status["text/plain"] and "<table>" in status["text/html"]
    printed = "".join(o.get("text", "") for cell in outputs for o in cell)
    accuracy = float(printed.partition("accuracy ")[2].split()[0])
    assert accuracy > 0.95
    assert "All keys matched" in str(texts) and (tmp_path / "spirals.pt").exists()
    assert "600/600" in printed or "600/600" in str(texts)  # the progress bar


def test_the_status_line(shell, torch, transport):
    shell.run_line_magic("load_ext", "holdfast")
    kept = torch.ones(1 << 18)
    torch.synchronize()
    status = shell.run_line_magic("holdfast", "")
    session = torch.current_session()
    text = repr(status)
    assert session.address in text and f"({transport})" in text
    assert f"(number {session.id})" in text and "cpu" in text
    assert "MiB" in text and "nothing waits" in text
    assert session.address in status._repr_html_()
    big = torch.randn(1500, 1500)
    for _ in range(8):
        big = big @ big
    assert "ops wait" in repr(shell.run_line_magic("holdfast", ""))
    assert kept.numel() and big.shape
    torch.synchronize()


def test_connecting_by_magic(shell, torch, daemon, transport, capsys):
    shell.run_line_magic("load_ext", "holdfast")
    before = torch.current_session()
    status = shell.run_line_magic("holdfast", daemon.address(transport))
    after = torch.current_session()
    assert after.id != before.id and f"number {after.id}" in repr(status)
    after.close()
    torch.set_default_session(before)
    assert shell.run_line_magic("holdfast", "unix:/nowhere/at/all") is None
    assert "holdfast: " in capsys.readouterr().out
    assert torch.current_session() == before


def test_stopping_by_magic(shell, torch, capsys):
    shell.run_line_magic("load_ext", "holdfast")
    x = torch.ones(1024, 1024)
    assert x[0, 0].item() == 1  # it is not one of those that wait
    products = [x @ x for _ in range(30)]
    assert shell.run_line_magic("holdfast", "stop") is None
    assert "ops are cancelled" in capsys.readouterr().out
    with pytest.raises(torch.errors.CancelledError, match="at %holdfast stop"):
        products[-1].sum().item()
    assert (x + 1)[0, 0].item() == 2


def test_a_late_error_names_its_cell(shell, torch, monkeypatch):
    """A notebook's author knows cells, not the files that IPython makes of them."""
    monkeypatch.setattr(type(shell), "_instance", shell)  # the one that runs
    shell.run_cell("x = torch.ones(3)", store_history=True)
    cell = "i = torch.tensor([7])\ny = x[i]\nz = y + 1"
    shell.run_cell(cell, store_history=True)
    number = shell.execution_count - 1
    failed = shell.run_cell("z.sum().item()")
    said = str(failed.error_in_exec)
    assert f"submitted at Cell In [{number}], line 2: y = x[i])" in said
    # As CPython's own tracebacks where there is no notebook.
    assert torch.errors.place("train.py", 12) == "train.py:12"


def test_rich_output(shell, torch):
    x = torch.arange(3)
    assert not hasattr(x, "_repr_html_")
    shell.run_line_magic("load_ext", "holdfast")
    text = x._repr_html_()
    assert "tensor([0, 1, 2])" in text and "(3,) · holdfast.int64 · cpu · 24 B" in text
    assert "&lt;" in (torch.ones(1, requires_grad=True) * 2)._repr_html_()
    assert "<table>" in torch.current_session()._repr_html_()
    shell.run_line_magic("unload_ext", "holdfast")
    assert not hasattr(x, "_repr_html_")


def completions(shell, text):
    shell.Completer.use_jedi = False
    return shell.complete(text)[1]


def test_completion(shell):
    assert "torch.nn" in completions(shell, "torch.n")
    assert {"torch.save", "torch.safetensors"} <= set(completions(shell, "torch.sa"))
    assert "torch.matmul" in completions(shell, "torch.matm")
    # Not what the package is made of.
    for name in ("linalg", "random", "errors", "vision"):
        assert f"torch.{name}" in completions(shell, f"torch.{name[:4]}")
    for name in "arrange callables missing creation array_protocols indexed".split():
        assert f"torch.{name}" not in completions(shell, f"torch.{name}")
    assert "torch.nn.functional.relu" in completions(shell, "torch.nn.functional.rel")
    shell.run_cell("x = torch.ones(2); model = torch.nn.Linear(2, 1)")
    assert {"x.requires_grad", "x.requires_grad_"} <= set(
        completions(shell, "x.requires")
    )
    assert "model.weight" in completions(shell, "model.wei")


@pytest.mark.parametrize(
    "name,text",
    [
        ("torch.add", "Docstring:"),
        ("torch.nn.Linear", "in_features"),
        ("torch.connect", "HOLDFAST_ADDRESS"),
        ("torch.save", "written completely or not at all"),
        ("torch.Tensor.view", "Docstring:"),
        ("torch.load", "weights_only"),
    ],
)
def test_help(shell, capsys, name, text):
    shell.run_line_magic("pinfo", name)
    shown = capsys.readouterr().out
    assert text in shown and "<no docstring>" not in shown


# ---- Ctrl-C

# NumPy's import, which numpy() would begin, reports a signal as an ImportError.
INTERRUPTED = """
import os, signal, sys, threading, time
import numpy
import holdfast as torch

caught = 0
for wait in (lambda: y.sum().item(), torch.synchronize, lambda: y.numpy()):
    # A second one in a session would cancel what was submitted.
    session = torch.connect(sys.argv[1])
    x = torch.ones(2000, 2000)
    small = torch.arange(4)
    small.tolist()
    y = x
    for _ in range(int(sys.argv[2])):
        y = torch.tanh(y @ x)
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    start = time.monotonic()
    try:
        wait()
    except KeyboardInterrupt:
        caught += 1
        print("after", time.monotonic() - start)
    assert (small.sum().item(), y.sum().item()) == (6, 4e6)
    session.close()
print("caught", caught)
"""


def test_ctrl_c_ends_a_wait_and_nothing_else(daemon, transport):
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, daemon.address(transport), "20"],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[-1] == "caught 3"
    assert all(0.2 < float(line.split()[1]) < 2 for line in lines[:-1])


def test_ctrl_c_ends_a_program_that_does_not_catch_it(daemon, transport):
    """As from a terminal: the traceback is short, and the daemon goes on."""
    program = """
import sys
import holdfast as torch
torch.connect(sys.argv[1])
x = torch.ones(2000, 2000)
for _ in range(60):
    x = torch.tanh(x @ x)
print("waiting", flush=True)
x.sum().item()
"""
    process = subprocess.Popen(
        [sys.executable, "-c", program, daemon.address(transport)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "waiting\n"
    time.sleep(0.2)
    os.kill(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == -signal.SIGINT
    assert errors.strip().endswith("KeyboardInterrupt")
    with holdfast.connect(daemon.address(transport), default=False) as session:
        session.synchronize()
