# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""The short form of ./dev soak --sessions, and what its judgement is made of. How long
anybody waited is not asserted: the machine has other work."""

import json

import pytest
import soak_crowd
import soak_figures
from soak_log import Log, Reader, Wait


@pytest.mark.timeout(300)
def test_a_small_crowd(tmp_path):
    figures = soak_crowd.run(seconds=10, sessions=8, seed=1)
    assert not figures["failures"], json.dumps(figures, indent=2)
    assert set(figures["sessions"]) == set(soak_crowd.KINDS)
    counts = figures["counts"]
    for what in (
        "trainings, bit-identical",
        "sessions continued, their tensors right",
        "published versions read, right",
        "versions published",
    ):
        assert counts.get(what, 0) > 0, counts
    assert any(what.startswith("attacks:") for what in counts), counts
    for what in ("op and read", "connect", "lookup", "publish"):
        assert figures["waits"][what]["times"] > 0, figures["waits"]
    left = figures["memory"]["left_at_the_end"]
    assert left["ledger_MiB"] == 0, left


def judged(*waits, starved=()):
    return soak_figures.Judged(waits, list(starved))


def test_a_stall_of_the_daemon_is_one():
    (stall,) = judged(Wait("reader1", "lookup", 10, 10.5, 0.1)).stalls
    assert stall[1] == pytest.approx(0.4)


def test_what_the_machine_took_is_no_stall():
    wait = Wait("reader1", "lookup", 10, 10.5, 0.25)
    assert not judged(wait).stalls
    wait = wait._replace(waited=0)
    # Of the thread that lacked a processor longest, and of the time of the wait alone.
    starved = [(9.9, 10.1, {"1": 0.2, "2": 0.01}), (10.2, 10.4, {"1": 0.15})]
    assert not judged(wait, starved=starved).stalls
    (stall,) = judged(wait, starved=[(8, 9, {"1": 1}), (9.9, 10.1, {"1": 0.2})]).stalls
    assert stall[1] == pytest.approx(0.4)


def test_a_laptop_that_sleeps_waits_for_itself():
    sleep = Wait("laptop1", "asleep", 10, 12, 0)
    long = Wait("laptop1-awake", "op and read", 11, 13, 0)
    assert not judged(sleep, long).stalls
    assert judged(sleep, long._replace(session="laptop2-awake")).stalls
    assert judged(sleep, long._replace(begin=12.5)).stalls


def test_what_is_left_or_grows_is_told():
    good = {
        "stalls": 0,
        "memory": {
            "resident_less_ledger_MiB": [10, 20],
            "ledger_MiB": [500, 500],
            "descriptors": [100, 101],
            "left_at_the_end": {"resident_MiB": 9, "ledger_MiB": 0, "descriptors": 0},
        },
    }
    assert not soak_figures.judge(good)
    for key, value in (
        ("resident_less_ledger_MiB", [10, 200]),
        ("descriptors", [100, 200]),
        ("left_at_the_end", {"resident_MiB": 9, "ledger_MiB": 5, "descriptors": 0}),
    ):
        bad = {"stalls": 0, "memory": {**good["memory"], key: value}}
        assert len(soak_figures.judge(bad)) == 1, key
    assert soak_figures.judge({**good, "stalls": 1})


def test_a_log_is_read_as_it_grows(tmp_path):
    log, reader = Log(tmp_path / "reader1.log"), Reader(tmp_path)
    with log.timed("lookup"):
        pass
    log.count("read", 2)
    (wait,) = reader.read()
    assert wait.session == "reader1" and wait.what == "lookup"
    log.check(False, "one\ntwo")
    with open(tmp_path / "reader1.log", "a") as f:
        f.write("count 5 re")  # the rest is still to come
    assert reader.read() == []
    assert reader.counts == {"read": 2}
    assert reader.failures == ["reader1: one | two"]


def test_there_are_as_many_sessions_as_asked_for():
    for sessions in (7, 8, 20, 50):
        assert sum(soak_crowd.shares(sessions).values()) == sessions
    assert soak_crowd.shares(50) == soak_crowd.KINDS
