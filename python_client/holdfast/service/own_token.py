# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The token of the user's own daemon: its gRPC port, which ssh forwards, is on
loopback, where every user of the machine could knock."""

import os
import pwd
from pathlib import Path

from holdfast.service import places


def hashes():
    """What the daemon reads."""
    return Path(places.state_folder(), "tokens")


def text():
    """The token itself, for the user's eyes."""
    return Path(places.state_folder(), "token").read_text().strip()


def make():
    """Makes the token and the daemon's file of its hash, unless they are there."""
    from holdfast.commands import token

    folder = places.private_folder(places.state_folder())
    secret = folder / "token"
    if secret.exists() and hashes().exists():
        return
    hashes().unlink(missing_ok=True)
    made = token.make(str(hashes()), _user(), admin=True)
    temporary = folder / ".token"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.write(made + "\n")
    temporary.rename(secret)


def _user():
    """As the daemon calls who comes through the Unix socket, so that sessions are one
    user's however that user comes."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        return f"uid:{os.geteuid()}"
