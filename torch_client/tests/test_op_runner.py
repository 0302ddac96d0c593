# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""An op that ends the daemon, or does not end, fails alone."""

import op_runner
import pytest


@pytest.fixture(scope="module")
def runner():
    runner = op_runner.Runner()
    yield runner
    runner.close()


def passes(runner):
    return runner("float32", "add", 2) == {"samples": 2, "error": None}


def test_a_daemon_that_ends(runner):
    assert passes(runner)
    runner._daemon.kill()
    runner._daemon.wait()
    assert "the daemon ended with -9" in runner("float32", "add", 2)["error"]
    assert passes(runner)


def test_an_op_that_does_not_end(runner):
    assert passes(runner)
    runner.timeout, before = 0, runner.timeout
    assert "took over 0 s" in runner("float32", "add", 2)["error"]
    runner.timeout = before
    assert passes(runner)
