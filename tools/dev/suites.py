# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""./dev test: the C++ suites through Bazel, the Python suites through pytest."""

import os
import shutil

import build
import environment
import torch_environment
from reports import Counts, bazel_counts, pytest_counts
from workspace import (
    REPORTS,
    ROOT,
    VENV_PYTHON,
    Failure,
    capture,
    python_env,
    run,
    say,
)

PYTHON_SUITES = ["tools/tests", "tests", "python_client/tests"]
# Runs with PyTorch from PyPI, where that is or can be installed.
TORCH_SUITE = "torch_client/tests"
SANITIZER_VARIABLES = {
    "asan": ["ASAN_OPTIONS", "UBSAN_OPTIONS"],
    "tsan": ["TSAN_OPTIONS"],
}


def configure(_name, parser):
    parser.add_argument(
        "-k",
        metavar="EXPR",
        dest="only",
        help="only tests whose name matches: pytest's -k, *EXPR* for GoogleTest",
    )
    parser.add_argument("--cpp", action="store_true", help="only the C++ suites")
    parser.add_argument("--python", action="store_true", help="only the Python suites")
    parser.add_argument(
        "--no-torch",
        dest="torch",
        action="store_false",
        help=f"leave out {TORCH_SUITE}, which needs PyTorch from PyPI",
    )
    group = parser.add_mutually_exclusive_group()
    for config in SANITIZER_VARIABLES:
        group.add_argument(
            f"--{config}",
            dest="config",
            action="store_const",
            const=config,
            help=f"C++ suites and daemon built with --config={config}",
        )
    parser.set_defaults(main=main)


def main(args):
    both = args.cpp == args.python
    shutil.rmtree(REPORTS, ignore_errors=True)
    REPORTS.mkdir(parents=True)
    total = Counts()
    for name, wanted, suites in [
        ("C++", args.cpp or both, cpp_suites),
        ("Python", args.python or both, python_suites),
        ("PyTorch", (args.python or both) and args.torch, torch_suite),
    ]:
        if not wanted:
            continue
        try:
            total += suites(args.config, args.only)
        except Failure as failure:
            # Suites that could not run are a failure, and count as one.
            say(f"test: {failure}")
            total += Counts(failed=1, failures=[f"the {name} suites did not run"])
    for name in total.failures:
        say(f"FAILED {name}")
    print(total.line(), flush=True)
    return 1 if total.failed else 0


def cpp_suites(config, only):
    environment.setup()
    query = "tests(//...) except attr(tags, manual, //...)"
    if config:
        query += f" except attr(tags, no_{config}, //...)"
    hint = "Mend the BUILD file that the message names."
    expected = capture(["bazel", "query", query], hint=hint).split()
    if not expected:
        say("no C++ tests in this tree")
        return Counts()
    events = REPORTS / "bazel_events.json"
    run(
        [
            "bazel",
            "test",
            "--keep_going",
            f"--build_event_json_file={events}",
            *([f"--config={config}"] if config else []),
            *([f"--test_filter=*{only}*"] if only else []),
            "--",
            *expected,
        ],
        what=f"testing {len(expected)} C++ targets {config or ''}".strip(),
        hint="",
        check=False,
    )
    return bazel_counts(events, expected)


def python_suites(config, only):
    build.build(config)
    folders = [folder for folder in PYTHON_SUITES if (ROOT / folder).is_dir()]
    if not folders:
        say("no Python tests in this tree")
    counts = Counts()
    for folder in folders:
        counts += python_suite(folder, config, only)
    return counts + sanitizer_counts(config)


def torch_suite(config, only):
    """torch_client's tests; skipped as one where PyTorch cannot be had."""
    if config:
        return skipped("PyTorch is built without sanitizers")
    try:
        torch_environment.setup()
    except torch_environment.Unreachable as reason:
        return skipped(reason)
    build.build()
    torch_environment.build()
    # Thousands of PyTorch's own samples: each file in one of several processes.
    processes = str(min(os.cpu_count() or 1, 4))
    return python_suite(
        TORCH_SUITE,
        None,
        only,
        torch_environment.PYTHON,
        torch_environment.env(),
        ["-n", processes, "--dist", "loadfile"],
    )


def skipped(reason):
    say(f"SKIPPED {TORCH_SUITE}: {reason}")
    return Counts(skipped=1)


def python_suite(folder, config, only, python=VENV_PYTHON, env=None, more=()):
    """A process of its own: what one suite imports changes the others.

    The fault suite speaks gRPC on its own, for example, after which a fork of
    the process must not use gRPC.
    """
    report = REPORTS / f"pytest_{folder.replace('/', '_')}.xml"
    env = env or python_env(config)
    if config:
        env["HOLDFAST_SANITIZER"] = config  # for tests that it must not judge
    for variable in SANITIZER_VARIABLES.get(config, []):
        options = [f"log_path={REPORTS}/{config}", env.get(variable)]
        env[variable] = ":".join(filter(None, options))
    status = run(
        [
            *(python, "-m", "pytest", "-q", "-ra"),
            f"--junitxml={report}",
            *(["-k", only] if only else []),
            *more,
            # Under a sanitizer the daemon takes several times as long.
            *(["-o", "timeout=600"] if config else []),
            folder,
        ],
        what=f"testing {folder}",
        hint="",
        env=env,
        check=False,
    )
    return pytest_counts(report, status)


def sanitizer_counts(config):
    """Each daemon that left a sanitizer's report is one failure."""
    counts = Counts()
    for log in sorted(REPORTS.glob(f"{config}.*")) if config else []:
        if os.path.getsize(log):
            counts += Counts(failed=1, failures=[str(log.relative_to(ROOT))])
    return counts
