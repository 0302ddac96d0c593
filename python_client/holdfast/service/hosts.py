# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Hosts with names: ~/.config/holdfast/config.toml, and /etc/holdfast/client.conf for
the whole machine.

    use = "box"

    [hosts.box]
    address = "box.example.org:50151"    # or unix:/path, or ssh://user@box
    token = "hf_..."                     # or token_file = "/path"
    ca = "/home/me/ca.crt"               # or "system"; with certificate = and key =
"""

import collections
import os
import re
import stat

from holdfast.service import places

_FIELDS = ("address", "token", "token_file", "ca", "certificate", "key")
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_HEADER = """\
# Hosts of Holdfast. `holdfast login` and `holdfast use` write this file anew; they keep
# what it says, and no comments.
"""


class HostsError(ValueError):
    """The hosts' file or a host's address cannot be used; the message says why."""


class Host(collections.namedtuple("Host", _FIELDS, defaults=[""] * 5)):
    """Where a daemon is and what to show it, all texts: what connect() takes."""

    def credentials(self):
        """As _C.connect takes them."""
        token = self.token
        if not token and self.token_file:
            try:
                with open(os.path.expanduser(self.token_file)) as file:
                    token = file.read().strip()
            except OSError as error:
                raise HostsError(f"{self.token_file}: {error.strerror}") from None
        paths = (os.path.expanduser(p) for p in (self.ca, self.certificate, self.key))
        return (token, *paths, False)


_SOCKETS = ("unix:", "grpc+unix:")
NOTHING = ("", "", "", "", False)


def read(path):
    """A file's {"use": name or None, "hosts": {name: Host}}."""
    try:
        with open(path, "rb") as file:
            data = file.read()
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return {"use": None, "hosts": {}}
    import tomllib

    try:
        found = tomllib.loads(data.decode())
    except ValueError as error:
        raise HostsError(f"{path}: {error}") from None
    hosts = found.pop("hosts", {})
    use = found.pop("use", None)
    if found or not isinstance(hosts, dict) or not isinstance(use, (str, type(None))):
        what = f"`{next(iter(found))}`" if found else "something else"
        raise HostsError(
            f'{path}: there may be use = "NAME" and [hosts.NAME]. Got {what}'
        )
    result = {name: _host(path, name, table) for name, table in hosts.items()}
    if any(host.token for host in result.values()):
        _check_private(path)
    return {"use": use, "hosts": result}


def _host(path, name, table):
    wrong = (
        [key for key in table if key not in _FIELDS] if isinstance(table, dict) else 1
    )
    if wrong or not all(isinstance(value, str) for value in table.values()):
        raise HostsError(
            f"{path}: [hosts.{name}] may have the texts {', '.join(_FIELDS)}. Got "
            + (", ".join(table) if isinstance(table, dict) else "something else")
        )
    if not table.get("address"):
        raise HostsError(f"{path}: [hosts.{name}] needs an address")
    return Host(**table)


def _check_private(path):
    mode = os.stat(path).st_mode
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise HostsError(
            f"{path} has a token, and others may read it: chmod 600 {path}"
        )


def write(use, hosts):
    """Replaces the user's file as a whole; its mode is 0600."""
    import tempfile

    path = places.config_file()
    folder = os.path.dirname(path)
    places.private_folder(folder)
    lines = [_HEADER]
    if use is not None:
        lines.append(f"use = {_toml(use)}\n")
    for name, host in sorted(hosts.items()):
        lines.append(f"\n[hosts.{_toml(name)}]\n")
        fields = host._asdict().items()
        lines += [f"{key} = {_toml(value)}\n" for key, value in fields if value]
    descriptor, temporary = tempfile.mkstemp(prefix=".config-", dir=folder)
    with open(descriptor, "w", encoding="utf-8") as file:
        file.writelines(lines)
    os.rename(temporary, path)


def _toml(text):
    """TOML's basic strings are JSON's, but for one character."""
    import json

    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def check_name(name):
    """HostsError: connect(name) would mean something else."""
    if not _NAME.fullmatch(name):
        raise HostsError(
            f"a host's name has letters, digits, and . - _ between them. Got {name!r}"
        )


def known():
    """{name: Host}: the user's, and beneath them the machine's."""
    return read(places.machine_file())["hosts"] | read(places.config_file())["hosts"]


def chosen():
    """(name or address that programs use which name none, where that is said)."""
    if variable := os.environ.get("HOLDFAST_ADDRESS"):
        return variable, "HOLDFAST_ADDRESS"
    for path in (places.config_file(), places.machine_file()):
        if use := read(path)["use"]:
            return use, path
    return "", "nobody"


def resolve(address):
    """(address, credentials) as _C.connect takes them, of what a program gave.

    "" is what chosen() says, and may stay "": this machine's daemon. A name is a
    host's, else a machine's with the default port; ssh://... opens a tunnel.
    HostsError: the files cannot be used, or ssh does not get there.
    """
    address = address or chosen()[0]
    if not address:
        return "", NOTHING
    if address.startswith(_SOCKETS):
        return address, _beside(address)
    hosts = known()
    host = hosts.get(address)
    if host is None:
        host = next((h for h in hosts.values() if h.address == address), Host(address))
    return reach(host)


def reach(host):
    """(address, credentials) that lead to the host; over ssh a tunnel is opened."""
    if host.address.startswith("ssh://"):
        from holdfast.service import ssh

        return ssh.tunnel(host.address).connect_arguments(host)
    return with_port(host.address), host.credentials()


def with_port(address):
    """ "box" is "box:50151"; other spellings stay as they are."""
    bare = address.removeprefix("grpc://")
    if re.fullmatch(r"[^:/]+|\[[0-9a-fA-F:.%]+\]", bare):
        return f"{bare}:{places.DEFAULT_PORT}"
    return address


def _beside(address):
    """Of a tunnel that another process of this program holds: see ssh.Tunnel."""
    token = os.path.dirname(address.removeprefix("grpc+unix:")) + "/token"
    if address.startswith("grpc+unix:") and os.path.exists(token):
        return Host(address, token_file=token).credentials()
    return NOTHING
