# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The line that says how many of PyTorch's OpInfos pass, by kind of run."""

import collections
import re

_TESTS = {
    "test_float32": "float32",
    "test_bfloat16": "bfloat16",
    "test_int64": "int64",
    "test_gradients": "gradients (float64)",
    "test_gradients_of_gradients": "gradients of gradients (float64)",
    "test_errors": "errors",
}


def lines(stats):
    """ "shm float32: n of m ops" for each kind that ran; `stats` is pytest's."""
    good, ran = collections.Counter(), collections.Counter()
    for outcome in ("passed", "failed", "xfailed"):
        for report in stats.get(outcome, ()):
            test = re.search(r"test_op_\w+\.py::(\w+)\[(shm|grpc)-", report.nodeid)
            if test is None or test[1] not in _TESTS:
                continue
            kind = f"{test[2]} {_TESTS[test[1]]}"
            ran[kind] += 1
            good[kind] += outcome == "passed"
    for kind, count in sorted(ran.items()):
        share = good[kind] / count
        yield f"{kind}: {good[kind]} of {count} ops ({share:.1%})"
