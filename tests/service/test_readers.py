# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""--http: sums are everybody's, a session's row is its user's and the admins'."""

import getpass
import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request

import pytest
from daemon_users import new_token

import holdfast
from holdfast.daemon import Daemon

NOBODY = 65534


def get(daemon, path, token=None, **headers):
    """(status, text) of a request of this process's user."""
    request = urllib.request.Request(f"http://{daemon.http_address}{path}")
    if token is not None:
        request.add_header("Authorization", f"Bearer {token}")
    for name, value in headers.items():
        request.add_header(name.replace("_", "-"), value)
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def seen(daemon, token=None, **headers):
    """(users with a row in the status, users with a row in the metrics, how many
    sessions there are)."""
    status, text = get(daemon, "/api/status", token, **headers)
    assert status == 200, text
    shown = json.loads(text)
    metrics = get(daemon, "/metrics", token, **headers)[1]
    rows = re.findall(
        r'holdfast_session_ops_total.session="\d+",user="([^"]*)"', metrics
    )
    assert shown["visible_count"] == len(shown["sessions"])
    users = sorted(row["user"] for row in shown["sessions"])
    return users, sorted(rows), shown["session_count"]


@pytest.fixture
def tokens(tmp_path):
    file = tmp_path / "tokens"
    users = {name: new_token(file, name) for name in ("alice", "bob")}
    users["boss"] = new_token(file, "boss", "--admin")
    users["file"] = file
    return users


def test_tokens_open_rows(tokens):
    with Daemon("--http=127.0.0.1:0", f"--token_file={tokens['file']}") as daemon:
        sessions = [
            holdfast.connect(daemon.grpc_address, token=tokens[user], default=False)
            for user in ("alice", "bob")
        ]
        both = ["alice", "bob"]
        assert seen(daemon) == ([], [], 2)
        assert seen(daemon, tokens["alice"]) == (["alice"], ["alice"], 2)
        assert seen(daemon, tokens["boss"]) == (both, both, 2)
        for path in ("/metrics", "/api/status"):
            status, text = get(daemon, path, "hf_0_0")
            assert status == 401 and "none of this daemon's" in text
        for path in ("/healthz", "/readyz", "/"):
            assert get(daemon, path)[0] == 200
        for session in sessions:
            session.close()


def test_guesses_are_slowed_down(tokens):
    with Daemon("--http=127.0.0.1:0", f"--token_file={tokens['file']}") as daemon:
        statuses = [get(daemon, "/metrics", "hf_0_0")[0] for _ in range(8)]
        assert statuses[0] == 401 and statuses[-1] == 429


def test_a_daemon_without_tokens_takes_none():
    with Daemon("--http=127.0.0.1:0") as daemon:
        status, text = get(daemon, "/metrics", "hf_0_0")
        assert status == 401 and "--token_file" in text


def test_the_daemons_own_user_sees_all_but_not_through_a_proxy():
    with Daemon("--http=127.0.0.1:0") as daemon:
        with holdfast.connect(daemon.shm_address, default=False):
            me = getpass.getuser()
            assert seen(daemon) == ([me], [me], 1)
            for header in ("X_Forwarded_For", "Forwarded", "Via"):
                assert seen(daemon, **{header: "10.0.0.1"}) == ([], [], 1)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
@pytest.mark.parametrize("flags", [[], ["--http_everything"]])
def test_another_local_user_sees_their_own(flags):
    code = (
        "import sys, urllib.request;"
        "print(urllib.request.urlopen(sys.argv[1]).read().decode())"
    )
    with Daemon("--http=127.0.0.1:0", *flags) as daemon:
        with holdfast.connect(daemon.shm_address, default=False):
            text = subprocess.run(
                [os.path.realpath(sys.executable), "-I", "-S", "-c", code]
                + [f"http://{daemon.http_address}/api/status"],
                user=NOBODY,
                check=True,
                capture_output=True,
                timeout=60,
                cwd="/",
            ).stdout
    shown = json.loads(text)
    assert shown["session_count"] == 1
    assert len(shown["sessions"]) == len(flags)
    assert shown["viewer"] == ("" if flags else "nobody")
