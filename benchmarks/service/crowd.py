# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Very many sessions, and what they leave behind."""

import os
import resource
import sys
import threading
import time

import holdfast as torch

MIB = 1 << 20


def allow_descriptors(count):
    """Raises this process's limit, and so that of the daemon it starts."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < count:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(count, hard), hard))


def resident(pid):
    """MiB of the process that are in memory."""
    with open(f"/proc/{pid}/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize() / MIB


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def touch(session):
    """A tensor is made, changed and read."""
    torch.set_default_session(session)
    return (torch.ones(16) * 2).sum().item()


def many_at_once(r, address, pid, count, active):
    """`count` sessions open, `active` of them in use in turn."""
    before = resident(pid)
    sessions = []
    begin = time.monotonic()
    for i in range(count):
        sessions.append(torch.connect(address, default=False))
        assert touch(sessions[-1]) == 32
    took = time.monotonic() - begin
    r.add(f"{count:,} sessions: opening one", took / count * 1e3, "ms")
    r.add(
        f"{count:,} sessions: memory of one (2 MiB of it its tensors')",
        (resident(pid) - before) / count,
        "MiB",
        target=3,
    )
    begin, turns = time.monotonic(), 0
    while time.monotonic() - begin < 2:
        for session in sessions[:active]:
            assert touch(session) == 32
        turns += active
    each = (time.monotonic() - begin) / turns
    one = sessions[0]
    begin = time.monotonic()
    for _ in range(active):
        touch(one)
    alone = (time.monotonic() - begin) / active
    r.add(f"{count:,} sessions: 3 ops and a read of each of {active}", each * 1e6, "us")
    r.add(f"{count:,} sessions: 3 ops and a read of one", alone * 1e6, "us")
    for session in sessions:
        session.close()


def opened_and_closed(r, address, pid, count):
    """`count` sessions one after the other, on four threads."""

    def open_and_close(n):
        for _ in range(n):
            torch.connect(address, default=False).close()

    def round_of(n):
        threads = [
            threading.Thread(target=open_and_close, args=(n // 4,)) for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    round_of(count // 10)  # what is made once is made
    time.sleep(0.5)
    before, files = resident(pid), descriptors(pid)
    begin = time.monotonic()
    for part in range(10):
        round_of(count // 10)
        print(f"  {(part + 1) * count // 10:,} opened and closed", file=sys.stderr)
    took = time.monotonic() - begin
    time.sleep(1.5)  # the daemon's tick
    r.add(f"{count:,} sessions opened and closed: each", took / count * 1e3, "ms")
    r.add(
        f"{count:,} sessions opened and closed: memory",
        resident(pid),
        "MiB",
        before,
        target_ratio=1.01,
    )
    r.add(
        f"{count:,} sessions opened and closed: descriptors left",
        descriptors(pid) - files,
        "",
        target=0,
    )
