# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""However a program ends: what it kept under a session's name is there for the next."""

import os
import re
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

README = Path(__file__).resolve().parents[2] / "README.md"


def run(code, **env):
    """A program of its own."""
    return subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **env},
    )


def holdfast(*arguments, **env):
    return subprocess.run(
        [sys.executable, "-m", "holdfast", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=60,
        env={**os.environ, **env},
    )


KEEP = """
import os, signal, sys, time
import holdfast as torch
session = torch.connect({address!r}, session={name!r}, grace=600)
torch.keep("model", {{"a": torch.ones(2), "b": torch.zeros(1)}})
torch.keep("step", torch.tensor(7))
"""

ENDINGS = {
    "end-of-script": ("", 0),
    "exception": ("raise ValueError('typo after 3 h')", 1),
    "sys-exit": ("sys.exit(3)", 3),
    "ctrl-c": ("os.kill(os.getpid(), signal.SIGINT); time.sleep(60)", -2),
    "dropped": ("torch.set_default_session(None); del session; print('on')", 0),
    "with": (
        "with session:\n    raise ValueError('in the block')",
        1,
    ),
}


@pytest.mark.parametrize("how", ENDINGS)
def test_what_is_kept_outlives(daemon, transport, torch, how):
    ending, status = ENDINGS[how]
    address, name = daemon.address(transport), f"{how}-{transport}"
    ended = run(KEEP.format(address=address, name=name) + ending)
    assert ended.returncode == status, ended.stderr
    if how not in ("dropped", "with"):
        line = (
            f"holdfast: session {name!r} stays with 2 kept names for 600 s: "
            f"connect({address!r}, session={name!r})\n"
        )
        assert ended.stderr.endswith(line)
    # The next program, which ends in order, leaves it as well.
    again = run(
        f"""
        import holdfast as torch
        session = torch.connect({address!r}, session={name!r})
        print(session.attached, torch.kept("step").item(), session.grace)
        """
    )
    assert again.stdout == "True 7 600.0\n", again.stderr
    session = torch.connect(address, session=name, attach=True, default=False)
    assert {"model.a", "model.b", "step"} <= session.kept().keys()
    session.close()
    with pytest.raises(LookupError):
        torch.connect(address, session=name, attach=True, default=False)


def test_what_nobody_kept_or_named_ends(daemon, transport, torch):
    address = daemon.address(transport)
    code = """
        import holdfast as torch
        session = torch.connect({!r}, session={!r})
        if session.name is None:
            torch.keep("x", torch.ones(1))
        {}
    """
    for name, rest in ((None, ""), ("bare", ""), ("closed", "session.close()")):
        ended = run(code.format(address, name, rest))
        assert (ended.returncode, ended.stderr) == (0, "")
    for name in ("bare", "closed"):
        with pytest.raises(LookupError):
            torch.connect(address, session=name, attach=True, default=False)


def test_a_session_says_which_it_is(daemon, transport, torch):
    address = daemon.address(transport)
    with torch.connect(address, session="named", default=False) as session:
        assert session.name == "named" and session.grace == 60
        assert re.search(rf"'named', number {session.id}, holdfastd", repr(session))
        assert "attached" not in repr(session)
    with torch.connect(address, grace=-1, default=False) as session:
        assert session.name is None and session.grace == 3600  # the daemon's longest
        assert f"<holdfast.Session number {session.id}, holdfastd" in repr(session)
    with pytest.raises(ValueError, match="number of seconds. Got nan"):
        torch.connect(address, grace=float("nan"), default=False)


def test_jupyters_restart(daemon, transport, torch):
    manager = pytest.importorskip("jupyter_client.manager")
    pytest.importorskip("ipykernel")
    address, name = daemon.address(transport), f"notebook-{transport}"
    kernel, client = manager.start_new_kernel()
    try:
        kept = client.execute_interactive(
            KEEP.format(address=address, name=name), timeout=60
        )
        assert kept["content"]["status"] == "ok", kept
        kernel.restart_kernel(now=False)
    finally:
        client.stop_channels()
        kernel.shutdown_kernel(now=True)
    session = torch.connect(address, session=name, attach=True, default=False)
    assert "step" in session.kept()
    session.close()


def test_tensors_made_before_connect(daemon, transport):
    """The session that the first op opened gets the name."""
    address = daemon.address(transport)
    name = f"adopted-{transport}"
    ended = run(
        f"""
        import holdfast as torch
        model = torch.nn.Linear(2, 2)
        session = torch.connect(session={name!r}, grace=600)
        assert session == model.weight._session and session.name == {name!r}
        model(torch.ones(1, 2)).sum().backward()
        torch.keep("model", model)
        """,
        HOLDFAST_ADDRESS=address,
    )
    assert ended.returncode == 0, ended.stderr
    assert f"connect(session={name!r})" in ended.stderr
    other = run(
        f"""
        import holdfast as torch
        model = torch.nn.Linear(2, 2)
        session = torch.connect(session={name!r})
        try:
            model.load_state_dict(torch.kept("model"))
        except Exception as error:
            print(error)
        session.close()
        """,
        HOLDFAST_ADDRESS=address,
    )
    said = other.stdout
    assert re.search(r"of session \d+ \('adopted-\w+'\) at", said), other
    assert "(no name) at" in said and "connect() before making tensors" in said


# ---- without a daemon


@pytest.fixture
def nowhere(tmp_path):
    """The environment of programs on a machine where no daemon runs."""
    env = dict(
        HOLDFAST_ADDRESS="",
        HOLDFAST_SOCKET=str(tmp_path / "default" / "d.sock"),
        XDG_RUNTIME_DIR=str(tmp_path),
    )
    yield env
    deadline = time.monotonic() + 60
    while (left := daemons(tmp_path)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not left
    assert not list(tmp_path.glob("holdfast-private-*"))


def daemons(folder):
    """Process ids of all holdfastd whose socket is in there."""
    found = set()
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            command, *flags = entry.read_bytes().split(b"\0")
        except OSError:
            continue
        if command.endswith(b"holdfastd") and any(bytes(folder) in f for f in flags):
            found.add(int(entry.parent.name))
    return found


def test_a_private_daemon_stays_for_what_is_kept(nowhere, tmp_path):
    first = run(KEEP.format(address=None, name="mine"), **nowhere)
    assert first.returncode == 0, first.stderr
    assert "for 600 s: connect(session='mine')\n" in first.stderr
    assert len(daemons(tmp_path)) == 1
    second = run(
        """
        import holdfast as torch
        session = torch.connect(session="mine")
        print(session.attached, torch.kept("step").item())
        """,
        **nowhere,
    )
    assert second.stdout == "True 7\n", second.stderr
    assert "mine" in holdfast("status", **nowhere).stdout
    assert holdfast("end", "mine", **nowhere).returncode == 0
    # And with its last session the daemon ends: see `nowhere`.


def test_a_private_daemon_ends_when_the_grace_is_over(nowhere, tmp_path):
    code = KEEP.format(address=None, name="short").replace("600", "1")
    assert run(code, **nowhere).returncode == 0


def test_a_private_daemon_without_what_is_kept_ends(nowhere, tmp_path):
    ended = run(
        """
        import holdfast as torch
        session = torch.connect(session="x")
        torch.keep("x", torch.ones(1))
        session.close()
        print(torch.ones(2).sum().item())
        """,
        **nowhere,
    )
    assert (ended.stdout, ended.stderr) == ("2.0\n", "")


def test_the_readme_works_as_printed(nowhere):
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.S)
    model, *sessions = blocks[:3]
    assert run(model, **nowhere).returncode == 0
    assert "session=" in sessions[0] and "session=" in sessions[1]
    for block in sessions:
        ended = run(block, **nowhere)
        assert ended.returncode == 0, ended.stderr
    assert holdfast("end", "mnist", **nowhere).returncode == 0
