# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""What goes wrong around a daemon: a clear message, and nothing lost.

Tokens, certificates and host names are in test_trust.py and test_tls.py, the
configuration's mistakes in test_limits.py, damaged state in test_durability.py.
"""

import ctypes
import os
import shutil
import subprocess
import time

import pytest
from daemon_users import new_token, wait_until

import holdfast
from holdfast.daemon import Daemon, find_daemon
from holdfast.errors import SessionError


def failing_start(folder, *flags, **options):
    """What a daemon that cannot start says."""
    result = subprocess.run(
        [find_daemon(), f"--socket={folder}/other.sock", *flags],
        capture_output=True,
        text=True,
        timeout=60,
        **options,
    )
    assert result.returncode == 1, result.stderr
    return result.stderr


# ---- what two daemons want


@pytest.mark.parametrize("flag", ["--listen", "--http"])
def test_two_daemons_on_one_port(tmp_path, flag):
    with Daemon("--http=127.0.0.1:0") as daemon:
        taken = daemon.grpc_address if flag == "--listen" else daemon.http_address
        said = failing_start(tmp_path, f"{flag}={taken}")
        assert f"{taken}: another program has the port" in said
        assert f"give {flag} another port" in said
        with holdfast.connect(daemon.grpc_address):
            assert holdfast.ones(3).sum().item() == 3


@pytest.mark.parametrize("flag", ["--listen", "--http"])
@pytest.mark.parametrize(
    "address, words",
    [
        ("192.0.2.1:50161", "none of this machine's addresses"),
        ("holdfast.invalid:50161", "the host is not known"),
    ],
)
def test_an_address_that_is_not_ours(tmp_path, flag, address, words):
    remote = ["--allow_remote", "--allow_anonymous"]
    said = failing_start(tmp_path, f"{flag}={address}", *remote)
    assert address in said and words in said


def test_a_flag_with_a_typo(tmp_path):
    said = failing_start(tmp_path, "--state_dri=/tmp")
    assert "no flag --state_dri" in said and "--help" in said
    # What Abseil understands itself is not taken for one.
    flags = tmp_path / "flags"
    flags.write_text("--threads=many\n")
    said = failing_start(tmp_path, "--noallow_remote", f"--flagfile={flags}")
    assert "many" in said and "threads" in said


def test_two_daemons_on_one_socket(tmp_path):
    with Daemon() as daemon:
        path = daemon.shm_address.removeprefix("unix:")
        said = failing_start(tmp_path, f"--socket={path}")
        assert path in said and "[socket]" in said
        with holdfast.connect(daemon.shm_address):
            assert holdfast.ones(3).sum().item() == 3


# ---- disks


def mount(*arguments):
    if os.geteuid() != 0 or shutil.which("mount") is None:
        pytest.skip("only root can mount")
    result = subprocess.run(["mount", *map(str, arguments)], capture_output=True)
    if result.returncode != 0:
        pytest.skip(f"mounting is not allowed here: {result.stderr.decode()}")


@pytest.fixture
def disk(tmp_path):
    """A file system of eight megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount("-t", "tmpfs", "-o", "size=8m", "holdfast-test", folder)
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk(disk):
    small, large = holdfast_values()
    with Daemon(f"--state_dir={disk}") as daemon:
        with holdfast.connect(daemon.grpc_address):
            holdfast.publish("w", holdfast.tensor(small), durable=True)
            with pytest.raises(RuntimeError, match="No space left on device"):
                holdfast.publish("w", holdfast.tensor(large), durable=True)
            assert holdfast.lookup("w").tolist() == small
            # The daemon goes on, and writes again when there is room.
            holdfast.publish("v", holdfast.tensor(small), durable=True)
    with Daemon(f"--state_dir={disk}") as daemon:
        with holdfast.connect(daemon.grpc_address):
            assert holdfast.lookup("w").tolist() == small
            assert holdfast.lookup("v").tolist() == small


def test_a_disk_is_not_one_users(disk):
    """Nine tenths of what others leave may be had; a tenth stays free."""
    with Daemon(f"--state_dir={disk}") as daemon:
        with holdfast.connect(daemon.grpc_address):
            x, names = holdfast.ones(64 << 10), []
            with pytest.raises(RuntimeError, match="which is for others"):
                for number in range(40):
                    holdfast.publish(f"{number}", x, durable=True)
                    names.append(f"{number}")
            assert len(names) > 20
            free = os.statvfs(disk)
            assert free.f_bavail * free.f_frsize > 600_000
            holdfast.unpublish(names[0])
            holdfast.publish("again", x, durable=True)


def holdfast_values():
    return [1.0, 2.0, 3.0], [0.5] * (3 << 20)


def test_a_disk_that_fills_before_sigterm(disk):
    """A session too large for it is lost, and said to be; what fits is saved."""
    log = disk.parent / "log"
    daemon = Daemon(f"--state_dir={disk}", f"--log_file={log}")
    for name, size in (("small", 10), ("large", 4 << 20)):
        holdfast.connect(daemon.grpc_address, session=name)
        holdfast.keep("x", holdfast.ones(size))
        holdfast.detach()
    assert daemon.stop() == 0
    assert "session 'large' is lost" in log.read_text()
    with Daemon(f"--state_dir={disk}") as daemon:
        with holdfast.connect(daemon.grpc_address, session="small", attach=True):
            assert holdfast.kept("x").sum().item() == 10


def test_a_read_only_state_folder(disk):
    with Daemon(f"--state_dir={disk}") as daemon:
        with holdfast.connect(daemon.grpc_address):
            holdfast.publish("w", holdfast.ones(3), durable=True)
    mount("-o", "remount,ro", disk)
    try:
        said = failing_start(disk.parent, f"--state_dir={disk}")
        assert str(disk) in said and "Read-only file system" in said
    finally:
        mount("-o", "remount,rw", disk)
    with Daemon(f"--state_dir={disk}") as daemon:
        with holdfast.connect(daemon.grpc_address):
            assert holdfast.lookup("w").sum().item() == 3


# ---- clocks

SHIFT = """
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>
/* Seconds that the date is off by, in a file that the test writes. */
static long shift(void) {
  static const long* seconds;
  if (seconds == 0) {
    int fd = open(getenv("HOLDFAST_TEST_SHIFT"), O_RDONLY);
    seconds = mmap(0, 8, PROT_READ, MAP_SHARED, fd, 0);
  }
  return *seconds;
}
int clock_gettime(clockid_t clock, struct timespec* now) {
  int result = syscall(SYS_clock_gettime, clock, now);
  if (clock == CLOCK_REALTIME) now->tv_sec += shift();
  return result;
}
int gettimeofday(struct timeval* now, void* zone) {
  struct timespec precise;
  clock_gettime(CLOCK_REALTIME, &precise);
  now->tv_sec = precise.tv_sec;
  now->tv_usec = precise.tv_nsec / 1000;
  return 0;
}
time_t time(time_t* out) {
  struct timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  if (out != 0) *out = now.tv_sec;
  return now.tv_sec;
}
"""


@pytest.fixture
def clock(tmp_path, monkeypatch):
    """Sets the date that daemons see, in seconds from the true one."""
    if shutil.which("gcc") is None:
        pytest.skip("gcc is missing")
    (tmp_path / "shift.c").write_text(SHIFT)
    library = tmp_path / "shift.so"
    subprocess.run(
        ["gcc", "-shared", "-fPIC", "-o", library, tmp_path / "shift.c"], check=True
    )
    file = tmp_path / "seconds"
    file.write_bytes(bytes(8))
    preload = os.pathsep.join(
        filter(None, [str(library), os.environ.get("LD_PRELOAD")])
    )
    with monkeypatch.context() as m:
        m.setenv("HOLDFAST_TEST_SHIFT", str(file))
        m.setenv("LD_PRELOAD", preload)

        def start(*flags):
            daemon = Daemon(*flags)
            m.undo()  # for the daemon alone
            return daemon

        def move(seconds):
            with file.open("r+b") as f:
                f.write(ctypes.c_long(seconds))

        yield start, move


@pytest.mark.parametrize("hours", [10, -10])
def test_a_clock_that_jumps(clock, hours, tmp_path):
    start, move = clock
    tokens = tmp_path / "tokens"
    token = new_token(tokens, "ada", "--days", "0.25")
    config = tmp_path / "config"
    config.write_text("default_limits { idle_seconds: 3600 }")
    with start(f"--token_file={tokens}", f"--config={config}") as daemon:
        local = holdfast.connect(daemon.shm_address, default=False, grace=600)
        with holdfast.connect(daemon.shm_address, session="away", grace=600):
            holdfast.keep("x", holdfast.ones(3))
            holdfast.detach()
        remote = holdfast.connect(daemon.grpc_address, token=token, default=False)
        move(hours * 3600)
        time.sleep(2.5)  # the daemon looks once a second
        # No session was idle for ten hours, no grace period is over.
        local.synchronize()
        with holdfast.connect(daemon.shm_address, session="away", attach=True):
            assert holdfast.kept("x").sum().item() == 3
        # A token's last day is a date.
        if hours > 0:

            def told():
                try:
                    remote.synchronize()
                except SessionError as error:
                    return "expired at" in str(error)
                return False

            wait_until(told)
        else:
            remote.synchronize()
            remote.close()
        local.close()
