# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""/healthz while one kernel takes long (server/exec/watchdog_test.cc has a worker that
is stuck)."""

import subprocess
import sys
import threading
import time

import pytest
from test_metrics import get, samples

import holdfast
from holdfast.daemon import Daemon


def test_a_long_kernel_is_busy_and_not_stuck(monkeypatch, tmp_path):
    monkeypatch.setenv("HOLDFAST_TEST_LATE_AFTER", "0.1")
    log = tmp_path / "log"
    seen = threading.Event()
    stop = threading.Event()
    answers = set()

    def poll(daemon):
        while not stop.is_set():
            code, text = get(daemon, "/healthz")
            answers.add(code)
            if "busy with op sum of session" in text:
                seen.set()

    def stop_it():
        words = ("limits", daemon.shm_address, "--default", "--op-seconds", "0.1")
        subprocess.run([sys.executable, "-m", "holdfast", *words], check=True)

    config = tmp_path / "config"
    config.write_text("default_limits { op_seconds: 0 }")
    flags = (
        f"--config={config}",
        "--http=127.0.0.1:0",
        "--log_level=info",
        f"--log_file={log}",
    )
    with Daemon(*flags) as daemon:
        poller = threading.Thread(target=poll, args=(daemon,))
        poller.start()
        try:
            with holdfast.connect(daemon.address("shm"), default=True):
                y = holdfast.ones(1).expand(2**40).sum()
                ended = threading.Thread(target=lambda: (seen.wait(60), stop_it()))
                ended.start()
                with pytest.raises(holdfast.errors.HoldfastError, match="at most"):
                    y.item()
                ended.join()
            assert seen.is_set(), answers
        finally:
            stop.set()
            poller.join()
        assert answers == {200}
        # It looks many times a second.
        end = time.monotonic() + 60
        while get(daemon, "/healthz") != (200, "ok\n"):
            assert time.monotonic() < end
            time.sleep(0.01)
        found = samples(daemon)
        assert found["holdfast_worker_stuck_total"] == 0
        assert found["holdfast_worker_late_seconds"] == 0
    assert "the worker is busy with op sum of session" in log.read_text()
