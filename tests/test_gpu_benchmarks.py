# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""benchmarks/gpu is ready for a GPU: its parts run on server/fake_device in a GPU's
place, small and without PyTorch's side."""

import pathlib
import sys

import pytest

import holdfast
from holdfast.daemon import Daemon

ROOT = pathlib.Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def gpu():
    with pytest.MonkeyPatch.context() as patch:
        for folder in ("benchmarks/gpu", "tests/gpu"):
            patch.syspath_prepend(str(ROOT / folder))
        patch.setenv("OMP_NUM_THREADS", "1")
        with Daemon("--device=fake", env={"HOLDFAST_FAKE_NAME": "cuda"}) as daemon:
            with holdfast.connect(daemon.shm_address):
                yield daemon
        for name in ("measure", "training", "transfers", "bundle"):
            sys.modules.pop(name, None)


@pytest.mark.parametrize("model", ["gnmt", "ncf", "mobilenet"])
def test_training(gpu, model, monkeypatch):
    import training

    monkeypatch.setattr(training, "TURNS", 1)
    monkeypatch.setattr(training, "BATCHES", {model: (2, 2)})
    rows = list(training.measure(gpu.shm_address, steps=1, peer=False))
    assert [row["program"].rpartition(", ")[2] for row in rows] == list(training.WAYS)
    for row in rows:
        assert row.get("seconds", 0) > 0, row
        assert 0 < row["allocated"] <= row["reserved"]
        row["torch"] = row["seconds"] * 2
        row["torch_allocated"] = row["allocated"] * 2
        row["torch_reserved"] = row["reserved"] / 2
    *lines, allocated, reserved = training.summary(rows)
    assert len(lines) == 3 and all("2.00 x as fast" in line for line in lines)
    assert "0.50 x PyTorch's" in allocated and "2.00 x PyTorch's" in reserved


def test_what_fails_is_told(gpu):
    import measure
    import training

    result = training.train(gpu.shm_address, "cuda:9", "ncf", "--steps", "1")
    assert "invalid device ordinal" in result["error"]
    row = {"program": "p", "seconds_error": result["error"]}
    assert "failed, " in measure.show(row) and "cuda:9" in measure.show(row)


def test_copies_start_and_idle_users(gpu, monkeypatch):
    import measure
    import transfers

    monkeypatch.setattr(transfers, "BYTES", 1 << 20)
    rows = [
        *transfers.copies(holdfast, None),
        transfers.start(gpu.shm_address, peer=False),
        transfers.idle_users(holdfast, gpu.shm_address),
    ]
    assert all(row.get("seconds", 1) > 0 and measure.show(row) for row in rows)
    assert rows[-1]["bytes"] == 0
