# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""A daemon that starts with much state on a cold disk: when it serves what."""

import os
import tempfile
import time

import daemon

import holdfast
from holdfast.commands._daemon import read_stats

PIECES = 8  # durable names of equal size that hold nearly everything
SMALL = 50  # of four kilobytes each


def restart(r, gigabytes):
    with tempfile.TemporaryDirectory() as folder:
        flags = (f"--state_dir={folder}/state", "--log_level=error")
        with daemon.running(*flags) as d:
            fill("unix:" + d["socket"], int(gigabytes * 1e9 / 4 / (PIECES + 1)))
        files = [
            os.path.join(folder, "state", f) for f in os.listdir(folder + "/state")
        ]
        size = sum(map(forget_pages, files)) / 1e9
        start = time.monotonic()
        with daemon.running(*flags) as d:
            told = {"it listens": time.monotonic() - start}
            address = "unix:" + d["socket"]
            with holdfast.connect(address, timeout=600) as session:
                # The last in order, were it not asked for.
                for name in (f"small{SMALL - 1}", f"large{PIECES - 1}"):
                    found = holdfast.lookup(name)
                    assert found["x"][-1].item() == 1
                    told[f"'{name}' is served"] = time.monotonic() - start
            with holdfast.connect(address, session="work", timeout=600) as session:
                assert session.attached and holdfast.kept("x")[-1].item() == 1
                told["a large session is served"] = time.monotonic() - start
            wait_until_loaded(address)
            told["everything is loaded"] = time.monotonic() - start
    for what, seconds in told.items():
        r.add(f"start with {size:.1f} GB of state until {what}", seconds, "s")


def fill(address, count):
    """Names and a session with `count` floats each; and the small ones."""
    with holdfast.connect(address, timeout=600):
        for i in range(SMALL):
            holdfast.publish(f"small{i}", {"x": holdfast.ones(1000)}, durable=True)
        for i in range(PIECES):
            holdfast.publish(f"large{i}", {"x": holdfast.ones(count)}, durable=True)
    with holdfast.connect(address, session="work"):
        holdfast.keep("x", holdfast.ones(count))
        holdfast.detach()


def forget_pages(path):
    """Its bytes; the next read of them goes to the disk."""
    with open(path, "rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        return os.fstat(file.fileno()).st_size


def wait_until_loaded(address):
    while (stats := read_stats(address))["state_bytes_loaded"] < stats["state_bytes"]:
        time.sleep(0.05)
