# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The daemon's log: a session's life, a line per event, and nothing per op."""

import fcntl
import json
import mmap
import os
import re
import subprocess
import time

import pytest
from wire import Local

import holdfast
from holdfast.daemon import Daemon

F_SETPIPE_SZ = 1031  # Python 3.11 has it without a name


@pytest.fixture
def logged(tmp_path):
    """A daemon and what returns the events that its log has so far."""
    path = tmp_path / "log"
    flags = [f"--log_file={path}", "--log_format=json", "--log_level=info"]
    with Daemon(*flags, "--memory_limit=33554432") as daemon:

        def events(*wanted):
            end = time.monotonic() + 60
            while True:
                lines = [json.loads(line) for line in path.read_text().splitlines()]
                found = [line for line in lines if "event" in line]
                names = [line["event"] for line in found]
                if all(name in names for name in wanted) or time.monotonic() > end:
                    return found
                time.sleep(0.01)

        yield daemon, events


@pytest.mark.parametrize("transport", ["shm", "grpc"])
def test_a_sessions_life(logged, transport):
    daemon, events = logged
    address = daemon.address(transport)
    first = holdfast.connect(address, session="work", default=False)
    trace_id = first.trace_id
    assert re.fullmatch("[0-9a-f]{32}", trace_id)
    first.close(keep=True)
    second = holdfast.connect(address, session="work", attach=True, default=False)
    assert second.trace_id == trace_id
    second.close()
    lines = [e for e in events("ended") if e["trace_id"] == trace_id]
    # A client that leaves may take the end of its stream for a cut.
    names = [e["event"] for e in lines if e["event"] not in ("cut", "resumed")]
    assert names == ["opened", "detached", "attached", "ended"]
    opened, ended = lines[0], lines[-1]
    assert opened["name"] == "work" and opened["transport"] == transport
    assert opened["client"] and opened["level"] == "info"
    assert ended["reason"] == "the client left"
    assert {line["session"] for line in lines} == {opened["session"]}


@pytest.mark.parametrize("transport", ["shm", "grpc"])
def test_errors_carry_the_trace_id(logged, transport):
    daemon, events = logged
    with holdfast.connect(daemon.address(transport)) as session:
        with pytest.raises(holdfast.errors.OutOfRangeError) as error:
            holdfast.ones(3)[holdfast.tensor([5])].sum().item()
        assert error.value.trace_id == session.trace_id
        assert f"[trace {session.trace_id}]" in str(error.value)
        # An error that the client finds by itself is in no log.
        with pytest.raises(holdfast.errors.OpError) as error:
            holdfast.ones(3) + holdfast.ones(4)
        assert error.value.trace_id is None


def test_limit_hits_are_one_line(logged):
    daemon, events = logged
    with holdfast.connect(daemon.grpc_address) as session:
        for _ in range(20):
            with pytest.raises(holdfast.errors.OutOfMemoryError):
                holdfast.zeros(64 << 20).sum().item()
        trace_id = session.trace_id
    lines = [e for e in events("ended") if e["trace_id"] == trace_id]
    hits = [line for line in lines if line["event"] == "limit hit"]
    assert len(hits) == 1, lines
    assert hits[0]["level"] == "warning"
    # Of one turn of the session, in which a quick client has several.
    assert 1 <= hits[0]["refused"] <= 20
    assert "limit" in hits[0]["reason"]


def test_ops_leave_no_lines(logged):
    daemon, events = logged
    with holdfast.connect(daemon.shm_address):
        x = holdfast.ones(4)
        for _ in range(2000):
            x = x + 1
        assert x.sum().item() == 4 * 2001
    assert len(events("ended")) <= 4


def test_text_is_the_default(tmp_path):
    path = tmp_path / "log"
    with Daemon(f"--log_file={path}", "--log_level=info") as daemon:
        with holdfast.connect(daemon.grpc_address, default=False) as session:
            trace_id = session.trace_id
    line = next(x for x in path.read_text().splitlines() if " opened " in x)
    assert f"trace_id={trace_id}" in line and "transport=grpc" in line


def test_a_log_that_nobody_reads_holds_nobody_up(tmp_path):
    command = [os.environ["HOLDFAST_DAEMON"], f"--socket={tmp_path}/d.sock"]
    process = subprocess.Popen(
        [*command, "--print_address"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        # A small pipe: what a user may have in the log must not be what is full.
        fcntl.fcntl(process.stderr, F_SETPIPE_SZ, mmap.PAGESIZE)
        assert process.stdout.readline()
        for number in range(100):
            client = Local(f"{tmp_path}/d.sock")
            client.open_session()
            client.socket.close()
        with holdfast.connect(f"unix:{tmp_path}/d.sock"):
            assert holdfast.ones(3).sum().item() == 3
        read = ""
        while "lost" not in read:
            # Once there is room, the next line says so.
            Local(f"{tmp_path}/d.sock").open_session()
            read += process.stderr.readline()
    finally:
        process.kill()
        process.communicate()
    assert re.search(r"[1-9][0-9]* lines? (is|are) lost", read)
