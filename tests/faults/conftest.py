# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""A daemon per test that may be harmed."""

import pytest
from programs import Daemon


@pytest.fixture
def start_daemon(tmp_path):
    daemons = []

    def start(*flags, wrapper=()):
        folder = tmp_path / str(len(daemons))
        folder.mkdir(mode=0o700)
        daemons.append(Daemon(folder, *flags, wrapper=wrapper))
        return daemons[-1]

    yield start
    for d in daemons:
        if d.process.poll() is None:
            d.process.kill()
            d.process.wait(60)


@pytest.fixture
def daemon(start_daemon):
    d = start_daemon()
    yield d
    d.stop()


@pytest.fixture
def limited(start_daemon, tmp_path):
    """Whose users have 64 MiB each."""
    import holdfast

    config = tmp_path / "config"
    config.write_text('default_limits { memory: "64MiB" }')
    daemon = start_daemon(f"--config={config}")
    yield daemon
    holdfast.set_default_session(None)
    daemon.stop()


@pytest.fixture(params=["shm", "grpc"])
def transport(request):
    return request.param
