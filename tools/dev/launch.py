# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""./dev demo, serve, bench, chaos, soak and python: programs run from this tree."""

import argparse
import ast
import os

import build
from workspace import (
    EXTENSION,
    ROOT,
    VENV_PYTHON,
    Failure,
    daemon,
    exec_python,
    python_env,
)

BENCHMARKS = ROOT / "benchmarks"
DEMO = ROOT / "examples/demo.py"
CHAOS = ROOT / "tests/faults/chaos.py"
SOAK = ROOT / "tests/faults/soak.py"
# Where `serve` takes gRPC clients, beside the socket for local ones.
SERVE_ADDRESS = "127.0.0.1:50151"


def configure(name, parser):
    if name == "bench":
        parser.add_argument("--list", action="store_true", help="list the benchmarks")
        parser.add_argument("name", nargs="?", metavar="NAME")
        rest = "for the benchmark, such as --json FILE"
    else:
        rest = {
            "chaos": "for the run, such as --cuts 100 --kills 0 --seed 7",
            "serve": "for holdfastd",
            "soak": "for the run, such as --minutes 20 --seed 7",
            "demo": "for the demonstration",
        }.get(name, "for the interpreter")
    parser.add_argument("rest", nargs=argparse.REMAINDER, metavar="...", help=rest)
    programs = {
        "bench": bench_main,
        "chaos": chaos_main,
        "demo": demo_main,
        "python": python_main,
        "serve": serve_main,
        "soak": soak_main,
    }
    parser.set_defaults(main=programs[name])


def demo_main(args):
    if not DEMO.exists():
        raise Failure("examples/demo.py is not in this tree.")
    build.build()
    exec_python([DEMO, *rest_of(args)])


def chaos_main(args):
    build.build()
    exec_python([CHAOS, *rest_of(args)])


def soak_main(args):
    build.build()
    exec_python([SOAK, *rest_of(args)])


def serve_main(args):
    build.build()
    # The last of two equal flags holds, so that the user's own win.
    flags = [f"--listen={SERVE_ADDRESS}", *rest_of(args)]
    os.execve(daemon(), [str(daemon()), *flags], python_env())


def python_main(args):
    if not (EXTENSION.exists() and daemon().exists() and VENV_PYTHON.exists()):
        build.build()
    exec_python(rest_of(args))


def bench_main(args):
    if args.list:
        for path in benchmarks():
            print(f"{name_of(path):<24} {summary(path)}")
        return
    if not args.name:
        raise Failure("name a benchmark; ./dev bench --list shows them.")
    known = {name_of(path): path for path in benchmarks()}
    if args.name not in known:
        raise Failure(f"no benchmark {args.name}; ./dev bench --list shows them.")
    build.build()
    exec_python([known[args.name], *rest_of(args)])


def rest_of(args):
    """The program's own arguments, without the mark that sets them apart."""
    return args.rest[1:] if args.rest[:1] == ["--"] else args.rest


def benchmarks():
    """The programs: files, or folders with a __main__.py. A module that they share
    has no `main`."""
    return [
        path
        for path in sorted(
            [*BENCHMARKS.glob("*.py"), *BENCHMARKS.glob("*/__main__.py")]
        )
        if "def main(" in path.read_text()
    ]


def name_of(benchmark):
    return benchmark.parent.name if benchmark.stem == "__main__" else benchmark.stem


def summary(path):
    doc = ast.get_docstring(ast.parse(path.read_text())) or ""
    return doc.split("\n")[0]
