# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""What users see and end of their own from the command line."""

import json
import os
import pwd

import pytest
from daemon_users import command, new_token, wait_until

import holdfast
from holdfast.daemon import Daemon
from holdfast.errors import HoldfastError, NotFoundError

ME = pwd.getpwuid(os.getuid()).pw_name


@pytest.fixture
def guarded(tmp_path):
    """A daemon with the users alice and bob, and a configuration."""
    tokens = tmp_path / "tokens"
    config = tmp_path / "holdfast.textproto"
    config.write_text('default_limits { memory: "64MiB" max_sessions: 9 }')
    users = {name: new_token(tokens, name) for name in ("alice", "bob")}
    with Daemon(f"--token_file={tokens}", f"--config={config}") as daemon:
        daemon.users = users
        yield daemon


def as_user(daemon, user, *arguments):
    token = daemon.users[user]
    address = daemon.grpc_address
    return command(*arguments, HOLDFAST_TOKEN=token, HOLDFAST_ADDRESS=address)


def connect(daemon, user, **options):
    token = daemon.users[user]
    return holdfast.connect(
        daemon.grpc_address, token=token, default=False, grace=600, **options
    )


def names(daemon, user):
    reply = json.loads(as_user(daemon, user, "status", "--json").stdout)
    return sorted(s["name"] for s in reply["sessions"] if s["name"])


def test_a_session_that_was_left(guarded):
    connect(guarded, "alice", session="model").close(keep=True)
    with connect(guarded, "bob", session="model") as others:
        assert names(guarded, "alice") == ["model"]
        result = as_user(guarded, "alice", "end", "model")
        assert (result.returncode, result.stdout) == (0, "session model has ended\n")
        wait_until(lambda: names(guarded, "alice") == [])
        others.synchronize()  # bob's of the same name is there
    with pytest.raises(NotFoundError):
        connect(guarded, "alice", session="model", attach=True)
    result = as_user(guarded, "alice", "end", "model")
    assert result.returncode == 1
    assert "alice has no session 'model'; holdfast status" in result.stderr


def test_a_session_in_use(guarded):
    used = connect(guarded, "alice", session="model")
    wait_until(lambda: names(guarded, "alice") == ["model"])
    for arguments in (["end", "model"], ["end", used.id]):
        result = as_user(guarded, "alice", *arguments)
        assert result.returncode == 1 and "a program uses session" in result.stderr
        assert "--force" in result.stderr
    used.synchronize()
    # Nobody ends another's, by number either.
    result = as_user(guarded, "bob", "end", used.id, "--force")
    assert result.returncode == 1 and "bob has no session" in result.stderr
    used.synchronize()
    result = as_user(guarded, "alice", "end", used.id, "--force")
    assert result.returncode == 0, result.stderr
    with pytest.raises(HoldfastError, match="alice ended this session"):
        while True:
            used.synchronize()


def test_a_session_without_a_name(guarded):
    unnamed = connect(guarded, "alice")
    result = as_user(guarded, "alice", "end", unnamed.id)
    assert result.returncode == 1 and "a program uses session" in result.stderr
    unnamed.synchronize()
    result = as_user(guarded, "alice", "end", unnamed.id, "--force")
    assert result.returncode == 0, result.stderr
    with pytest.raises(HoldfastError, match="alice ended this session"):
        while True:
            unnamed.synchronize()


def test_over_the_socket(daemon):
    address = daemon.shm_address
    holdfast.connect(address, session="left", grace=600, default=False).close(keep=True)
    result = command("end", "left", address)
    assert result.returncode == 0, result.stderr
    with pytest.raises(NotFoundError):
        holdfast.connect(address, session="left", attach=True, default=False)


def test_status_says_who_you_are(guarded):
    text = as_user(guarded, "alice", "status").stdout
    limits = "limits: memory 64.0 MiB, weight 1, max sessions 9"
    assert f"you are alice, user; {limits}" in text
    you = json.loads(as_user(guarded, "bob", "status", "--json").stdout)["you"]
    assert you["name"] == "bob" and int(you["limits"]["memory_bytes"]) == 64 << 20
    # The user that runs the daemon is an admin over its socket.
    text = command("status", guarded.shm_address).stdout
    assert (
        f"you are {ME}, admin; limits: memory 64.0 MiB, weight 1, max sessions 9"
        in text
    )
    set_ = ("--user", ME, "--memory=1GiB", "--idle-seconds=50")
    assert command("limits", guarded.shm_address, *set_).returncode == 0
    reply = json.loads(command("status", guarded.shm_address, "--json").stdout)
    assert int(reply["you"]["limits"]["memory_bytes"]) == 2**30
    assert "idle 50 s" in command("status", guarded.shm_address).stdout


def test_without_a_daemon(tmp_path):
    result = command("end", "model", f"unix:{tmp_path}/none.sock")
    assert result.returncode == 1
    assert "none.sock" in result.stderr and "Traceback" not in result.stderr
