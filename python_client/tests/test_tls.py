# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""gRPC over TLS: certificates of the daemon and of its users, good and bad."""

import contextlib
import os
import signal
import time

import numpy as np
import pytest
from daemon_users import Authority, command, new_token, wait_until
from test_trust import refusal

import holdfast
from holdfast.daemon import Daemon
from holdfast.errors import DaemonUnavailableError, HoldfastError


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tls")


@pytest.fixture(scope="module")
def authority(folder):
    return Authority(folder)


def tls_flags(pair):
    return f"--tls_certificate={pair[0]}", f"--tls_key={pair[1]}"


@pytest.fixture(scope="module")
def encrypted(authority, folder):
    tokens = folder / "tokens"
    pair = authority.issue("daemon", ["localhost", "127.0.0.1"])
    token = new_token(tokens, "alice")
    with Daemon(*tls_flags(pair), f"--token_file={tokens}") as daemon:
        daemon.token = token
        yield daemon


def test_a_session_over_tls(encrypted, authority):
    with holdfast.connect(
        encrypted.grpc_address, token=encrypted.token, ca=authority.path
    ) as session:
        # Large enough to go beside the stream, both ways.
        array = np.arange(1 << 20, dtype=np.int32)
        x = holdfast.from_numpy(array)
        assert np.array_equal((x + x).numpy(), array + array)
        assert session.transport == "grpc"
        del x
    result = command(
        "status",
        encrypted.grpc_address,
        HOLDFAST_TOKEN=encrypted.token,
        HOLDFAST_CA=str(authority.path),
    )
    assert result.returncode == 0, result.stderr


def failure(address, **options):
    with pytest.raises(HoldfastError) as error:
        holdfast.connect(address, default=False, timeout=20, **options)
    return str(error.value)


def test_what_is_wrong_is_said(encrypted, authority, folder):
    address = encrypted.grpc_address
    assert "speaks TLS: give ca=" in failure(address, token=encrypted.token)
    stranger = Authority(folder, "stranger")
    assert "is not to be trusted" in failure(address, ca=stranger.path)
    # Said once, and not by gRPC as well.
    told = command("status", address, HOLDFAST_CA=str(stranger.path)).stderr
    assert "is not to be trusted" in told and told.count("\n") == 1
    with Daemon() as plain:
        assert "does not speak TLS" in failure(plain.grpc_address, ca=authority.path)
        # What did not work is not used again.
        holdfast.connect(plain.grpc_address, default=False).close()
    assert "No such file" in failure(address, ca=folder / "none")
    assert "holds none" in failure(address, ca=folder / "daemon.key")
    assert "holdfast token create" in failure(address, ca=authority.path)


def test_a_certificate_for_another_host(authority):
    pair = authority.issue("elsewhere", ["gpu7.example.org"])
    with Daemon(*tls_flags(pair)) as daemon:
        text = failure(daemon.grpc_address, ca=authority.path)
        assert "not for the host" in text and "127.0.0.1" in text


def test_an_expired_certificate(authority, tmp_path):
    for seconds in (5, 20, 80):
        pair = authority.issue(f"brief{seconds}", ["127.0.0.1"], seconds=seconds)
        expires = time.time() + seconds
        with contextlib.ExitStack() as stack:
            try:
                address = stack.enter_context(Daemon(*tls_flags(pair))).grpc_address
                holdfast.connect(address, ca=authority.path, default=False).close()
            except (RuntimeError, HoldfastError):
                assert time.time() > expires  # it was not there in time
                continue
            time.sleep(max(0, expires + 1 - time.time()))
            assert "has expired" in failure(address, ca=authority.path)
            break
    else:
        pytest.fail("no daemon was there before its certificate had expired")
    # A daemon does not start with one.
    text = refusal(f"--socket={tmp_path}/d", "--listen=127.0.0.1:0", *tls_flags(pair))
    assert "expired at" in text and "Renew it" in text


def test_mutual_tls_names_the_user(authority, folder):
    pair = authority.issue("daemon2", ["127.0.0.1"])
    alice = authority.issue("alice")
    stranger = Authority(folder, "other").issue("mallory")
    old = authority.issue("old", seconds=-60)
    with Daemon(*tls_flags(pair), f"--tls_client_ca={authority.path}") as daemon:
        address, ca = daemon.grpc_address, authority.path
        with holdfast.connect(
            address, ca=ca, certificate=alice[0], key=alice[1], default=False
        ):
            listed = command("sessions", daemon.shm_address).stdout
            assert "alice" in listed and "certificate" in listed
        assert "certificate" in failure(address, ca=ca)
        text = failure(address, ca=ca, certificate=stranger[0], key=stranger[1])
        assert "refused our certificate" in text
        text = failure(address, ca=ca, certificate=old[0], key=old[1])
        assert "has expired" in text
        assert "go together" in failure(address, ca=ca, certificate=alice[0])
        assert "needs TLS" in failure(address, certificate=alice[0], key=alice[1])


def test_a_daemon_says_what_is_wrong_with_its_files(authority, tmp_path):
    one, two = authority.issue("one"), authority.issue("two")
    base = (f"--socket={tmp_path}/d.sock", "--listen=127.0.0.1:0")
    mixed = f"--tls_certificate={one[0]}", f"--tls_key={two[1]}"
    assert "does not fit" in refusal(*base, *mixed)
    assert "go together" in refusal(*base, mixed[0])
    assert "go together" in refusal(*base, f"--tls_client_ca={authority.path}")
    assert "No such file" in refusal(*base, mixed[0], "--tls_key=/nowhere")
    text = refusal(*base, f"--tls_certificate={one[1]}", mixed[1])
    assert "holds none" in text
    two[1].chmod(0o644)
    assert "must be private" in refusal(*base, *mixed)


def test_a_renewal_that_does_not_fit_is_told(authority, tmp_path):
    pair = authority.issue("renewed", ["127.0.0.1"])
    log = tmp_path / "log"
    with Daemon(*tls_flags(pair), f"--log_file={log}", "--log_level=info") as daemon:
        pair[0].write_bytes(authority.issue("another")[0].read_bytes())
        os.kill(daemon.pid, signal.SIGHUP)
        wait_until(lambda: "The former certificate stays" in log.read_text())
        assert f"does not fit {pair[0]}" in log.read_text()
        holdfast.connect(daemon.grpc_address, ca=authority.path, default=False).close()


def test_nobody_there_is_not_called_tls(authority):
    with pytest.raises(DaemonUnavailableError, match="Is holdfastd running there"):
        holdfast.connect("127.0.0.1:1", ca=authority.path, default=False, timeout=1)
