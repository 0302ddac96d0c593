# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""`holdfast run script.py`: a PyTorch program, unchanged, on the daemon.

In this process, and nowhere else, `import torch` gives `holdfast`, and
`import torch.nn` its `holdfast.nn`. What Holdfast lacks raises an error that
names it. Nothing is written to disk, and an installed PyTorch is not touched.
"""

import argparse
import importlib
import importlib.abc
import importlib.util
import os
import runpy
import sys

# The version whose API this follows, as programs compare it.
_TORCH_VERSION = "1.13.1"


class _Loader(importlib.abc.Loader):
    """Puts a module of the package where the import system wants another."""

    def __init__(self, own):
        self._own = own

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        # The import system takes what it finds there after this call.
        sys.modules[module.__name__] = self._own


class _Finder(importlib.abc.MetaPathFinder):
    """Finds `torch` and its submodules in the package."""

    def find_spec(self, fullname, path=None, target=None):
        top, _, rest = fullname.partition(".")
        if top != "torch":
            return None
        own = "holdfast." + rest if rest else "holdfast"
        try:
            module = importlib.import_module(own)
        except ModuleNotFoundError as error:
            if error.name is not None and not own.startswith(error.name):
                raise  # something that the module itself needs
            raise ModuleNotFoundError(
                f"holdfast has no module {fullname}", name=fullname
            ) from None
        return importlib.util.spec_from_loader(
            fullname, _Loader(module), is_package=hasattr(module, "__path__")
        )


def stand_in_for_torch():
    """From now on `import torch` in this process means this package."""
    loaded = [n for n in sys.modules if n.partition(".")[0] == "torch"]
    if any(not _is_ours(sys.modules[n]) for n in loaded):
        raise RuntimeError(
            "torch is already imported in this process; stand_in_for_torch() must "
            "come first"
        )
    import holdfast

    holdfast.__version__ = f"{_TORCH_VERSION}+holdfast.{holdfast.__version__}"
    sys.meta_path.insert(0, _Finder())


def _is_ours(module):
    return getattr(module, "__name__", "").partition(".")[0] == "holdfast"


def add_arguments(parser):
    """The command line of `holdfast run` and `python -m holdfast.run`."""
    parser.add_argument(
        "--address",
        metavar="ADDRESS",
        help="the daemon: host:port or unix:PATH (default: HOLDFAST_ADDRESS, else "
        "this machine's, else a private one)",
    )
    parser.add_argument(
        "--device",
        choices=("cpu", "cuda"),
        help="what the daemon must compute on; an error if it does not",
    )
    parser.add_argument(
        "-m", dest="module", action="store_true", help="the script is a module's name"
    )
    parser.add_argument("script", help="the program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")


def run(args):
    """Runs the program; returns when it ends, raises what it raises."""
    if args.address:
        os.environ["HOLDFAST_ADDRESS"] = args.address
    if args.device:
        import holdfast

        device = holdfast.connect().device
        if device.partition(":")[0] != args.device:
            print(
                f"holdfast: the daemon computes on {device}, not on {args.device}; "
                "choose another with --address",
                file=sys.stderr,
            )
            return 1
    if not args.module and not os.path.exists(args.script):
        print(f"holdfast: there is no {args.script}", file=sys.stderr)
        return 1
    stand_in_for_torch()
    if args.module:
        sys.argv = [args.script, *args.arguments]
        sys.path.insert(0, os.getcwd())
        runpy.run_module(args.script, run_name="__main__", alter_sys=True)
    else:
        sys.argv = [args.script, *args.arguments]
        sys.path.insert(0, os.path.dirname(os.path.abspath(args.script)))
        runpy.run_path(args.script, run_name="__main__")
    return 0


def main(argv=None):
    parser = argparse.ArgumentParser(
        prog="python -m holdfast.run", description=__doc__.split("\n")[0]
    )
    add_arguments(parser)
    return run(parser.parse_args(argv))


if __name__ == "__main__":
    # As the package's own module: this one is called __main__.
    from holdfast.run import main as _main

    sys.exit(_main())
