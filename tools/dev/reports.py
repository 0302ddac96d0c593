# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Counts of passed and failed tests, read from Bazel's and pytest's reports."""

import json
import urllib.parse
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass, field
from pathlib import Path

# pytest's exit status when nothing was collected, as with a -k that fits none.
NO_TESTS_COLLECTED = 5


@dataclass
class Counts:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    failures: list = field(default_factory=list)

    def __add__(self, other):
        return Counts(
            self.passed + other.passed,
            self.failed + other.failed,
            self.skipped + other.skipped,
            self.failures + other.failures,
        )

    def line(self):
        line = f"{self.passed} passed, {self.failed} failed"
        return line + (f", {self.skipped} skipped" if self.skipped else "")


def junit_counts(path, suite=None):
    """Counts the cases of one report in JUnit's format."""
    counts = Counts()
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        parts = (suite, case.get("classname"), case.get("name"))
        name = ".".join(part for part in parts if part)
        if case.find("failure") is not None or case.find("error") is not None:
            counts += Counts(failed=1, failures=[name])
        elif (
            case.find("skipped") is not None
            or case.get("status") == "notrun"
            or case.get("result") == "skipped"
        ):
            counts += Counts(skipped=1)
        else:
            counts += Counts(passed=1)
    return counts


def bazel_counts(events_path, expected):
    """Counts cases from a build event file; every target in `expected` counts.

    A target that did not build, crashed or timed out is at least one failure,
    whatever its report says.
    """
    reports = {label: [] for label in expected}
    outcome = {}
    lines = events_path.read_text().splitlines() if events_path.exists() else []
    for line in lines:
        event = json.loads(line)
        if "testResult" in event:
            label = event["id"]["testResult"]["label"]
            for output in event["testResult"].get("testActionOutput", []):
                if output["name"] == "test.xml":
                    path = urllib.parse.unquote(output["uri"][len("file://") :])
                    reports.setdefault(label, []).append(Path(path))
        elif "testSummary" in event:
            label = event["id"]["testSummary"]["label"]
            outcome[label] = event["testSummary"]["overallStatus"]

    total = Counts()
    for label, paths in sorted(reports.items()):
        counts = Counts()
        for path in paths:
            try:
                counts += junit_counts(path, label)
            except (OSError, ElementTree.ParseError):
                pass  # The outcome below says that the target failed.
        status = outcome.get(label, "did not build")
        if status != "PASSED" and not counts.failed:
            counts += Counts(failed=1, failures=[f"{label} ({status})"])
        total += counts
    return total


def pytest_counts(report, status):
    """Counts pytest's report; a run that broke off is at least one failure."""
    try:
        counts = junit_counts(report)
    except (OSError, ElementTree.ParseError):
        counts = Counts()
    if status not in (0, NO_TESTS_COLLECTED) and not counts.failed:
        counts += Counts(failed=1, failures=[f"pytest ended with status {status}"])
    return counts
