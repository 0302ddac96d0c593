# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""What the programs of ./dev soak --sessions write down, a line at a time, so that
nothing is lost with a program that is killed; and what is read from it.

    time BEGIN END WAITED WHAT   a wait for the daemon, in seconds of CLOCK_MONOTONIC;
                                 WAITED: of it, this process had no processor
    count N WHAT                 done, and found right
    fail TEXT                    wrong
"""

import collections
import contextlib
import os
import time

Wait = collections.namedtuple("Wait", "session what begin end waited")


def waiting(pid="self"):
    """{thread: seconds that it was ready to run and had no processor} so far."""
    found = {}
    with contextlib.suppress(OSError):
        for tid in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError, IndexError):
                with open(f"/proc/{pid}/task/{tid}/schedstat", "rb") as f:
                    found[tid] = int(f.read().split()[1]) * 1e-9
    return found


class Log:
    """Of one session; programs that are its forks write it, too."""

    def __init__(self, path):
        self._fd = os.open(path, os.O_APPEND | os.O_CREAT | os.O_WRONLY, 0o600)

    def write(self, line):
        os.write(self._fd, line.replace("\n", " | ").encode() + b"\n")

    @contextlib.contextmanager
    def timed(self, what):
        before, begin = waiting(), time.monotonic()
        yield
        end, after = time.monotonic(), waiting()
        # Of threads that wait for each other: the one that stood still longest.
        waited = max((after[t] - before.get(t, 0) for t in after), default=0)
        self.write(f"time {begin:.4f} {end:.4f} {waited:.4f} {what}")

    def count(self, what, times=1):
        self.write(f"count {times} {what}")

    def fail(self, text):
        self.write(f"fail {text}")

    def check(self, right, text):
        if not right:
            self.fail(text)


class Reader:
    """Reads the logs of a folder as they grow."""

    def __init__(self, folder):
        self._folder = folder
        self._read = collections.Counter()
        self.waits = []
        self.counts = collections.Counter()
        self.failures = []

    def read(self):
        """Returns the waits that are new."""
        first = len(self.waits)
        for path in sorted(self._folder.glob("*.log")):
            with open(path, "rb") as f:
                f.seek(self._read[path])
                lines = f.read()
            lines = lines[: lines.rfind(b"\n") + 1]
            self._read[path] += len(lines)
            for line in lines.decode(errors="replace").splitlines():
                self._take(path.stem, line)
        return self.waits[first:]

    def _take(self, session, line):
        kind, _, rest = line.partition(" ")
        if kind == "time":
            begin, end, waited, what = rest.split(" ", 3)
            self.waits.append(
                Wait(session, what, float(begin), float(end), float(waited))
            )
        elif kind == "count":
            times, what = rest.split(" ", 1)
            self.counts[what] += int(times)
        else:
            self.failures.append(f"{session}: {rest}")
