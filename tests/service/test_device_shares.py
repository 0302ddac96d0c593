# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Users of different weights on a device that works later than it is told to, and
that takes all streams alike: kernels of the fake device take turns here, as large ones
do on a GPU. Who gets how much of it is the daemon's to say, by the device's time."""

import json
import subprocess
import sys
import time

import pytest
from daemon_users import new_token

from holdfast.daemon import Daemon

# Without end: the test says when.
SHORT = "while True: x.add_(1)"
LONG = "y = torch.ones(900, 900)\nwhile True: y @ y"
START = """
import sys
import holdfast as torch
torch.connect(sys.argv[1])
x = torch.zeros(4)
x.sum().item()
"""
SECONDS = 4


def start(daemon, token, code):
    return subprocess.Popen(
        [sys.executable, "-c", START + code, daemon.grpc_address],
        env={"HOLDFAST_TOKEN": token, "PATH": "", "PYTHONPATH": ":".join(sys.path)},
    )


def sessions(daemon):
    command = [sys.executable, "-m", "holdfast", "status", daemon.shm_address, "--json"]
    out = subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout
    return {session["user"]: session for session in json.loads(out)["sessions"]}


def rates(daemon, programs):
    """Ops a second, and seconds of the device, of each user's endless program."""
    started = [start(daemon, *program) for program in programs.values()]
    try:
        while any(
            sessions(daemon).get(user, {"ops": 0})["ops"] < 100 for user in programs
        ):
            assert all(client.poll() is None for client in started)
        before, began = sessions(daemon), time.monotonic()
        time.sleep(SECONDS)
        after, took = sessions(daemon), time.monotonic() - began
    finally:
        for client in started:
            client.kill()
            client.wait()
    while sessions(daemon).keys() & programs.keys():
        time.sleep(0.05)
    return {
        user: [(after[user][what] - before[user][what]) / took for what in WHAT]
        for user in programs
    }


WHAT = "ops", "device_seconds"


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shares")
    tokens, config = folder / "tokens", folder / "config"
    users = {user: new_token(tokens, user) for user in ("one", "three", "other")}
    config.write_text('user { name: "three" limits { weight: 3 } }')
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOLDFAST_FAKE_KERNEL_US", "1000")
        flags = [
            f"--token_file={tokens}",
            f"--config={config}",
            "--grace_max_seconds=1",
            "--graphs=off",  # or many ops are one turn on the device
        ]
        with Daemon("--device=fake", *flags) as daemon:
            yield daemon, users


def test_weights_hold_on_a_device_that_works_later(shared):
    daemon, tokens = shared
    found = rates(daemon, {u: (tokens[u], SHORT) for u in ("one", "three")})
    (few, little), (many, much) = found["one"], found["three"]
    assert 2.3 < many / few < 3.9
    assert 2.3 < much / little < 3.9
    # The device was never idle for it, and nobody's time counts twice.
    assert 0.8 < little + much < 1.1


def test_short_kernels_beside_long_ones(shared):
    """Equal users have equal parts of the device, however long their kernels are."""
    daemon, tokens = shared
    found = rates(
        daemon, {"one": (tokens["one"], SHORT), "other": (tokens["other"], LONG)}
    )
    (short, its_time), (long, other_time) = found["one"], found["other"]
    assert 0.8 < its_time / other_time < 1.25
    # Taking turns, each would have as many as the other.
    assert short / long > 4
