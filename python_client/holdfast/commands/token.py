# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Makes, lists and revokes the tokens that users show a daemon over the network.

holdfast token create alice --file tokens --days 90
holdfast token list --file tokens
holdfast token revoke 3f2a91c0 --file tokens

The file is what holdfastd --token_file names. A running daemon sees changes within a
second; sessions opened with a token that was revoked end. The file has hashes only: a
token is shown once, when it is made.
"""

import argparse
import contextlib
import datetime
import fcntl
import hashlib
import os
import re
import secrets
import tempfile
import time

from holdfast.commands._daemon import fail
from holdfast.commands._text import print_table

HELP = "make, list and revoke tokens"

_HEADER = """\
# Tokens of holdfastd (--token_file). Edit with: holdfast token
# ID USER ROLE SHA256 CREATED EXPIRES
"""
# What fits a field of the file; names of local users and of certificates mostly do.
_USER = re.compile(r"[^\s#()][^\s()]{0,255}")


class TokenFileError(Exception):
    """The file cannot be used; the message says why."""


def add_arguments(parser):
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")
    create = verbs.add_parser("create", help="make a token and print it")
    create.add_argument("user", help="who it is for")
    create.add_argument("--admin", action="store_true", help="with the role admin")
    create.add_argument(
        "--days", type=float, help="how long it is good (default: until revoked)"
    )
    revoke = verbs.add_parser("revoke", help="take a token back")
    revoke.add_argument("token", help="its ID, or a user for all of theirs")
    listing = verbs.add_parser("list", help="list tokens")
    for verb in (create, revoke, listing):
        verb.add_argument(
            "--file",
            default=os.environ.get("HOLDFASTD_TOKEN_FILE", "/etc/holdfast/tokens"),
            help="the token file (default: HOLDFASTD_TOKEN_FILE, else "
            "/etc/holdfast/tokens)",
        )


def main(args):
    try:
        return {"create": _create, "revoke": _revoke, "list": _list}[args.verb](args)
    except TokenFileError as error:
        return fail(f"{args.file}: {error}")
    except OSError as error:
        return fail(f"{args.file}: {error.strerror or error}")


def _create(args):
    if not _USER.fullmatch(args.user):
        return fail(f"a user's name has no spaces and parentheses. Got {args.user!r}.")
    if args.days is not None and not 0 < args.days < 36500:
        return fail(f"--days must be above 0 and below 36500. Got {args.days:g}.")
    print(make(args.file, args.user, args.admin, args.days))
    return 0


def make(path, user, admin=False, days=None):
    """Adds a token to the file at `path`, which is made if need be; returns it."""
    with _locked(path):
        lines = _read(path, missing_is_empty=True)
        if lines and not lines[-1].endswith("\n"):
            lines[-1] += "\n"
        known = {fields[0] for fields in _entries(lines)}
        number = secrets.token_hex(4)
        while number in known:
            number = secrets.token_hex(4)
        token = f"hf_{number}_{secrets.token_urlsafe(32)}"
        now = int(time.time())
        expires = 0 if days is None else now + round(days * 86400)
        role = "admin" if admin else "user"
        digest = hashlib.sha256(token.encode()).hexdigest()
        lines.append(f"{number} {user} {role} {digest} {now} {expires}\n")
        _write(path, lines)
    return token


def _revoke(args):
    with _locked(args.file):
        lines = _read(args.file)
        gone = [f for f in _entries(lines) if args.token in (f[0], f[1])]
        if not gone:
            return fail(
                f"{args.file} has no token with the ID and no user of the name "
                f"{args.token!r}; holdfast token list shows what there is."
            )
        numbers = {fields[0] for fields in gone}
        kept = [x for x in lines if not x.split() or x.split()[0] not in numbers]
        _write(args.file, kept)
    for fields in gone:
        print(f"revoked {fields[0]} of {fields[1]}")
    return 0


def _list(args):
    rows = [("ID", "USER", "ROLE", "CREATED", "EXPIRES")]
    for number, user, role, _, created, expires in _entries(_read(args.file)):
        until = "never" if expires == "0" else _date(expires)
        if expires != "0" and int(expires) <= time.time():
            until += " (expired)"
        rows.append((number, user, role, _date(created), until))
    print_table(rows)
    return 0


def _date(seconds):
    moment = datetime.datetime.fromtimestamp(int(seconds))
    return moment.strftime("%Y-%m-%d %H:%M")


def _entries(lines):
    """Fields of the lines that are tokens."""
    for number, line in enumerate(lines, 1):
        fields = line.split()
        if not fields or fields[0].startswith("#"):
            continue
        if len(fields) != 6 or not (fields[4].isdigit() and fields[5].isdigit()):
            raise TokenFileError(
                f"line {number} is no token: ID USER ROLE SHA256 CREATED EXPIRES"
            )
        yield fields


@contextlib.contextmanager
def _locked(path):
    """Two commands at once take turns."""
    folder = os.path.dirname(os.path.abspath(path))
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _read(path, missing_is_empty=False):
    try:
        with open(path, encoding="utf-8") as file:
            return file.readlines()
    except FileNotFoundError:
        if missing_is_empty:
            return [_HEADER]
        raise
    except UnicodeDecodeError:
        raise TokenFileError("this is no token file: it is not text") from None


def _let_the_daemon_read(temporary, path, folder):
    """A daemon that runs as a user of its own reads the file by owner or group.

    A file that is there keeps its owner and mode. A new one of root's gets the
    group of its folder: the package makes /etc/holdfast root:holdfast.
    """
    try:
        former = os.stat(path)
    except FileNotFoundError:
        group = os.stat(folder).st_gid
        if os.geteuid() == 0 and group != 0:
            os.chown(temporary, 0, group)
            os.chmod(temporary, 0o640)
        return
    if (former.st_uid, former.st_gid) != (os.geteuid(), os.getegid()):
        os.chown(temporary, former.st_uid, former.st_gid)
    os.chmod(temporary, former.st_mode & 0o640)


def _write(path, lines):
    """All or nothing: a daemon that reads meanwhile sees the old file or the new."""
    path = os.path.realpath(path)
    folder = os.path.dirname(path)
    descriptor, temporary = tempfile.mkstemp(prefix=".tokens-", dir=folder)
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            file.writelines(lines)
            file.flush()
            os.fsync(descriptor)
        _let_the_daemon_read(temporary, path, folder)
        os.rename(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    directory = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(directory)
    finally:
        os.close(directory)
