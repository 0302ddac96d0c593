# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The user's own daemon as a unit of `systemctl --user`."""

import os
import subprocess
import sys
from pathlib import Path

from holdfast.service import places

NAME = "holdfastd.service"
_UNIT = """\
# Written by `holdfast start`, which writes it anew each time.
[Unit]
Description=Holdfast: holds your tensors
StartLimitIntervalSec=60
StartLimitBurst=5

[Service]
Type=exec
ExecStart={command}
{environment}
# It saves what sessions keep.
TimeoutStopSec=180
Restart=on-failure
RestartSec=2
UMask=0077

[Install]
WantedBy=default.target
"""
# What the daemon is to have from the shell that starts it, not from systemd.
_PASSED_ON = (
    "CUDA_VISIBLE_DEVICES",
    "HOLDFAST_DAEMON",
    "HOLDFAST_PLUGIN_PATH",
    "HOLDFAST_SOCKET",
    "LD_LIBRARY_PATH",
    "OMP_NUM_THREADS",
    "XDG_STATE_HOME",
)


def available():
    """Whether systemd runs for this user."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return bool(runtime) and Path(runtime, "systemd/private").exists()


def path():
    return Path(places.config_file()).parent.parent / "systemd/user" / NAME


def text(more=()):
    """The unit's file."""
    import holdfast

    above = str(Path(holdfast.__file__).parent.parent)
    variables = {n: os.environ[n] for n in _PASSED_ON if os.environ.get(n)}
    variables["PYTHONPATH"] = above
    command = [sys.executable, "-m", "holdfast.service.become", "--unit", *more]
    return _UNIT.format(
        command=" ".join(map(_quoted, command)),
        environment="\n".join(
            f"Environment={_quoted(f'{name}={value}')}"
            for name, value in sorted(variables.items())
        ),
    )


def _quoted(word):
    """As systemd reads it: no escapes of a shell's, no %specifiers, no variables."""
    word = word.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return '"' + word.replace("$", "$$") + '"'


def start(more=()):
    path().parent.mkdir(parents=True, exist_ok=True)
    path().write_text(text(more))
    _systemctl("daemon-reload")
    _systemctl("reset-failed", NAME, check=False)
    _systemctl("start", NAME)


def stop():
    _systemctl("stop", NAME)


def lingers():
    """Whether systemd goes on for the user who has logged out."""
    import getpass

    return Path("/var/lib/systemd/linger", getpass.getuser()).exists()


def _systemctl(*arguments, check=True):
    from holdfast.service.own_daemon import OwnDaemonError

    done = subprocess.run(
        ["systemctl", "--user", *arguments], capture_output=True, text=True
    )
    if check and done.returncode:
        raise OwnDaemonError(
            f"systemctl --user {' '.join(arguments)}: {done.stderr.strip()}. "
            "holdfast start --detached goes without systemd"
        )
