# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The user's own daemon: one, in the background, until it is stopped.

It is a unit of systemd where that runs for the user, else a process of its own. Its
files are in places.state_folder().
"""

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

from holdfast.service import own_lock, own_token, places, user_unit

# A user's own sessions need no bound but one against forgotten ones: a week.
LONGEST_GRACE = 7 * 86400
# For a daemon that connect(session=...) started.
IDLE_SECONDS = 600
LARGEST_LOG = 10 << 20  # bytes; the former log is kept beside it
START_SECONDS = 30
STOP_SECONDS = 180  # saving takes as long as the disk does


class OwnDaemonError(RuntimeError):
    """The daemon cannot be started or stopped; the message says why."""


def log_file():
    return Path(places.state_folder(), "holdfastd.log")


def flags(more=()):
    """holdfastd's, with the user's own behind them, which win."""
    state = places.state_folder()
    return [
        f"--socket={places.own_socket()}",
        "--listen=127.0.0.1:0",  # for ssh; whoever comes there needs the token
        f"--token_file={own_token.hashes()}",
        f"--state_dir={state}/sessions",
        f"--log_file={log_file()}",
        f"--grace_max_seconds={LONGEST_GRACE}",
        *more,
    ]


def answers(path=None):
    """Whether somebody listens there (default: where the own daemon does)."""
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(path or places.own_socket())
        except OSError:
            return False
    return True


def machine_service():
    """The socket of the machine's service, which programs use; None if none runs."""
    from holdfast import _C

    socket_path = places.service_socket()
    found = socket_path and _C.default_address() == f"unix:{socket_path}"
    return socket_path if found and answers(socket_path) else None


# ---- start


def become(more=(), unit=False):
    """Turns this process into the daemon, which has the lock from then on."""
    from holdfast.daemon import find_daemon

    binary = find_daemon()
    if not own_lock.take(more, unit):
        raise OwnDaemonError("your daemon runs already; holdfast status shows it")
    os.umask(0o077)
    own_token.make()
    os.execv(binary, [binary, *flags(more)])


def start(more=(), detached=False):
    """Starts the daemon unless it runs; returns whether it had to.

    more       holdfastd's flags, beside those of flags()
    detached   not as a unit of systemd, also where that runs for the user

    OwnDaemonError: it does not start.
    """
    from holdfast.daemon import find_daemon

    find_daemon()
    with own_lock.one_starter():
        if (owner := own_lock.owner()) is not None:
            _wait_for(owner)
            return False
        _start(more, detached)
        return True


def _start(more, detached):
    if answers():
        raise OwnDaemonError(
            f"another daemon listens at {places.own_socket()}, which holdfast start "
            "did not start: a program's private one, or holdfast serve. End that "
            "first (holdfast status names its sessions)"
        )
    _turn_log()
    if user_unit.available() and not detached:
        user_unit.start(more)
    else:
        _spawn(more)
    _wait_until_it_answers()


def _spawn(more):
    """A process with a session of its own: no terminal's end is its end."""
    command = [sys.executable, "-m", "holdfast.service.become", *more]
    places.private_folder(places.state_folder())
    appending = os.O_WRONLY | os.O_CREAT | os.O_APPEND
    with open(os.open(log_file(), appending, 0o600), "ab") as log:
        subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd="/",
            env=_environment(),
        )


def _environment():
    """This process's, in which the package is found as it was here."""
    import holdfast

    above = os.path.dirname(os.path.dirname(holdfast.__file__))
    env = dict(os.environ)
    env["PYTHONPATH"] = os.pathsep.join(filter(None, [above, env.get("PYTHONPATH")]))
    return env


def _turn_log():
    with contextlib.suppress(FileNotFoundError):
        if log_file().stat().st_size > LARGEST_LOG:
            log_file().rename(log_file().with_suffix(".log.1"))


def _wait_for(owner):
    """For one that somebody else has just started."""
    if owner["host"] != socket.gethostname():
        raise OwnDaemonError(
            f"your daemon runs on {owner['host']}, which shares the folder "
            f"{places.state_folder()}: stop it there, or set XDG_STATE_HOME here"
        )
    if owner["socket"] != places.own_socket():
        raise OwnDaemonError(
            f"your daemon listens at {owner['socket']}, and programs here look at "
            f"{places.own_socket()}: holdfast stop, then start it again"
        )
    _wait_until_it_answers()


def _wait_until_it_answers():
    deadline = time.monotonic() + START_SECONDS
    seen = False
    while not answers():
        alive = own_lock.owner() is not None
        seen = seen or alive
        late = time.monotonic() > deadline
        if late or (seen and not alive):
            raise OwnDaemonError(
                "the daemon did not start; its log says:\n" + log_tail(8)
            )
        time.sleep(0.02)


def log_tail(lines):
    """The last lines of the log."""
    try:
        with open(log_file(), "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - (lines << 10)))
            text = file.read().decode(errors="replace")
    except FileNotFoundError:
        return f"(there is no {log_file()})"
    return "\n".join(text.splitlines()[-lines:])


# ---- stop


def stop():
    """Ends the daemon in order; returns whether one ran. Waits until it is gone.

    OwnDaemonError: it runs on another machine, or does not end.
    """
    owner = own_lock.owner()
    if owner is None:
        return False
    if owner["host"] != socket.gethostname():
        raise OwnDaemonError(f"your daemon runs on {owner['host']}: stop it there")
    if owner["unit"]:
        user_unit.stop()
    else:
        os.kill(owner["pid"], signal.SIGTERM)
    deadline = time.monotonic() + STOP_SECONDS
    while own_lock.owner() is not None:
        if time.monotonic() > deadline:
            raise OwnDaemonError(
                f"process {owner['pid']} has not ended in {STOP_SECONDS} s; it may "
                "still save sessions (holdfast logs), which kill -9 loses"
            )
        time.sleep(0.02)
    return True


# ---- for connect()


def start_for_session():
    """For connect(session=...) where nobody runs a daemon: starts one that ends when it
    has had nothing to hold for ten minutes. Says so. What is in the way is said, too,
    and then the program's private daemon has the session."""
    try:
        started = start([f"--exit_when_idle={IDLE_SECONDS}"])
    except (OwnDaemonError, OSError) as error:
        print(f"holdfast: a private daemon is used: {error}", file=sys.stderr)
        return
    if started:
        print(
            "holdfast: your daemon is started, and keeps the session (holdfast status, "
            "holdfast stop)",
            file=sys.stderr,
        )
