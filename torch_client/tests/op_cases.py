# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The suites over OpInfo: a test for each op and kind, with declared failures strict.

HOLDFAST_OP_SAMPLES: how many samples of an op run, "all" for all of them; by default a
few over shared memory, and every eighth op over gRPC."""

import os

import op_failures
import op_runner
import op_worker
import pytest

DEFAULT_SAMPLES = 3
GRPC_EVERY = 8


def samples():
    """How many samples of an op, None for all."""
    asked = os.environ.get("HOLDFAST_OP_SAMPLES", str(DEFAULT_SAMPLES))
    return None if asked == "all" else int(asked)


def cases(kind):
    """(transport, op) of a kind's tests; those that are declared must fail."""
    found = []
    declared = op_failures.FAILURES[kind]
    keys = op_worker.keys_of(kind)
    unknown = set(declared) - set(keys)
    assert not unknown, f"op_failures declares what {kind} does not run: {unknown}"
    for transport in ("shm", "grpc"):
        every = GRPC_EVERY if transport == "grpc" and samples() is not None else 1
        for key in keys[::every]:
            marks = ()
            if key in declared:
                always = (kind, key) not in op_failures.ON_SOME_PROCESSORS
                marks = pytest.mark.xfail(reason=declared[key], strict=always)
            name = f"{transport}-{key}"
            found.append(pytest.param(transport, key, marks=marks, id=name))
    return found


class Runners:
    """A runner for each transport, started when it is first used."""

    def __init__(self):
        self._by_transport = {}

    def __getitem__(self, transport):
        if transport not in self._by_transport:
            timeout = 60 if samples() else 900
            self._by_transport[transport] = op_runner.Runner(transport, timeout)
        return self._by_transport[transport]

    def close(self):
        for runner in self._by_transport.values():
            runner.close()


def check(runners, kind, transport, key):
    """Runs an op's samples. One that is declared to fail runs all of them: the one that
    fails may be the last."""
    limit = None if key in op_failures.FAILURES[kind] else samples()
    report = runners[transport](kind, key, limit)
    if report["error"]:
        pytest.fail(f"{report['error']}\n{report.get('sample', '')}", pytrace=False)
    if not report["samples"]:
        pytest.skip(
            "no sample can be compared: the result is random or has no gradient"
        )
