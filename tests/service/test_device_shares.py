# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Users of different weights on a device that works later than it is told to, and
that takes all streams alike: kernels of the fake device take turns here, as large ones
do on a GPU. Who gets how much of it is the daemon's to say, by the device's time."""

import json
import subprocess
import sys
import threading
import time

import pytest
from daemon_users import new_token

import holdfast
from holdfast.daemon import Daemon

# Without end: the test says when. They wait now and then, so that what they send is
# not all that the processors do.
SHORT = """
while True:
    for _ in range(200): x.add_(1)
    x[0].item()
"""
LONG = """
y = torch.ones(900, 900)
while True:
    for _ in range(20): z = y @ y
    z[0, 0].item()
"""
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
    flags = [
        f"--token_file={tokens}",
        f"--config={config}",
        "--grace_max_seconds=1",
        "--graphs=off",  # or many ops are one turn on the device
    ]
    env = {"HOLDFAST_FAKE_KERNEL_US": "1000"}
    with Daemon("--device=fake", *flags, env=env) as daemon:
        yield daemon, users


def test_weights_hold_on_a_device_that_works_later(shared):
    daemon, tokens = shared
    found = rates(daemon, {u: (tokens[u], SHORT) for u in ("one", "three")})
    (few, little), (many, much) = found["one"], found["three"]
    assert 2 < many / few < 4.5
    assert 2 < much / little < 4.5
    # The device was never idle for it, and nobody's time counts twice.
    assert 0.6 < little + much < 1.1


def test_short_kernels_beside_long_ones(shared):
    """Equal users have equal parts of the device, however long their kernels are."""
    daemon, tokens = shared
    found = rates(
        daemon, {"one": (tokens["one"], SHORT), "other": (tokens["other"], LONG)}
    )
    (short, its_time), (long, other_time) = found["one"], found["other"]
    assert 0.5 < its_time / other_time < 2
    # Taking turns, each would have as many as the other.
    assert short / long > 4


def test_a_long_kernel_holds_nobody_back():
    """On a device whose streams work side by side who has used more of it goes on all
    the same: how long the other's kernel takes is not known before it ends."""
    with Daemon("--device=fake", "--graphs=off") as daemon:
        with holdfast.connect(daemon.shm_address, default=False) as other:
            with holdfast.connect(daemon.shm_address):
                x = holdfast.zeros(4)
                for _ in range(1000):
                    x.add_(1)
                assert x[0].item() == 1000
                holdfast.set_default_session(other)
                y = holdfast.ones(3000, 3000)
                y.sum().item()
                began = time.monotonic()
                ended = []

                def wait_for(total):
                    total.item()
                    ended.append(time.monotonic())

                waiting = threading.Thread(target=wait_for, args=((y @ y).sum(),))
                waiting.start()
                gaps = []
                while not ended:
                    gaps.append(time.monotonic())
                    for _ in range(200):
                        x.add_(1)
                    x[0].item()
                    gaps[-1] = time.monotonic() - gaps[-1]
                waiting.join()
    assert max(gaps[:-1], default=0) < (ended[0] - began) / 2
    assert len(gaps) > 2
