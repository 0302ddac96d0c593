# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The `holdfast` command. Each subcommand is a file in holdfast/commands/."""

import argparse
import importlib
import os
import pkgutil
import sys

from holdfast import commands


def main(argv=None):
    arguments = sys.argv[1:] if argv is None else argv
    parser = argparse.ArgumentParser(
        prog="holdfast", description="Tensors that outlive your program."
    )
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name in command_names():
        module = importlib.import_module(f"holdfast.commands.{name}")
        if arguments[:1] == [name] and getattr(module, "PASSES_ON", False):
            return module.main(argparse.Namespace(arguments=arguments[1:]))
        subparser = subparsers.add_parser(
            name, help=module.HELP, description=module.__doc__.strip()
        )
        module.add_arguments(subparser)
        subparser.set_defaults(main=module.main)
    args = parser.parse_args(arguments)
    try:
        return args.main(args)
    except BrokenPipeError:
        # The reader (`| head`) has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def command_names():
    """A subcommand is a module in commands/; names with _ are what they share."""
    found = (module.name for module in pkgutil.iter_modules(commands.__path__))
    return sorted(name for name in found if not name.startswith("_"))


if __name__ == "__main__":
    sys.exit(main())
