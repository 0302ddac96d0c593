# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Where a user's files lie: XDG's folders, and the machine's.

Texts, not pathlib's paths: every program that names no daemon looks at two of them.
"""

import os

DEFAULT_PORT = 50151


def _folder(variable, default):
    """A relative path in such a variable is to be ignored, says XDG."""
    named = os.environ.get(variable, "")
    if named.startswith("/"):
        return named
    home = os.path.expanduser("~")
    # Some users have no home, and need none to use a daemon.
    return f"{home if home != '~' else '/nonexistent'}/{default}"


def config_file():
    """What `holdfast login` and `holdfast use` write."""
    return _folder("XDG_CONFIG_HOME", ".config") + "/holdfast/config.toml"


def machine_file():
    """The machine's defaults, which its admin writes."""
    return os.environ.get("HOLDFAST_CLIENT_CONF") or "/etc/holdfast/client.conf"


def state_folder():
    """The own daemon's: its lock, log, token and what its sessions keep."""
    return _folder("XDG_STATE_HOME", ".local/state") + "/holdfast"


def own_socket():
    """Where the own daemon listens: as proto/default_socket.h has it."""
    if named := os.environ.get("HOLDFAST_SOCKET"):
        return named
    if runtime := os.environ.get("XDG_RUNTIME_DIR"):
        return f"{runtime}/holdfast/holdfastd.sock"
    return f"/tmp/holdfast-{os.geteuid()}/holdfastd.sock"


def service_socket():
    """Where the machine's service listens; "" where HOLDFAST_SOCKET names another."""
    if os.environ.get("HOLDFAST_SOCKET"):
        return ""
    return os.environ.get("HOLDFAST_SERVICE_SOCKET") or "/run/holdfast/holdfastd.sock"


def private_folder(path):
    """Makes a folder that its user alone enters; returns it, as a path."""
    from pathlib import Path

    os.makedirs(os.path.dirname(path), exist_ok=True)
    Path(path).mkdir(mode=0o700, exist_ok=True)
    return Path(path)
