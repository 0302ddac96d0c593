# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The subcommands of ./dev, each in a module beside this one."""

import argparse
import importlib
import sys

from workspace import Failure

# Name, module, and the line that `./dev --help` shows.
COMMANDS = [
    ("setup", "environment", "install what is missing: Debian packages and .venv"),
    ("build", "build", "build the daemon and the Python extension"),
    ("test", "suites", "build, then run every test against the real daemon"),
    ("fuzz", "fuzz", "feed the daemon's readers with libFuzzer's inputs"),
    ("check", "checks", "formatting, lint, layering and file sizes, as CI runs them"),
    ("demo", "launch", "run the demonstration (examples/demo.py)"),
    ("serve", "launch", "run the daemon; arguments go to holdfastd"),
    ("bench", "launch", "run one benchmark (benchmarks/NAME.py)"),
    ("chaos", "launch", "cut connections and kill clients by the thousand"),
    ("soak", "launch", "everything at once, with restarts, for as long as you like"),
    ("python", "launch", "run Python with this tree's holdfast importable"),
    ("wheel", "wheel_file", "build the wheels of client and daemon into dist/"),
    ("bundle", "bundle_folder", "build the relocatable folder dist/holdfast-bundle/"),
    ("deb", "debian_package", "build Debian packages of daemon and client into dist/"),
]


def main():
    parser = argparse.ArgumentParser(
        prog="./dev",
        description="Builds, tests and runs Holdfast.",
        epilog="A first run: ./dev test; then ./dev demo.",
    )
    subparsers = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, module, summary in COMMANDS:
        sub = subparsers.add_parser(name, help=summary, description=summary)
        importlib.import_module(module).configure(name, sub)
    args = parser.parse_args(quote_rest(sys.argv[1:]))
    try:
        return args.main(args) or 0
    except Failure as failure:
        print(f"dev {args.command}: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130


def quote_rest(arguments):
    """Marks what belongs to the launched program, options included."""
    if arguments[:1] and arguments[0] in ("chaos", "demo", "serve", "soak", "python"):
        ours = ["--"], ["-h"], ["--help"]
        # The flags of `serve` are the daemon's, and so is the help on them.
        if arguments[0] == "serve":
            ours = ["--"], ["-h"]
        if arguments[1:2] not in ours:
            return [arguments[0], "--", *arguments[1:]]
    return arguments


if __name__ == "__main__":
    sys.exit(main())
