# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""What came out of ./dev soak --sessions, and whether it is good.

A wait is judged by what is left of it without the time in which the machine gave no
processor: to the program that waited, or to the one thread of the daemon that lacked
it most. Whatever overlaps a laptop's sleep is the laptop's own.
"""

import bisect
import re
import statistics

STALL = 0.3  # seconds that no honest user may wait for others
CONTROL = "a byte there and back, without a daemon"
ASLEEP = "asleep"
MIB = 1 << 20
# What the daemon's memory may move by, beside 5 % of what its users have: room
# between what is in use on its heap, and messages on their way.
SLACK = 64 * MIB


def resident(pid):
    with open(f"/proc/{pid}/status") as f:
        status = f.read()
    return sum(
        int(re.search(rf"{key}:\s+(\d+) kB", status)[1]) << 10
        for key in ("RssAnon", "RssShmem")
    )


class Judged:
    """Waits, and what is left of each without the machine's part."""

    def __init__(self, waits, starved):
        self._starved = starved
        self._ends = [end for _, end, _ in starved]
        asleep = {}
        for wait in waits:
            if wait.what == ASLEEP:
                asleep.setdefault(wait.session, []).append(wait)
        self.by_what, self.stalls = {}, []
        for wait in waits:
            owner = wait.session.removesuffix("-awake")
            if wait.what == ASLEEP or any(
                wait.begin < sleep.end and sleep.begin < wait.end
                for sleep in asleep.get(owner, ())
            ):
                continue
            took = wait.end - wait.begin
            rest = took
            if took > STALL / 3:
                rest = took - wait.waited - self._daemon_waited(wait)
            if rest > STALL and wait.what != CONTROL:
                self.stalls.append((wait, rest))
            self.by_what.setdefault(wait.what, []).append((took, rest))

    def _daemon_waited(self, wait):
        by_thread = {}
        first = bisect.bisect_left(self._ends, wait.begin)
        for begin, end, grown in self._starved[first:]:
            if begin > wait.end:
                break
            # Of a sample that reaches beyond the wait, at most what it shares.
            shared = min(end, wait.end) - max(begin, wait.begin)
            for thread, seconds in grown.items():
                part = min(seconds, max(0, shared))
                by_thread[thread] = by_thread.get(thread, 0) + part
        return max(by_thread.values(), default=0)


def quantile(values, q):
    return sorted(values)[min(len(values) - 1, int(q * len(values)))]


def waits_table(judged):
    table = {}
    for what, pairs in sorted(judged.by_what.items()):
        took = [t for t, _ in pairs]
        table[what] = {
            "times": len(took),
            "p50_ms": round(quantile(took, 0.5) * 1e3, 2),
            "p99_ms": round(quantile(took, 0.99) * 1e3, 1),
            "longest_ms": round(max(took) * 1e3, 1),
            "over_300_ms": sum(t > STALL for t in took),
            "longest_but_for_the_machine_ms": round(max(r for _, r in pairs) * 1e3, 1),
        }
    return table


def memory_table(crowd):
    """From when all had come and found their memory (a sixth of the time, ten minutes
    at most) to the end of the work: the first quarter against the last."""
    begin, end = crowd.began, crowd.samples[-2]["at"]
    settled = begin + min(600, (end - begin) / 6)
    samples = [s for s in crowd.samples[:-1] if s["at"] >= settled]
    quarter = max(1, len(samples) // 4)
    parts = samples[:quarter], samples[-quarter:]

    def medians(value):
        return [round(statistics.median(map(value, p)), 1) for p in parts]

    last = crowd.samples[-1]
    return {
        "resident_MiB": medians(lambda s: (s["resident"] - crowd.idle) / MIB),
        "ledger_MiB": medians(lambda s: s["ledger"] / MIB),
        "resident_less_ledger_MiB": medians(
            lambda s: (s["resident"] - crowd.idle - s["ledger"]) / MIB
        ),
        "descriptors": medians(lambda s: s["descriptors"]),
        "hours_between": round((end - settled) * 0.75 / 3600, 3),
        "left_at_the_end": {
            "resident_MiB": round((last["resident"] - crowd.idle) / MIB, 1),
            "ledger_MiB": round(last["ledger"] / MIB, 1),
            "descriptors": last["descriptors"] - crowd.samples[0]["descriptors"],
        },
    }


def progress(crowd, seconds):
    judged = Judged(crowd.reader.waits, crowd.starved)
    last = crowd.samples[-1]
    waits = [took for what in judged.by_what.values() for took, _ in what]
    return (
        f"{seconds / 60:.0f} min: {len(waits)} waits, "
        f"{sum(t > STALL for t in waits)} above 300 ms, "
        f"{len(judged.stalls)} of them the daemon's; "
        f"resident {(last['resident'] - crowd.idle) / MIB:.0f} MiB, "
        f"ledger {last['ledger'] / MIB:.0f} MiB, "
        f"{last['descriptors']} descriptors, {len(crowd.reader.failures)} failures"
    )


def figures(crowd):
    judged = Judged(crowd.reader.waits, crowd.starved)
    worst = sorted(judged.stalls, key=lambda pair: -pair[1])
    return {
        "seed": crowd.seed,
        "sessions": crowd.kinds,
        "local_attackers": crowd.root,
        "counts": dict(sorted(crowd.reader.counts.items())),
        "waits": waits_table(judged),
        "stalls": len(worst),
        "worst": [
            f"{w.session}: {w.what}, {w.end - w.begin:.3f} s, {rest:.3f} s but for "
            f"the machine, {w.begin - crowd.began:.1f} s after the start"
            for w, rest in worst[:20]
        ],
        "memory": memory_table(crowd),
        "failures": crowd.reader.failures,
    }


def judge(figures):
    """What is too slow or too much; for a run of minutes, on a machine of its own."""
    wrong = []
    if figures["stalls"]:
        wrong.append(f"{figures['stalls']} waits above 300 ms, see \"worst\"")
    memory = figures["memory"]
    before, after = memory["resident_less_ledger_MiB"]
    allowed = SLACK / MIB + 0.05 * memory["ledger_MiB"][1]
    if after - before > allowed:
        wrong.append(f"memory that no account has grew by {after - before:.0f} MiB")
    before, after = memory["descriptors"]
    if after > 1.2 * before + 20:
        wrong.append(f"descriptors went from {before:.0f} to {after:.0f}")
    left = memory["left_at_the_end"]
    if left["ledger_MiB"] or left["descriptors"] > 4:
        wrong.append(f"left when all had gone: {left}")
    return wrong
