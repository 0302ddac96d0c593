# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Fixtures of all Python suites: one real daemon, every test over both transports.

`torch` is the package connected to it. A test that wants a daemon to itself
starts a holdfast.daemon.Daemon. HOLDFAST_TEST_DEVICE runs the suites on another
device than the CPU: "cuda", or "fake" (server/fake_device).
"""

import os
import signal
import tempfile
from pathlib import Path

import pytest

# Daemons tell of threads that wait and must not (server/waits/).
os.environ.setdefault("HOLDFAST_CHECK_WAITS", "report")
# One file for all processes of a run that has several (pytest-xdist).
WAITS = Path(tempfile.gettempdir(), f"holdfast_waits_{os.getpid()}")
if "PYTEST_XDIST_WORKER" in os.environ:
    WAITS = Path(os.environ["HOLDFAST_WAITS_FILE"])
os.environ["HOLDFAST_WAITS_FILE"] = str(WAITS)

# What the person who runs the tests has chosen for programs is not theirs: hosts with
# names, a daemon of one's own.
_NOBODYS = Path(tempfile.gettempdir(), f"holdfast_nobody_{os.getpid()}")
for _folder in ("XDG_CONFIG_HOME", "XDG_STATE_HOME"):
    os.environ[_folder] = str(_NOBODYS)
os.environ["HOLDFAST_CLIENT_CONF"] = str(_NOBODYS / "client.conf")

# Ctrl-C is tested, and a shell that starts us in the background has it ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def daemon():
    from holdfast.daemon import Daemon

    device = os.environ.get("HOLDFAST_TEST_DEVICE", "cpu")
    with Daemon(f"--device={device}") as running:
        yield running


@pytest.fixture(scope="module", params=["shm", "grpc"])
def transport(request):
    return request.param


@pytest.fixture(scope="module")
def module_session(daemon, transport):
    import holdfast

    with holdfast.connect(daemon.address(transport), default=False) as session:
        assert session.transport == transport
        yield session


@pytest.fixture(scope="module")
def two_gpus(request):
    """A daemon with two GPUs (server/fake_device, which refuses memory of another
    device). A module's FAKE_GPU is environment that the device reads."""
    from holdfast.daemon import Daemon

    env = {"HOLDFAST_FAKE_NAME": "cuda", **getattr(request.module, "FAKE_GPU", {})}
    with Daemon("--device=fake:0,1", env=env) as running:
        yield running


@pytest.fixture(scope="module")
def gpu_session(two_gpus, transport):
    import holdfast

    with holdfast.connect(two_gpus.address(transport), default=False) as session:
        yield session


@pytest.fixture(scope="module")
def cuda_sources_session():
    """On a device that runs the CUDA kernels' sources, compiled for the host."""
    import holdfast
    from holdfast.daemon import Daemon

    with Daemon("--device=fake", env={"HOLDFAST_FAKE_KERNELS": "cuda"}) as running:
        with holdfast.connect(running.shm_address, default=False) as session:
            yield session


@pytest.fixture
def torch(module_session):
    """The package, connected to the daemon over `transport`."""
    import holdfast

    holdfast.set_default_session(module_session)
    holdfast.manual_seed(0)
    yield holdfast
    assert holdfast.is_grad_enabled(), "the test left grad mode off"


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session):
    if WAITS.exists() and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter):
    if not WAITS.exists() or "PYTEST_XDIST_WORKER" in os.environ:
        return
    terminalreporter.section("the daemon waited where it must not", red=True)
    for line in sorted(set(WAITS.read_text().splitlines())):
        terminalreporter.line(line)
    WAITS.unlink()
