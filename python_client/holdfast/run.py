# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""`holdfast run script.py`: a PyTorch program, unchanged, on the daemon.

In this process, and nowhere else, `import torch` gives `holdfast`, and
`import torch.nn` its `holdfast.nn`; `import torchvision` gives `holdfast.vision`
where torchvision is not installed; `import safetensors.torch` gives
`holdfast.safetensors`, and so does `import safetensors` where that is not installed.
What Holdfast lacks raises an error that names
it. Nothing is written to disk, and an installed PyTorch is not touched. With --torch
it is the installed PyTorch that runs, with the daemon as its device
(holdfast_torch/run.py).
"""

import argparse
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import io
import os
import runpy
import sys
import types

from holdfast.missing import module_getattr


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
    """Finds a package, `torch` or `torchvision`, and its submodules in ours."""

    def __init__(self, package, own):
        self._package = package
        self._own = own

    def find_spec(self, fullname, path=None, target=None):
        if fullname == "multiprocessing.util":
            return _changed_on_import(fullname, path, _with_stand_in)
        top, _, rest = fullname.partition(".")
        if top != self._package:
            return None
        own = f"{self._own}.{rest}" if rest else self._own
        try:
            module = importlib.import_module(own)
        except ModuleNotFoundError as error:
            if error.name is not None and not own.startswith(error.name):
                raise  # something that the module itself needs
            from holdfast import _advice

            raise ModuleNotFoundError(
                f"holdfast has no module {fullname}. {_advice.about(fullname)}",
                name=fullname,
            ) from None
        if not hasattr(module, "__getattr__"):
            module.__getattr__ = module_getattr(fullname)
        if not hasattr(module, "__path__"):
            # Python would say of what is below it that it is no package.
            module.__path__ = []
        return importlib.util.spec_from_loader(
            fullname, _Loader(module), is_package=True
        )

    def find_distributions(self, context):
        """Of importlib.metadata: programs ask it for torch's version."""
        if self._package == "torch" and context.name in ("torch", None):
            from holdfast import __version__
            from holdfast.stand_in_distribution import StandIn

            yield StandIn("torch", __version__)


class _SafetensorsFinder(importlib.abc.MetaPathFinder):
    """Finds safetensors.torch in ours: PyTorch's reads tensors by their addresses."""

    def find_spec(self, fullname, path=None, target=None):
        if fullname == "safetensors":
            installed = importlib.machinery.PathFinder.find_spec(fullname, path)
            if installed is not None:
                return _changed_on_import(fullname, path, _with_own_safe_open)
        elif fullname != "safetensors.torch":
            return None
        module = importlib.import_module("holdfast.safetensors")
        # The one module is both.
        package = fullname == "safetensors"
        spec = importlib.util.spec_from_loader(
            fullname, _Loader(module), is_package=package
        )
        if package and not hasattr(module, "__path__"):
            module.__path__ = []
        module.torch = module
        return spec


def _with_own_safe_open(module):
    """safe_open(file, framework="pt") opens a file for this package."""
    installed = module.safe_open

    def safe_open(filename, framework, *args, **kwargs):
        from holdfast import safetensors

        ours = framework in ("pt", "torch", "pytorch")
        opens = safetensors.safe_open if ours else installed
        return opens(filename, framework, *args, **kwargs)

    module.safe_open = safe_open


def _changed_on_import(fullname, path, change):
    """The spec of a module that `change` is called with when it is imported: most
    programs never import it."""
    spec = importlib.machinery.PathFinder.find_spec(fullname, path)
    execute = spec.loader.exec_module

    def exec_module(module):
        execute(module)
        change(module)

    spec.loader.exec_module = exec_module
    return spec


def stand_in_for_torch():
    """From now on `import torch` in this process means this package."""
    loaded = [n for n in sys.modules if n.partition(".")[0] == "torch"]
    if any(not _is_ours(sys.modules[n]) for n in loaded):
        raise RuntimeError(
            "torch is already imported in this process; stand_in_for_torch() must "
            "come first"
        )
    import holdfast
    from holdfast.torch_version import LEVEL, TorchVersion

    # What programs print is what PyTorch prints.
    holdfast._C.set_shown_package("torch")
    holdfast.__version__ = TorchVersion(f"{LEVEL}+holdfast.{holdfast.__version__}")
    sys.meta_path.insert(0, _Finder("torch", "holdfast"))
    sys.meta_path.insert(0, _SafetensorsFinder())
    if importlib.util.find_spec("torchvision") is None:
        sys.meta_path.insert(0, _Finder("torchvision", "holdfast.vision"))
    if "multiprocessing.util" in sys.modules:
        _with_stand_in(sys.modules["multiprocessing.util"])


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
        "--torch",
        action="store_true",
        help="with the installed PyTorch and holdfast_torch: the daemon is its device, "
        'which the program may call "cuda"',
    )
    parser.add_argument(
        "--default-device",
        choices=("holdfast", "cpu"),
        default="holdfast",
        help="with --torch: where tensors go whose device the program does not name",
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
    if args.torch:
        from holdfast_torch import run as with_pytorch

        return with_pytorch.run(args)
    stand_in_for_torch()
    return run_program(args)


def run_program(args):
    """The program itself, as __main__."""
    sys.excepthook = _users_traceback
    sys.argv = [args.script, *args.arguments]
    if args.module:
        sys.path.insert(0, os.getcwd())
        runpy.run_module(args.script, run_name="__main__", alter_sys=True)
    else:
        sys.path.insert(0, os.path.dirname(os.path.abspath(args.script)))
        _run_script(args.script)
    return 0


def _run_script(path):
    """Runs a file as the module __main__, which it stays: classes in it can be
    pickled, and processes that it starts find it."""
    path = os.path.abspath(path)
    main = types.ModuleType("__main__")
    main.__dict__.update(__file__=path, __builtins__=__builtins__)
    sys.modules["__main__"] = main
    with io.open_code(path) as file:
        code = compile(file.read(), path, "exec", dont_inherit=True)
    exec(code, main.__dict__)


def _users_traceback(kind, error, traceback):
    """sys.excepthook: the traceback begins in the program, as under `python`."""
    shown = traceback
    while shown is not None and _is_before_program(shown.tb_frame.f_code.co_filename):
        shown = shown.tb_next
    if shown is None and not isinstance(error, SyntaxError):
        shown = traceback  # a SyntaxError of the program itself has no frame in it
    sys.__excepthook__(kind, error.with_traceback(shown), shown)


def _is_before_program(filename):
    own = ("run.py", "__main__.py", "cli.py")
    folder, name = os.path.split(filename)
    here = os.path.dirname(os.path.abspath(__file__))
    if folder == here:
        return name in own
    with_pytorch = name == "run.py" and os.path.basename(folder) == "holdfast_torch"
    return with_pytorch or filename.startswith("<frozen ")


def _with_stand_in(util):
    """Processes that multiprocessing starts anew (spawned ones, and the server that
    forkserver forks from) stand in for torch, too, before they import the program."""
    start = util.spawnv_passfds
    first = "from holdfast.run import stand_in_for_torch; stand_in_for_torch(); "
    changed = ("from multiprocessing.spawn ", "from multiprocessing.forkserver ")

    def with_stand_in(path, args, passfds):
        args = [first + a if str(a).startswith(changed) else a for a in args]
        return start(path, args, passfds)

    util.spawnv_passfds = with_stand_in


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
