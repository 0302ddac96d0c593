# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""What all users of a daemon share: one takes all that he can, and another still
connects, works and ends."""

import contextlib
import os
import pwd
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request

import pytest
from daemon_users import new_token

import holdfast
from holdfast.errors import HoldfastError

# So few descriptors that one program could have them all.
FEW = ("prlimit", "--nofile=200:200")
WORK = """
with holdfast.connect() as session:
    x = holdfast.ones(3)
    assert (x + x).sum().item() == 6
    assert holdfast.tensor([1.0] * 100_000).sum().item() == 100_000
print("worked", flush=True)
"""


def program(account, code, **env):
    """A program of that account of this machine."""
    user = pwd.getpwnam(account)
    become = f"os.setgroups([]); os.setgid({user.pw_gid}); os.setuid({user.pw_uid})\n"
    return subprocess.Popen(
        [sys.executable, "-c", f"import os, socket, holdfast\n{become}{code}"],
        env={**os.environ, **env},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def works(account, **env):
    """The program of another user, from connecting to the end."""
    out, _ = program(account, WORK, **env).communicate(timeout=120)
    assert out == "worked\n"


@pytest.fixture
def anyones(start_daemon):
    """A daemon with few descriptors that every account of this machine may use."""
    if os.geteuid() != 0:
        pytest.skip("only root can be other users")
    with tempfile.TemporaryDirectory(prefix="holdfast-users-") as folder:
        os.chmod(folder, 0o755)
        yield start_daemon(
            f"--socket={folder}/d.sock",
            "--socket_mode=0666",
            "--http=127.0.0.1:0",
            wrapper=FEW,
        )


TAKE = {
    "silent sockets": """
kept = []
while len(kept) < 2000:
    one = socket.socket(socket.AF_UNIX)
    one.connect(os.environ["HOLDFAST_ADDRESS"][5:])
    one.settimeout(0.02)
    kept.append(one)
    try:
        if one.recv(1 << 16) is not None: break  # the refusal
    except TimeoutError:
        pass
""",
    "sessions": """
kept = []
try:
    while len(kept) < 2000: kept.append(holdfast.connect(default=False))
except holdfast.errors.HoldfastError as error:
    assert "are for others" in str(error) or "of users with few" in str(error), error
""",
    "memory in pieces": """
kept = []
holdfast.connect()
try:
    # Each has a segment of its own, which is a descriptor.
    while len(kept) < 500:
        kept.append(holdfast.zeros(1 << 18))
        kept[-1][:1].item()
except holdfast.errors.HoldfastError as error:
    assert "are for others" in str(error), error
""",
}


@pytest.mark.parametrize("what", TAKE)
def test_local_users_leave_others_descriptors(anyones, what):
    address = anyones.address("shm")
    code = TAKE[what] + 'print("taken", len(kept), flush=True); input()\n'
    hungry = program("nobody", code, HOLDFAST_ADDRESS=address)
    taken, count = hungry.stdout.readline().split()
    assert taken == "taken" and 10 < int(count) < 400
    works("daemon", HOLDFAST_ADDRESS=address)
    hungry.communicate("\n", timeout=60)
    works("nobody", HOLDFAST_ADDRESS=address)


@pytest.mark.parametrize("who", ["user", "stranger"])
def test_connections_over_grpc_leave_others_descriptors(start_daemon, tmp_path, who):
    tokens = {user: new_token(tmp_path / "tokens", user) for user in ("alice", "bob")}
    daemon = start_daemon(f"--token_file={tmp_path}/tokens", wrapper=FEW)
    before = holdfast.connect(daemon.listen, token=tokens["bob"], default=False)
    host, port = daemon.listen.split(":")
    with contextlib.ExitStack() as kept:
        if who == "user":
            with pytest.raises(HoldfastError, match="are for others"):
                for _ in range(1000):
                    kept.enter_context(
                        holdfast.connect(
                            daemon.listen, token=tokens["alice"], default=False
                        )
                    )
        else:
            for _ in range(900):
                kept.enter_context(socket.create_connection((host, port), 60))
        for _ in range(3):
            with holdfast.connect(daemon.listen, token=tokens["bob"], default=False):
                pass
        assert not before.closed
        before.close()


def test_a_daemon_that_nobody_else_can_ask_is_healthy(anyones):
    """Silent connections of one user to the page take neither its threads nor its
    descriptors from a supervisor's."""
    addresses = anyones.http
    code = """
host, port = os.environ["PAGE"].split(":")
kept = [socket.create_connection((host, port), 60) for _ in range(300)]
print("taken", flush=True); input()
"""
    hungry = program("nobody", code, PAGE=addresses)
    assert hungry.stdout.readline() == "taken\n"
    begin = time.monotonic()
    for _ in range(5):
        with urllib.request.urlopen(f"http://{addresses}/healthz", timeout=60) as page:
            assert page.status == 200
    # They would have kept eight threads busy for two minutes.
    assert time.monotonic() - begin < 20
    works("daemon", HOLDFAST_ADDRESS=anyones.address("shm"))
    hungry.communicate("\n", timeout=60)
