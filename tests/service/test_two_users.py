# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Two users of one daemon: by tokens over TLS, and by the kernel's word on the socket.

What one has, the other cannot replace, drop, open or attach to; a restart changes
nothing in that.
"""

import os
import pwd
import subprocess
import sys
import tempfile
import textwrap

import pytest
from daemon_users import Authority, new_token

from holdfast.daemon import Daemon


class ByToken:
    """Users with tokens, over gRPC with TLS."""

    def __init__(self, folder):
        self.authority = Authority(folder)
        certificate, key = self.authority.issue("daemon", ["127.0.0.1"])
        tokens = folder / "tokens"
        self.tokens = {user: new_token(tokens, user) for user in ("alice", "bob")}
        self.names = {user: user for user in self.tokens}
        self.flags = [
            f"--tls_certificate={certificate}",
            f"--tls_key={key}",
            f"--token_file={tokens}",
        ]

    def address(self, daemon):
        return daemon.grpc_address

    def environment(self, user):
        return {
            "HOLDFAST_TOKEN": self.tokens[user],
            "HOLDFAST_CA": str(self.authority.path),
        }

    def preamble(self, user):
        return ""


class ByAccount:
    """Accounts of this machine, over a socket that all of them may open."""

    accounts = {"alice": "nobody", "bob": "daemon"}

    def __init__(self, folder):
        if os.geteuid() != 0:
            pytest.skip("only root can be other users")
        # Somewhere that everybody reaches.
        self.folder = tempfile.TemporaryDirectory(prefix="holdfast-users-")
        os.chmod(self.folder.name, 0o755)
        self.names = self.accounts
        self.flags = [f"--socket={self.folder.name}/d.sock", "--socket_mode=0666"]

    def address(self, daemon):
        return daemon.shm_address

    def environment(self, user):
        return {}

    def preamble(self, user):
        account = pwd.getpwnam(self.accounts[user])
        return (
            f"import os; os.setgroups([]); os.setgid({account.pw_gid});"
            f"os.setuid({account.pw_uid})\n"
        )


class Box:
    """A daemon with state, and programs of its two users."""

    def __init__(self, kind, folder):
        self.users = kind(folder)
        self.flags = [*self.users.flags, f"--state_dir={folder}/state"]
        self.daemon = Daemon(*self.flags)

    def restart(self, how):
        getattr(self.daemon, how)()
        self.daemon = Daemon(*self.flags)

    def start(self, user, code, **popen):
        # What the package needs is loaded while we may still read it.
        code = "import holdfast as torch\n" + self.users.preamble(user) + code
        return subprocess.Popen(
            [sys.executable, "-c", code],
            env={
                **os.environ,
                "HOLDFAST_ADDRESS": self.users.address(self.daemon),
                **self.users.environment(user),
            },
            stdout=subprocess.PIPE,
            text=True,
            **popen,
        )

    def run(self, user, code):
        """What a program of the user prints."""
        program = self.start(user, textwrap.dedent(code))
        out, _ = program.communicate(timeout=120)
        assert program.returncode == 0, out
        return out.strip()


@pytest.fixture(params=[ByToken, ByAccount])
def box(request, tmp_path):
    box = Box(request.param, tmp_path)
    yield box
    box.daemon.kill()


PUBLISH = """
    torch.publish("w", torch.full((3,), {value}.0), durable=True, readers={readers})
"""

# Names: each user has their own, so that a taken one is no news either.
ATTEMPTS = """
    for call in (
        lambda: torch.lookup("w"),
        lambda: torch.lookup("w", owner={owner!r}),
        lambda: torch.unpublish("w"),
    ):
        try:
            call()
        except LookupError as error:
            assert "nothing that you may read" in str(error), error
        else:
            raise SystemExit("got in")
    assert torch.published() == []
"""


def test_names_are_their_owners(box):
    owner = box.users.names["alice"]
    box.run("alice", PUBLISH.format(value=1, readers=None))
    box.run("bob", ATTEMPTS.format(owner=owner))
    # Bob's name beside hers replaces nothing.
    box.run("bob", PUBLISH.format(value=2, readers=None))
    box.run("bob", 'torch.unpublish("w")')
    assert box.run("alice", 'print(torch.lookup("w").tolist())') == "[1.0, 1.0, 1.0]"


def test_readers_read_and_do_not_write(box):
    owner, bob = box.users.names["alice"], box.users.names["bob"]
    box.run("alice", PUBLISH.format(value=1, readers=[bob]))
    code = f"""
        w = torch.lookup("w", owner={owner!r})
        (listed,) = torch.published()
        assert (listed.owner, listed.readers) == ({owner!r}, ()), listed
        try:
            w.add_(1)
        except RuntimeError:
            pass
        else:
            raise SystemExit("wrote")
        try:
            torch.unpublish("w")
        except LookupError:
            pass
        else:
            raise SystemExit("dropped")
        print(w.tolist())
    """
    assert box.run("bob", code) == "[1.0, 1.0, 1.0]"
    # Taken back with the next version.
    box.run("alice", PUBLISH.format(value=3, readers=None))
    box.run("bob", ATTEMPTS.format(owner=owner))


KEEP = """
    with torch.connect(session="night") as session:
        torch.keep("x", torch.arange(4.0))
        torch.detach()
"""
ATTACH = """
    from holdfast.errors import NotFoundError
    try:
        torch.connect(session="night", attach=True)
    except NotFoundError as error:
        print("none")
    else:
        print(torch.kept("x").tolist())
"""


def test_sessions_are_attached_to_by_their_users(box):
    box.run("alice", KEEP)
    assert box.run("bob", ATTACH) == "none"
    assert box.run("alice", ATTACH) == "[0.0, 1.0, 2.0, 3.0]"


@pytest.mark.parametrize("how", ["stop", "kill"])
def test_a_restart_keeps_owners(box, how):
    owner, bob = box.users.names["alice"], box.users.names["bob"]
    box.run("alice", PUBLISH.format(value=1, readers=None))
    box.run("alice", 'torch.publish("for_bob", torch.ones(2), True, [%r])' % bob)
    box.run("alice", KEEP)
    box.restart(how)
    box.run("bob", ATTEMPTS.format(owner=owner).rsplit("\n", 2)[0])
    assert box.run("bob", "print([p.name for p in torch.published()])") == "['for_bob']"
    found = f'print(torch.lookup("for_bob", owner={owner!r}).tolist())'
    assert box.run("bob", found) == "[1.0, 1.0]"
    assert box.run("alice", 'print(torch.lookup("w").tolist())') == "[1.0, 1.0, 1.0]"
    assert box.run("bob", ATTACH) == "none"
    if how == "stop":  # what SIGTERM saves
        assert box.run("alice", ATTACH) == "[0.0, 1.0, 2.0, 3.0]"
    # The next start again, and a name that is dropped stays away.
    box.run("alice", 'torch.unpublish("w")')
    box.restart(how)
    names = "print([p.name for p in torch.published()])"
    assert box.run("alice", names) == "['for_bob']"
