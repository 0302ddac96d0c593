# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""On a GPU large copies from and to the host go on streams of their own, and a profile
shows what the device did and when: on the fake device."""

import json
import time

import numpy as np
import pytest

import holdfast
from holdfast.profiler import profile

LARGE = 1 << 20  # floats


FAKE_GPU = {"HOLDFAST_FAKE_LAG_US": "200"}


@pytest.fixture
def torch(gpu_session):
    holdfast.set_default_session(gpu_session)
    return holdfast


def overlap(a, b):
    return max(0, min(a.end_ns, b.end_ns) - max(a.start_ns, b.start_ns))


def record(program):
    with profile() as prof:
        program()
    return prof, prof._recording.kernels


def busy(torch, x):
    """Work for the device that takes a while."""
    for _ in range(6):
        x = torch.tanh(x @ x)
    return x


def overlapping(torch, program, copies):
    """Kernels of a profile in which some copy overlaps a product. How long the work
    takes, and so whether they meet, is the machine's affair: asked again if not."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        _, kernels = record(program)
        moved = [k for k in kernels if k.stream == copies]
        products = [k for k in kernels if k.name == "matmul"]
        if any(overlap(a, b) > 0 for a in moved for b in products):
            return kernels
    raise AssertionError("no copy went on while a product was computed")


@pytest.mark.parametrize("device", ["cuda:0", "cuda:1"])
def test_uploads_go_on_beside_kernels(torch, device):
    x = torch.rand(700, 700, device=device)
    array = np.arange(LARGE, dtype=np.float32)

    def program():
        y = busy(torch, x)
        uploads = [torch.tensor(array + i, device=device) for i in range(3)]
        sums = [u.sum() for u in uploads]
        assert float(y.sum()) == float(y.sum())
        for i, total in enumerate(sums):
            np.testing.assert_allclose(float(total), (array + i).sum(), rtol=1e-4)

    kernels = overlapping(torch, program, f"{device} upload")
    assert {k.name for k in kernels if k.stream == f"{device} upload"} == {"upload"}
    # The other GPU hears nothing of it.
    assert {k.stream.split()[0] for k in kernels} == {device}


def test_a_profile_tells_what_the_device_did(torch):
    def program():
        x = torch.rand(64, 64, requires_grad=True)
        (x @ x).relu().sum().backward()
        torch.from_numpy(np.zeros(LARGE, np.float32)).numpy()

    prof, kernels = record(program)
    names = [k.name for k in kernels if k.stream == "cuda:0"]
    for name in ("rand", "matmul", "relu", "sum", "relu_backward"):
        assert name in names
    assert "download" in [k.name for k in kernels if k.stream == "cuda:0 download"]
    assert all(k.duration_ns >= 0 for k in kernels)
    # Each stream does one thing after the other, inside the profile's time, each op
    # after the daemon has begun it.
    recording = prof._recording
    for stream in {k.stream for k in kernels}:
        order = [k for k in kernels if k.stream == stream]
        for before, after in zip(order, order[1:]):
            assert before.end_ns <= after.start_ns
    begun = {e.sequence: e.start_ns for e in recording.executions if e.kind == "op"}
    slack = recording.clock_error_ns
    timed = [k for k in kernels if k.sequence in begun]
    assert timed
    assert all(k.start_ns >= begun[k.sequence] - slack for k in timed)


def test_the_trace_has_a_row_for_each_stream(torch, tmp_path):
    def program():
        x = torch.from_numpy(np.ones((600, 600), np.float32))
        y = torch.tensor(np.ones((600, 600), np.float32), device="cuda:1")
        (x @ x).numpy()
        (y @ y).numpy()

    prof, kernels = record(program)
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(str(path))
    events = json.loads(path.read_text())["traceEvents"]
    rows = {e["args"]["name"] for e in events if e["name"] == "thread_name"}
    for device in ("cuda:0", "cuda:1"):
        assert {device, f"{device} upload", f"{device} download"} <= rows
    assert sum(e.get("cat") == "kernel" for e in events) == len(kernels)


def test_a_bound_holds_for_kernels_too(torch):
    # Of other sizes each, or launches recur and several of them are one recording.
    parts = [torch.ones(n) for n in range(1, 51)]
    with profile(max_records=10) as prof:
        for part in parts:
            part + 1
    recording = prof._recording
    assert len(recording.kernels) == 10 and recording.dropped_kernels == 40
    assert recording.dropped_executions == 40


def test_without_a_profile_nothing_is_kept(torch):
    torch.rand(8).sum().item()
    _, kernels = record(lambda: None)
    assert kernels == []
