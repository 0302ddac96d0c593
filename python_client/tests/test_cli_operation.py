# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""holdfast top, trace and doctor: for whoever runs a daemon."""

import json
import os
import pty
import re
import subprocess
import sys

import pytest


from holdfast.commands import _gpu
from holdfast.commands.top import View


def command(*arguments, **options):
    env = {**os.environ, **options.pop("env", {})}
    return subprocess.run(
        [sys.executable, "-m", "holdfast", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        env=env,
        **options,
    )


# ---- trace

ID = "0123456789abcdef0123456789abcdef"
OTHER = "f" * 32
TEXT = f"""\
2026-01-01 00:00:00.000 info session 1 opened name=a client=b trace_id={ID}
2026-01-01 00:00:01.000 info session 2 opened name="trace_id={ID}" trace_id={OTHER}
2026-01-01 00:00:02.000 info holdfastd ready
2026-01-01 00:00:03.000 info session 1 ended reason="the client left" trace_id={ID}
"""
JSON = f"""\
{{"level":"info","message":"session 1 opened","trace_id":"{ID}"}}
{{"level":"info","message":"session 2 opened","name":"{ID}","trace_id":"{OTHER}"}}
{{"level":"info","cut off
"""


@pytest.mark.parametrize("log, lines", [(TEXT, [0, 3]), (JSON, [0])])
@pytest.mark.parametrize("given", [ID, ID[:8], ID.upper()])
def test_trace_finds_the_sessions_lines(tmp_path, log, lines, given):
    path = tmp_path / "log"
    path.write_text(log)
    result = command("trace", given, str(path))
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines() == [log.splitlines()[i] for i in lines]
    piped = command("trace", given, "-", input=log)
    assert piped.stdout == result.stdout


def test_trace_with_nothing_to_find(tmp_path):
    path = tmp_path / "log"
    path.write_text(TEXT)
    missing = command("trace", "a" * 32, str(path))
    assert missing.returncode == 1 and "a" * 32 in missing.stderr
    short = command("trace", "abc", str(path))
    assert short.returncode == 1 and "32 hexadecimal digits" in short.stderr
    nowhere = command("trace", ID, str(tmp_path / "none"))
    assert nowhere.returncode == 1 and "No such file" in nowhere.stderr


# ---- top


def stats(*sessions):
    base = {
        "name": "",
        "client": "c",
        "transport": "shm",
        "connected": True,
        "tensors": 1,
        "bytes_cached": 0,
        "queued_bytes": 0,
    }
    return {
        "server": "holdfastd",
        "device": "cpu",
        "uptime_seconds": 5.0,
        "sessions": [{**base, **session} for session in sessions],
    }


def test_top_shows_rates():
    now = [100.0]
    view = View(clock=lambda: now[0])
    view.own_id = 9
    first = {"id": 1, "ops": 1000, "device_seconds": 3.0, "bytes_in_use": 1}
    own = {"id": 9, "ops": 5, "device_seconds": 1.0, "bytes_in_use": 1}
    (row,) = view.rows(stats(first, own))
    assert row["rate"] == 0 and row["busy"] == 0  # what was before is no rate
    now[0] += 2
    grown = {**first, "ops": 1500, "device_seconds": 3.5}
    new = {"id": 2, "ops": 40, "device_seconds": 1.5, "bytes_in_use": 1}
    rows = view.rows(stats(grown, own, new))
    assert [row["id"] for row in rows] == [2, 1]  # by device time
    assert rows[1]["rate"] == 250 and rows[1]["busy"] == 0.25
    assert rows[0]["rate"] == 20 and rows[0]["busy"] == 0.75


def test_top_shows_whose_a_session_is():
    from rich.console import Console

    own = {"id": 1, "ops": 0, "device_seconds": 0.0, "bytes_in_use": 0, "name": "[b]x"}
    console = Console(width=160)
    with console.capture() as shown:
        console.print(View().look(stats(own, {**own, "id": 2, "user": "ada"})))
    # Names are text and no markup.
    assert "ada" in shown.get() and "[b]x" in shown.get()


@pytest.mark.parametrize("width", [60, 80, 100, 160])
def test_top_cuts_no_column(width):
    from rich.console import Console

    user = {"id": 7, "ops": 0, "device_seconds": 0.0, "bytes_in_use": 1 << 30}
    user |= {"name": "resnet-50-run-12", "user": "ada", "client": "holdfast-python"}
    console = Console(width=width)
    with console.capture() as shown:
        console.print(View().look(stats(user), console.width))
    table = shown.get().split("ID", 1)[1]
    assert "…" not in table and "resnet-50-run-12" in table
    assert "IN USE" in table and "1.0 GiB" in table
    assert ("CLIENT" in table) == (width == 160)


def test_top_prints_each_look(torch, daemon, transport):
    x = torch.ones(1 << 20)
    torch.synchronize()
    result = command(
        *("top", daemon.address(transport), "--count=2", "--interval=0.1"),
        env={"COLUMNS": "160"},
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout.count("holdfastd") == 2 and "MiB" in result.stdout
    own = torch.current_session().id
    assert len(re.findall(rf"^ *{own} ", result.stdout, re.MULTILINE)) == 2
    assert x.sum().item() == 1 << 20


def test_top_on_a_terminal(daemon):
    """Draws over itself, and leaves the terminal as it was."""
    terminal, other = pty.openpty()
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "holdfast", "top", daemon.shm_address),
            *("--count=2", "--interval=0.1"),
        ],
        stdout=other,
        stdin=other,
        stderr=subprocess.PIPE,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "120", "LINES": "30"},
    )
    os.close(other)
    shown = b""
    try:
        while chunk := os.read(terminal, 65536):
            shown += chunk
    except OSError:
        pass  # the other end is closed
    os.close(terminal)
    assert process.wait(60) == 0, process.stderr.read()
    process.stderr.close()
    assert b"\x1b[?1049h" in shown and b"\x1b[?1049l" in shown and b"holdfastd" in shown


def test_top_without_a_daemon(tmp_path):
    result = command("top", f"unix:{tmp_path}/none.sock")
    assert result.returncode == 1 and "none.sock" in result.stderr
    assert "Traceback" not in result.stderr


def test_top_without_rich(tmp_path):
    (tmp_path / "rich.py").write_text("raise ImportError('not here')")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    result = command("top", env={"PYTHONPATH": path})
    assert result.returncode == 1 and "apt-get install python3-rich" in result.stderr


# ---- doctor


def diagnose(*arguments, **env):
    result = command("doctor", "--json", *arguments, env=env)
    assert result.stdout, result.stderr
    return result.returncode, {f["what"]: f for f in json.loads(result.stdout)}


def test_doctor_finds_what_is_there(daemon):
    status, found = diagnose(HOLDFAST_ADDRESS=daemon.shm_address)
    assert status == 0, found
    assert found["client"]["found"].startswith("holdfast ")
    assert found["holdfastd"]["verdict"] == "ok"
    assert daemon.shm_address in found["running daemon"]["found"]
    assert found["shared memory"]["verdict"] == "ok"
    text = command("doctor", env={"HOLDFAST_ADDRESS": daemon.grpc_address})
    assert text.returncode == 0 and daemon.grpc_address in text.stdout


def test_doctor_without_a_daemon(tmp_path):
    nothing = {
        "HOLDFAST_ADDRESS": "",
        "HOLDFAST_SOCKET": str(tmp_path / "none.sock"),
    }
    status, found = diagnose(**nothing)
    assert status == 0 and found["running daemon"]["verdict"] == "note"
    # A program that was sent to that one starts no other.
    sent = {"HOLDFAST_ADDRESS": "unix:" + nothing["HOLDFAST_SOCKET"]}
    status, found = diagnose(**sent)
    assert status == 1 and "HOLDFAST_ADDRESS" in found["running daemon"]["found"]
    # A file in the socket's place.
    (tmp_path / "none.sock").write_text("")
    status, found = diagnose(**nothing)
    assert status == 1 and "no socket" in found["running daemon"]["found"]
    # Something that is no daemon.
    status, found = diagnose(**nothing, HOLDFAST_DAEMON="/bin/false")
    assert status == 1 and found["holdfastd"]["verdict"] == "FAIL"


def test_doctor_on_a_laptop_that_has_the_client_alone(daemon):
    """The daemon and its GPU are elsewhere: nothing is missing here."""
    env = {"HOLDFAST_ADDRESS": daemon.grpc_address, "HOLDFAST_DAEMON": "", "PATH": ""}
    result = command("doctor", env=env)
    assert result.returncode == 0, result.stdout
    assert "nvidia" not in result.stdout.lower()


def test_doctor_on_a_laptop_tells_what_is_missing():
    alone = {"HOLDFAST_DAEMON": "", "PATH": "", "HOLDFAST_SOCKET": "/none"}
    # A daemon elsewhere that does not answer: that, and nothing else.
    status, found = diagnose(**alone, HOLDFAST_ADDRESS="127.0.0.1:1")
    wrong = [what for what, f in found.items() if f["verdict"] == "FAIL"]
    assert status == 1 and wrong == ["running daemon"]
    # No daemon at all: no program can run here, and there are two ways on.
    status, found = diagnose(**alone, HOLDFAST_ADDRESS="")
    wrong = [what for what, f in found.items() if f["verdict"] == "FAIL"]
    assert status == 1 and wrong == ["holdfastd"]
    assert "HOLDFAST_ADDRESS=host:port" in found["holdfastd"]["advice"]
    assert "holdfast_tensors_server-*.whl" in found["holdfastd"]["advice"]


def test_doctor_says_where_a_gpu_would_come_from():
    status, found = diagnose("--cuda", HOLDFAST_ADDRESS="", HOLDFAST_SOCKET="/none")
    if os.path.exists("/dev/nvidia0"):
        assert found["GPU"]["verdict"] == "ok"
    else:
        assert status == 1 and "driver" in found["GPU"]["advice"]


def test_doctor_tells_about_each_library_of_a_gpu():
    _, found = diagnose(
        "--cuda", HOLDFAST_ADDRESS="", HOLDFAST_SOCKET="/none", CUDA_HOME="/none"
    )
    for name, file in (("cuBLAS", "libcublasLt.so.13"), ("cuDNN", "libcudnn.so.9")):
        if found[name]["verdict"] != "ok":
            assert file in found[name]["found"]
            assert "pip install nvidia-" in found[name]["advice"]
    assert {"CUDA driver", "libholdfast_cuda.so"} <= set(found)


def test_doctor_judges_drivers():
    hopper, turing = ("NVIDIA H200", 9, 0), ("Tesla T4", 7, 5)
    assert _gpu.judge_driver("FAIL", 13010, [hopper, turing]).verdict == "ok"
    old = _gpu.judge_driver("FAIL", 12040, [hopper])
    assert old.verdict == "FAIL" and "CUDA 12.4" in old.found
    assert "CUDA 13.0 or later" in old.advice
    assert "compute capability 9.0" in _gpu.judge_driver("note", 13000, [turing]).advice
    assert "nvidia-smi" in _gpu.judge_driver("note", 13000, []).advice


def test_doctor_finds_libraries_where_the_daemon_does(tmp_path, monkeypatch):
    folder = tmp_path / "lib64"
    folder.mkdir()
    (folder / "libcudnn.so.9").touch()
    monkeypatch.setenv("CUDA_HOME", str(tmp_path))
    assert str(folder / "libcudnn.so.9") in _gpu.library_paths("libcudnn.so.9")
