# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The `holdfast` command. Each subcommand is a file in holdfast/commands/."""

import argparse
import importlib
import os
import pkgutil
import sys

import holdfast
from holdfast import _distribution, commands


def main(argv=None):
    arguments = sys.argv[1:] if argv is None else argv
    if not hasattr(holdfast, "_C"):
        # Not our own __init__.py: nothing of the package can be relied on.
        print(f"holdfast: {_distribution.problem()}", file=sys.stderr)
        return 1
    if arguments[:1] and arguments[0] in command_names():
        module = importlib.import_module(f"holdfast.commands.{arguments[0]}")
        if getattr(module, "PASSES_ON", False):
            return module.main(argparse.Namespace(arguments=arguments[1:]))
    args = make_parser().parse_args(arguments)
    try:
        return args.main(args)
    except BrokenPipeError:
        # The reader (`| head`) has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def make_parser():
    """Of all subcommands."""
    parser = argparse.ArgumentParser(
        prog="holdfast", description="Tensors that outlive your program."
    )
    parser.add_argument("--version", action=_Version, nargs=0)
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in command_names():
        module = importlib.import_module(f"holdfast.commands.{name}")
        subparser = subparsers.add_parser(
            name, help=module.HELP, description=module.__doc__.strip()
        )
        module.add_arguments(subparser)
        subparser.set_defaults(main=module.main)
    return parser


class _Version(argparse.Action):
    """The client's version; the daemon's is in `holdfast status`."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, help="print the client's version", **kwargs)

    def __call__(self, parser, *_):
        from holdfast.version import __version__

        print(f"holdfast {__version__}")
        parser.exit()


def command_names():
    """A subcommand is a module in commands/; names with _ are what they share."""
    found = (module.name for module in pkgutil.iter_modules(commands.__path__))
    return sorted(name for name in found if not name.startswith("_"))


if __name__ == "__main__":
    sys.exit(main())
