# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""What holdfast.profiler makes of a recording: tables, traces, the older name."""

import gzip
import json
import threading
import warnings

import pytest
from holdfast.profiler import (
    ProfilerActivity,
    profile,
    record_function,
    tensorboard_trace_handler,
)


def test_table(torch):
    x = torch.ones(100, 100)
    with profile(record_shapes=True, profile_memory=True) as prof:
        with record_function("model"):
            for _ in range(3):
                x @ x
            x.exp()
    averages = prof.key_averages()
    text = averages.table(sort_by="count", row_limit=2)
    lines = text.splitlines()
    titles = [t.strip() for t in lines[1].split("  ") if t.strip()]
    assert titles == [
        "Name",
        "Self CPU %",
        "Self CPU",
        "CPU total %",
        "CPU total",
        "CPU time avg",
        "CPU Mem",
        "Self CPU Mem",
        "Submit total",
        "Queue avg",
        "# of Calls",
    ]
    rows = lines[3:5]
    assert rows[0].split()[0] == "matmul" and rows[0].split()[-1] == "3"
    assert "117.19 Kb" in rows[0]  # 3 * 100 * 100 * 4 bytes
    assert lines[5].startswith("---")
    assert lines[6].startswith("Self CPU time total: ")
    assert "exp" in averages.table() and "exp" not in averages.table(
        sort_by="count", row_limit=1
    )
    by_shape = prof.key_averages(group_by_input_shape=True).table()
    assert "[[100, 100], [100, 100]]" in by_shape
    total = averages.total_average()
    assert (total.key, total.count) == ("Total", 5)
    assert total.self_cpu_time_total == pytest.approx(averages.self_cpu_time_total)
    assert "header here" in averages.table(header="header here")
    assert str(averages) == averages.table()
    for key in ("cpu_time_total", "self_cpu_time_total", "cuda_time_total"):
        times = [
            line.split()[0] for line in averages.table(sort_by=key).splitlines()[3:6]
        ]
        assert set(times) == {"model", "matmul", "exp"}
    with pytest.raises(ValueError, match="sort_by must be one of .*Got 'color'"):
        averages.table(sort_by="color")
    with pytest.raises(NotImplementedError):
        prof.key_averages(group_by_stack_n=3)


def test_empty_profile(torch, tmp_path):
    with profile() as prof:
        pass
    assert list(prof.events()) == []
    assert "Self CPU time total: 0.000us" in prof.key_averages().table()
    prof.export_chrome_trace(tmp_path / "empty.json")
    json.loads((tmp_path / "empty.json").read_text())


def test_results_before_the_end(torch):
    with profile() as prof:
        with pytest.raises(AssertionError, match="complete"):
            prof.key_averages()


def test_arguments(torch):
    with pytest.raises(TypeError, match="activities"):
        profile(activities=["cpu"])
    with pytest.raises(TypeError, match="schedule"):
        profile(schedule=3)
    with pytest.raises(ValueError, match="max_records"):
        profile(max_records=-1)
    with pytest.warns(UserWarning, match="with_stack"):
        prof = profile(with_stack=True, activities=[ProfilerActivity.CPU])
    with pytest.raises(NotImplementedError, match="export_stacks"):
        prof.export_stacks("x")


def test_missing_names_are_told(torch):
    for module in (torch.profiler, torch.autograd.profiler):
        with pytest.raises(NotImplementedError, match="torch.*profiler.emit_nvtx"):
            module.emit_nvtx


def check_trace(trace):
    """What Perfetto needs: spans of a thread nest, arrows begin and end in them."""
    spans, arrows = {}, {}
    for e in trace["traceEvents"]:
        assert isinstance(e["name"], str) and isinstance(e["pid"], int)
        if e["ph"] == "X":
            assert e["dur"] >= 0
            track = spans.setdefault((e["pid"], e["tid"]), [])
            track.append((e["ts"], e["ts"] + e["dur"], e))
        elif e["ph"] in "sf":
            arrows.setdefault((e["cat"], e["id"]), []).append(e)
    for track in spans.values():
        stack = []
        for begin, end, _ in sorted(track, key=lambda s: (s[0], -s[1])):
            while stack and stack[-1] <= begin + 1e-3:
                stack.pop()
            assert not stack or end <= stack[-1] + 2e-3
            stack.append(end)
    for begin, end in arrows.values():
        assert (begin["ph"], end["ph"]) == ("s", "f")
        for e in (begin, end):
            assert any(
                b - 1e-3 <= e["ts"] <= t + 1e-3 for b, t, _ in spans[e["pid"], e["tid"]]
            )
    return spans, arrows


def test_chrome_trace(torch, tmp_path, transport):
    x = torch.ones(50, 50, requires_grad=True)
    with profile(record_shapes=True) as prof:
        with record_function("step"):
            (x @ x).sum().backward()
            x.grad.sum().item()
    prof.add_metadata("run", "7")
    prof.add_metadata_json("numbers", "[1, 2]")
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(str(path))
    trace = json.loads(path.read_text())
    spans, arrows = check_trace(trace)
    names = {
        e["pid"]: e["args"]["name"]
        for e in trace["traceEvents"]
        if e["name"] == "process_name"
    }
    assert len(names) == 2
    client, server = names
    assert names[client] == "client" and names[server].startswith("holdfastd")
    ran = [e["name"] for _, _, e in spans[server, 1]]
    assert ran.count("matmul") == 3 and "backward" in ran and "read" in ran
    sent = [e["name"] for _, _, e in spans[client, threading.get_native_id()]]
    assert {"step", "matmul", "sum", "backward", "read", "wait for read"} == set(sent)
    kinds = {category for category, _ in arrows}
    assert kinds == {"submit", "fwdbwd"}
    queue = [e["args"]["commands"] for e in trace["traceEvents"] if e["ph"] == "C"]
    assert queue[-1] == 0 and min(queue) == 0 and max(queue) >= 1
    other = trace["otherData"]
    assert other["transport"] == transport
    assert (other["run"], other["numbers"]) == ("7", [1, 2])


def test_tensorboard_handler(torch, tmp_path):
    with profile(on_trace_ready=tensorboard_trace_handler(tmp_path / "a", "me")):
        torch.ones(3)
    (path,) = (tmp_path / "a").iterdir()
    assert path.name.startswith("me.") and path.name.endswith(".pt.trace.json")
    check_trace(json.loads(path.read_text()))
    with profile(on_trace_ready=tensorboard_trace_handler(tmp_path, use_gzip=True)):
        torch.ones(3)
    (path,) = tmp_path.glob("*.gz")
    with gzip.open(path, "rt") as file:
        check_trace(json.load(file))


def test_old_name(torch, tmp_path):
    x = torch.ones(10)
    with torch.autograd.profiler.profile(record_shapes=True) as prof:
        with torch.autograd.profiler.record_function("mine"):
            x.exp()
    assert {a.key for a in prof.key_averages()} == {"mine", "exp"}
    assert "exp" in prof.table(sort_by="self_cpu_time_total")
    assert prof.self_cpu_time_total > 0
    assert prof.total_average().count == 2
    assert [e.name for e in prof.function_events] == ["mine", "exp"]
    prof.export_chrome_trace(tmp_path / "old.json")
    check_trace(json.loads((tmp_path / "old.json").read_text()))
    with torch.autograd.profiler.profile(enabled=False) as off:
        x.exp()
    assert "unfinished" in str(off)
    with pytest.raises(RuntimeError, match="finish"):
        off.key_averages()


def test_table_names_are_pytorchs(torch):
    peer = pytest.importorskip("torch")
    x = peer.ones(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with peer.profiler.profile() as theirs:
            x.exp()
    with profile() as ours:
        torch.ones(3).exp()
    for attribute in (
        "key",
        "count",
        "cpu_time",
        "cpu_time_total",
        "self_cpu_time_total",
        "cpu_memory_usage",
        "self_cpu_memory_usage",
        "cuda_time_total",
        "self_cuda_time_total",
        "cuda_memory_usage",
        "input_shapes",
    ):
        assert hasattr(theirs.key_averages()[0], attribute)
        assert hasattr(ours.key_averages()[0], attribute)
    for method in ("table", "total_average", "export_chrome_trace", "key_averages"):
        assert hasattr(theirs.events(), method) and hasattr(ours.events(), method)
