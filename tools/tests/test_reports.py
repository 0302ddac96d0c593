# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

import json

from reports import bazel_counts, junit_counts, pytest_counts

CASES = """<testsuites><testsuite>
<testcase classname="A" name="passes" status="run" result="completed"/>
<testcase classname="A" name="fails"><failure message="no"/></testcase>
<testcase classname="A" name="breaks"><error message="no"/></testcase>
<testcase classname="A" name="skips" status="run" result="skipped"/>
<testcase classname="A" name="disabled" status="notrun"/>
<testcase classname="A" name="skipped_by_pytest"><skipped/></testcase>
</testsuite></testsuites>"""
PASSING = '<testsuite><testcase classname="A" name="passes"/></testsuite>'


def test_counts_each_case_once(tmp_path):
    report = tmp_path / "test.xml"
    report.write_text(CASES)
    counts = junit_counts(report, "//a:b")
    assert counts.line() == "1 passed, 2 failed, 3 skipped"
    assert counts.failures == ["//a:b.A.fails", "//a:b.A.breaks"]


def bazel_events(tmp_path, status):
    (tmp_path / "test.xml").write_text(PASSING)
    output = {"name": "test.xml", "uri": (tmp_path / "test.xml").as_uri()}
    events = [
        {
            "id": {"testResult": {"label": "//a:b"}},
            "testResult": {"testActionOutput": [output]},
        },
        {
            "id": {"testSummary": {"label": "//a:b"}},
            "testSummary": {"overallStatus": status},
        },
    ]
    path = tmp_path / "events.json"
    path.write_text("".join(json.dumps(event) + "\n" for event in events))
    return path


def test_bazel_target_that_passed(tmp_path):
    events = bazel_events(tmp_path, "PASSED")
    assert bazel_counts(events, ["//a:b"]).line() == "1 passed, 0 failed"


def test_bazel_target_that_failed_after_its_cases(tmp_path):
    events = bazel_events(tmp_path, "FAILED")
    assert bazel_counts(events, ["//a:b"]).line() == "1 passed, 1 failed"


def test_bazel_target_that_did_not_build(tmp_path):
    events = bazel_events(tmp_path, "PASSED")
    counts = bazel_counts(events, ["//a:b", "//a:c"])
    assert counts.line() == "1 passed, 1 failed"
    assert counts.failures == ["//a:c (did not build)"]


def test_no_event_file(tmp_path):
    counts = bazel_counts(tmp_path / "none.json", ["//a:b"])
    assert counts.line() == "0 passed, 1 failed"


def test_pytest_that_died(tmp_path):
    assert pytest_counts(tmp_path / "none.xml", -11).failed == 1
    report = tmp_path / "pytest.xml"
    report.write_text(PASSING)
    assert pytest_counts(report, 3).line() == "1 passed, 1 failed"
    assert pytest_counts(report, 0).line() == "1 passed, 0 failed"
