# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""A daemon of the user's own: start, stop, restart, logs, and connect(session=...)."""

import os
import re
import shutil
import signal
import subprocess
import sys

import pytest
from service_environment import Person, wait_until

from holdfast.daemon import Daemon

KEEP = """
import holdfast as torch
session = torch.connect(session="s", grace=600)
torch.keep("x", torch.full((2,), 7.0))
torch.synchronize()
"""
AGAIN = """
import holdfast as torch
session = torch.connect(session="s")
print(session.attached, torch.kept("x").tolist(), session.address)
"""


@pytest.fixture
def person():
    someone = Person()
    yield someone
    someone.leave()


def test_start_use_stop(person):
    started = person.holdfast("start")
    assert started.returncode == 0, started.stderr
    (pid,) = person.daemons()
    assert started.stdout == (
        f"your daemon runs (process {pid}); holdfast stop ends it\n"
    )
    used = person.python(
        "import holdfast as t; print(t.ones(3).sum().item(), "
        "t.current_session().address)"
    )
    assert used.stdout == f"3.0 unix:{person.socket}\n", used.stderr
    status = person.holdfast("status").stdout
    assert f"unix:{person.socket}" in status and f"process {pid}" in status
    assert str(person.state / "holdfastd.log") in status
    wait_until(lambda: "ready: device" in person.holdfast("logs").stdout)
    stopped = person.holdfast("stop")
    assert (stopped.returncode, stopped.stdout) == (0, "your daemon has ended\n")
    assert not person.daemons()
    assert person.holdfast("stop").stdout == "no daemon of yours runs\n"
    assert "holdfast start" in person.holdfast("status").stderr


def test_its_files_are_its_users_alone(person):
    assert person.holdfast("start").returncode == 0
    assert person.state.stat().st_mode & 0o777 == 0o700
    for name in ("token", "tokens", "lock", "holdfastd.log"):
        assert (person.state / name).stat().st_mode & 0o077 == 0, name


def test_one_daemon_however_many_start_it(person):
    command = [sys.executable, "-m", "holdfast", "start"]
    pipes = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    starters = [subprocess.Popen(command, env=person.env, **pipes) for _ in range(4)]
    said = [starter.communicate(timeout=120) for starter in starters]
    assert [starter.returncode for starter in starters] == [0] * 4, said
    (pid,) = person.daemons()
    firsts = [out for out, _ in said if out.startswith("your daemon runs (")]
    others = [out for out, _ in said if out.startswith("your daemon runs already (")]
    assert (len(firsts), len(others)) == (1, 3)
    assert all(f"process {pid}" in out for out, _ in said)


def test_each_user_has_their_own(person):
    other = Person()
    try:
        for someone in (person, other):
            assert someone.holdfast("start").returncode == 0
        assert not person.daemons().keys() & other.daemons().keys()
        assert person.python(KEEP).returncode == 0
        assert person.python(AGAIN).stdout.startswith("True [7.0, 7.0]")
        assert "'s'" not in other.holdfast("status").stdout
        assert other.holdfast("stop").returncode == 0
        assert len(person.daemons()) == 1
    finally:
        other.leave()


def test_a_killed_one_is_in_nobodys_way(person):
    assert person.holdfast("start").returncode == 0
    (pid,) = person.daemons()
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not person.daemons())
    assert person.holdfast("stop").stdout == "no daemon of yours runs\n"
    again = person.holdfast("start")
    assert again.stdout.startswith("your daemon runs ("), again.stderr


def test_restart_keeps_sessions_and_flags(person):
    assert person.holdfast("start", "--threads=1").returncode == 0
    (before,) = person.daemons()
    assert person.python(KEEP).returncode == 0
    restarted = person.holdfast("restart")
    assert restarted.returncode == 0, restarted.stderr
    ((after, flags),) = person.daemons().items()
    assert after != before and "--threads=1" in flags
    found = person.python(AGAIN)
    assert found.stdout == f"True [7.0, 7.0] unix:{person.socket}\n", found.stderr
    # And so do stop and start.
    assert person.holdfast("stop").returncode == 0
    assert person.holdfast("start").returncode == 0
    assert person.python(AGAIN).stdout.startswith("True [7.0, 7.0]")


def test_stop_asks_while_programs_use_it(person):
    assert person.holdfast("start").returncode == 0
    program = person.start_python(KEEP + "print('ready', flush=True)\ninput()")
    assert program.stdout.readline() == "ready\n"
    for command in ("stop", "restart"):
        refused = person.holdfast(command)
        assert refused.returncode == 1 and "1 program uses it" in refused.stderr
        assert "session 's'" in refused.stderr and "--force" in refused.stderr
    assert person.daemons()
    assert person.holdfast("stop", "--force").returncode == 0
    program.communicate("\n", timeout=60)
    assert person.holdfast("start").returncode == 0
    assert person.python(AGAIN).stdout.startswith("True [7.0, 7.0]")


def test_a_session_with_a_name_starts_it(person):
    first = person.python(KEEP)
    assert first.returncode == 0
    assert "holdfast: your daemon is started" in first.stderr
    ((_, flags),) = person.daemons().items()
    assert "--exit_when_idle=600" in flags
    second = person.python(AGAIN)
    assert second.stdout == f"True [7.0, 7.0] unix:{person.socket}\n"
    assert "is started" not in second.stderr
    # Without a name nothing of that kind happens.
    person.holdfast("stop")
    alone = person.python(
        "import holdfast as t; print(t.ones(1).item(), t.current_session().address)"
    )
    assert "/holdfast-private-" in alone.stdout and not alone.stderr
    assert not person.daemons()


def test_what_a_program_made_before_is_in_its_session(person):
    """On its private daemon, which then stays: nothing is moved."""
    done = person.python(
        """
        import holdfast as torch
        x = torch.ones(2)
        session = torch.connect(session="late")
        print(session.name, x.sum().item(), "/holdfast-private-" in session.address)
        session.close()
        """
    )
    assert done.stdout == "late 2.0 True\n", done.stderr


def test_it_ends_when_nobody_uses_it(person):
    assert person.holdfast("start", "--idle", "1").returncode == 0
    program = person.start_python(KEEP + "print('ready', flush=True)\ninput()")
    assert program.stdout.readline() == "ready\n"
    with pytest.raises(subprocess.TimeoutExpired):
        program.wait(3)  # a session is use
    assert person.daemons()
    end = "import holdfast as t; t.connect(session='s').close()"
    program.communicate("\n", timeout=60)
    assert person.python(end).returncode == 0
    wait_until(lambda: not person.daemons())
    assert "nobody has used it for 1 s" in person.holdfast("logs").stdout


def test_a_daemon_that_cannot_start_says_why(person):
    failed = person.holdfast("start", "--device=abacus")
    assert failed.returncode == 1 and "abacus" in failed.stderr
    assert not person.daemons()
    wrong = person.holdfast("start", "cuda")
    assert wrong.returncode == 2 and "--name=value" in wrong.stderr
    missing = person.holdfast("start", HOLDFAST_DAEMON="", PATH="/nowhere")
    assert missing.returncode == 1 and "holdfast_tensors_server-" in missing.stderr
    # A program goes on, on a private daemon, and is told.
    person.state.parent.mkdir(exist_ok=True)
    shutil.rmtree(person.state, ignore_errors=True)
    person.state.write_text("in the way")
    done = person.python(KEEP)
    assert done.returncode == 0 and "a private daemon is used: " in done.stderr
    assert person.holdfast("end", "s").returncode == 0


def test_the_port_for_ssh_asks_for_the_token(person):
    assert person.holdfast("start").returncode == 0
    log = person.state / "holdfastd.log"
    # The socket, which start waits for, is there a moment before.
    ready = r"listen (127\.0\.0\.1:\d+)"
    port = wait_until(lambda: re.search(ready, log.read_text()))[1]
    code = f"import holdfast as t; t.connect({port!r}); print(t.ones(2).sum().item())"
    refused = person.python(code)
    assert refused.returncode == 1 and "asks for a token" in refused.stderr
    token = (person.state / "token").read_text().strip()
    assert person.python(code, HOLDFAST_TOKEN=token).stdout == "2.0\n"


def test_where_the_machine_has_a_service(person):
    """Programs use that, and nothing beside it is started."""
    with Daemon() as service:
        there = {"HOLDFAST_SERVICE_SOCKET": service.shm_address.removeprefix("unix:")}
        refused = person.holdfast("start", **there)
        assert refused.returncode == 1 and service.shm_address in refused.stderr
        done = person.python(KEEP + "print(session.address); session.close()", **there)
        assert done.stdout == f"{service.shm_address}\n" and not done.stderr
        assert not person.daemons()
        # It comes before a daemon of the user's own.
        assert person.holdfast("start").returncode == 0
        done = person.python(KEEP + "print(session.address); session.close()", **there)
        assert done.stdout == f"{service.shm_address}\n"


def test_the_unit_of_systemd(person):
    """As systemd itself reads it."""
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd-analyze is not installed")
    written = person.python(
        """
        from holdfast.service import user_unit
        print(user_unit.text(["--device=cuda:0,1", "--config=/a b/100%.conf"]), end="")
        """
    )
    assert "100%%.conf" in written.stdout and '"--unit"' in written.stdout
    unit = person.home / "holdfastd.service"
    unit.write_text(written.stdout)
    checked = subprocess.run(
        ["systemd-analyze", "--user", "verify", "--man=no", unit],
        capture_output=True,
        text=True,
        env=person.env,
    )
    mine = [line for line in checked.stderr.splitlines() if "holdfastd" in line]
    assert (checked.returncode, mine) == (0, []), checked.stderr
