# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Who may use a daemon, and what of others they see: nothing."""

import json
import os
import subprocess

import pytest
from daemon_users import command, new_token, wait_until

import holdfast
from holdfast.daemon import Daemon, find_daemon
from holdfast.errors import HoldfastError, NotFoundError, SessionError


@pytest.fixture
def tokens(tmp_path):
    return tmp_path / "tokens"


@pytest.fixture
def guarded(tokens):
    """A daemon that asks for tokens; users alice and bob and the admin carol."""
    users = {name: new_token(tokens, name) for name in ("alice", "bob")}
    users["carol"] = new_token(tokens, "carol", "--admin")
    with Daemon(f"--token_file={tokens}") as daemon:
        daemon.users = users
        yield daemon


def connect(daemon, user, **options):
    return holdfast.connect(
        daemon.grpc_address, token=daemon.users[user], default=False, **options
    )


def test_a_token_file_closes_the_door(guarded):
    for token in ("", "hf_00000000_wrong"):
        with pytest.raises(SessionError, match="holdfast token create"):
            holdfast.connect(guarded.grpc_address, token=token, default=False)
    with connect(guarded, "alice") as session:
        assert session.transport == "grpc"
    # Its own machine's user needs none, over the socket.
    with holdfast.connect(guarded.shm_address, default=False) as session:
        assert session.transport == "shm"


def test_the_environment_brings_the_token(guarded, tmp_path):
    address = guarded.grpc_address
    assert command("status", address).returncode == 1
    result = command("status", address, HOLDFAST_TOKEN=guarded.users["alice"])
    assert result.returncode == 0, result.stderr
    file = tmp_path / "mine"
    file.write_text(guarded.users["alice"] + "\n")
    result = command("status", address, HOLDFAST_TOKEN_FILE=str(file))
    assert result.returncode == 0, result.stderr
    missing = command("status", address, HOLDFAST_TOKEN_FILE=str(tmp_path / "no"))
    assert "HOLDFAST_TOKEN_FILE" in missing.stderr and missing.returncode == 1


def test_users_see_their_own_sessions_only(guarded):
    with connect(guarded, "alice", session="model"):
        # Names are each user's own.
        with connect(guarded, "bob", session="model"):
            for user in ("alice", "bob"):
                result = command(
                    "status",
                    guarded.grpc_address,
                    "--json",
                    HOLDFAST_TOKEN=guarded.users[user],
                )
                seen = {s["user"] for s in json.loads(result.stdout)["sessions"]}
                assert seen == {user}
        with pytest.raises(NotFoundError):
            connect(guarded, "bob", session="model", attach=True)


def test_an_admin_lists_and_ends_sessions(guarded):
    address, carol = guarded.grpc_address, guarded.users["carol"]
    victim = connect(guarded, "alice")
    tensor = holdfast.ones(3)
    del tensor
    listed = command("sessions", address, "--json", HOLDFAST_TOKEN=carol)
    sessions = json.loads(listed.stdout)
    (mine,) = [s for s in sessions if s["user"] == "alice"]
    assert int(mine["id"]) == victim.id and mine["credential"].startswith("token ")
    text = command("sessions", address, HOLDFAST_TOKEN=carol).stdout
    assert "alice" in text and "RESERVED" in text
    # Users may not, and are told who may.
    for arguments, said in (
        (["limits", "--default", "--weight=2"], "only an admin may do that. Got bob"),
        (["kill", victim.id], f"no session of yours has the number {victim.id}"),
    ):
        refused = command(*arguments, address, HOLDFAST_TOKEN=guarded.users["bob"])
        assert refused.returncode == 1 and said in refused.stderr
    for arguments in (["sessions"], ["limits"]):
        text = command(*arguments, address, HOLDFAST_TOKEN=guarded.users["bob"]).stdout
        assert "alice" not in text and "(default)" not in text and "USER" in text
    result = command(
        "kill", victim.id, address, "--reason", "it is late", HOLDFAST_TOKEN=carol
    )
    assert result.returncode == 0, result.stderr
    with pytest.raises(HoldfastError, match="carol ended this session: it is late"):
        while True:
            victim.synchronize()
    gone = command("kill", victim.id, address, HOLDFAST_TOKEN=carol)
    assert gone.returncode == 1 and "no session has the number" in gone.stderr
    # The daemon's own user is an admin over its socket.
    result = command("sessions", guarded.shm_address)
    assert result.returncode == 0, result.stderr


def test_a_revoked_users_sessions_end(guarded, tokens):
    alice, bob = connect(guarded, "alice"), connect(guarded, "bob")
    assert command("token", "revoke", "alice", "--file", tokens).returncode == 0

    def told():
        try:
            alice.synchronize()
        except SessionError as error:
            assert "of alice was revoked" in str(error)
            return True
        return False

    wait_until(told)
    with pytest.raises(SessionError, match="revoked"):
        connect(guarded, "alice")
    bob.synchronize()
    bob.close()


def test_an_expired_token_is_refused(tokens):
    token = new_token(tokens, "alice", "--days", "0.00002")
    with Daemon(f"--token_file={tokens}") as daemon:

        def refused():
            try:
                holdfast.connect(
                    daemon.grpc_address, token=token, default=False
                ).close()
            except SessionError as error:
                return "expired at" in str(error)
            return False

        wait_until(refused)


def test_guessing_is_slowed_down(guarded):
    def guess():
        with pytest.raises(HoldfastError) as info:
            holdfast.connect(guarded.grpc_address, token="hf_0_0", default=False)
        return str(info.value)

    for _ in range(5):
        assert "none of this daemon's" in guess()
    # Each further one makes the next wait longer, so that the slowest machine comes to
    # where it guesses too early.
    wait_until(lambda: "too many wrong tokens" in guess())
    # Whoever has waited and has the right one comes in.
    wait_until(lambda: _comes_in(guarded))


def _comes_in(daemon):
    try:
        connect(daemon, "alice").close()
    except HoldfastError:
        return False
    return True


def test_programs_of_other_users_on_this_machine(tmp_path):
    """Without tokens the kernel says whose program it is; nobody is an admin so."""
    with Daemon() as daemon:
        with holdfast.connect(daemon.grpc_address, default=False):
            result = command("status", daemon.grpc_address, "--json")
            (mine,) = json.loads(result.stdout)["sessions"]
            local = command("status", daemon.shm_address, "--json")
            users = {s["user"] for s in json.loads(local.stdout)["sessions"]}
            assert mine["user"] in users
        refused = command("limits", daemon.grpc_address, "--default", "--weight=2")
        assert "only an admin" in refused.stderr


def refusal(*flags):
    """What the daemon says to flags that it does not start with."""
    result = subprocess.run(
        [find_daemon(), "--log_level=off", *flags],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert result.returncode == 1
    return result.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_token_file_of_root_is_its_folders_groups(tmp_path):
    """The daemon runs as a user of its own: the package's /etc/holdfast is
    root:holdfast, and what root makes there must be readable by that group."""
    folder = tmp_path / "etc"
    folder.mkdir(mode=0o750)
    os.chown(folder, 0, 12345)
    for user in ("alice", "bob"):
        assert command("token", "create", user, "--file", folder / "tokens").stdout
        made = os.stat(folder / "tokens")
        assert (made.st_uid, made.st_gid, made.st_mode & 0o777) == (0, 12345, 0o640)


def test_an_open_door_needs_its_flags(tmp_path, tokens):
    socket = f"--socket={tmp_path}/d.sock"
    anywhere = "--listen=0.0.0.0:0"
    assert "--allow_remote" in refusal(socket, anywhere)
    text = refusal(socket, anywhere, "--allow_remote")
    assert "--token_file" in text and "--allow_anonymous" in text
    new_token(tokens, "alice")
    text = refusal(socket, anywhere, "--allow_remote", f"--token_file={tokens}")
    assert "--tls_certificate" in text and "--allow_plaintext_tokens" in text
    tokens.chmod(0o644)
    assert "chmod 600" in refusal(socket, f"--token_file={tokens}")
    assert "token create" in refusal(socket, f"--token_file={tmp_path}/none")
    assert "--socket_mode" in refusal(socket, "--socket_mode=abc")


def test_a_token_does_not_travel_in_the_clear():
    with pytest.raises(SessionError, match="in the clear to 192.0.2.1:1"):
        holdfast.connect("192.0.2.1:1", token="hf_1_2", default=False)


def test_the_token_command(tokens):
    token = new_token(tokens, "alice")
    assert token.startswith("hf_") and token not in tokens.read_text()
    assert tokens.stat().st_mode & 0o777 == 0o600
    new_token(tokens, "bob", "--admin", "--days", "3")
    listed = command("token", "list", "--file", tokens).stdout
    assert "alice" in listed and "admin" in listed and "never" in listed
    result = command("token", "revoke", token.split("_")[1], "--file", tokens)
    assert "of alice" in result.stdout
    assert "alice" not in tokens.read_text() and "bob" in tokens.read_text()
    assert command("token", "revoke", "alice", "--file", tokens).returncode == 1
    for user in ("two words", "(anonymous)", "#x", ""):
        assert command("token", "create", user, "--file", tokens).returncode == 1
    nowhere = command("token", "create", "x", "--file", tokens / "x" / "y")
    assert nowhere.returncode == 1 and "Traceback" not in nowhere.stderr
    tokens.write_text("nonsense\n")
    broken = command("token", "list", "--file", tokens)
    assert broken.returncode == 1 and "line 1" in broken.stderr
