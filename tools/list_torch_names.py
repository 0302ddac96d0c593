# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Writes the public names of the installed PyTorch, a module or class a line:

    python tools/list_torch_names.py > python_client/tests/torch_names.txt

`torch.nn: Module Linear ...` lists a module, `torch.Tensor. add ...` the methods and
properties of a class that programs call. Public is what `__all__` of a module names;
where there is none, what the module itself defines. Nothing with an underscore in
front, and no module that needs another package to be imported.

The list is committed; tests walk over it and need no PyTorch. Run this again for
another release, with that release installed.
"""

import contextlib
import importlib
import inspect
import pkgutil
import sys
import types
import warnings

import torch

CLASSES = {
    "torch.Tensor": torch.Tensor,
    "torch.Generator": torch.Generator,
    "torch.UntypedStorage": torch.UntypedStorage,
    "torch.nn.Module": torch.nn.Module,
    "torch.optim.Optimizer": torch.optim.Optimizer,
    "torch.optim.lr_scheduler.LRScheduler": torch.optim.lr_scheduler.LRScheduler,
}
# What is imported for a look only, and starts servers, tests or command lines.
PROGRAMS = (".__main__", ".run", ".launch", ".main")


def modules():
    """The public modules of the package that can be imported, torch first."""
    yield torch
    for name in sorted(_module_names(torch.__path__, "torch.")):
        try:
            # Some speak when they are imported.
            with contextlib.redirect_stdout(sys.stderr):
                module = importlib.import_module(name)
        except Exception as error:  # of any kind: needs what is not here
            print(f"{name}: left out, {error}", file=sys.stderr)
        else:
            yield module


def _module_names(path, prefix):
    """Of a package: pkgutil's walk would import what has an underscore, too."""
    for module in pkgutil.iter_modules(path, prefix):
        leaf = module.name.rpartition(".")[2]
        if leaf.startswith("_") or module.name.endswith(PROGRAMS):
            continue
        yield module.name
        if module.ispkg:
            found = module.module_finder.find_spec(module.name)
            places = found.submodule_search_locations
            yield from _module_names(places, module.name + ".")


def public_names(module):
    """What the module says it has, without the modules in it."""
    listed = getattr(module, "__all__", None)
    if listed is None:
        listed = [n for n, v in vars(module).items() if _is_its_own(v, module)]
    for name in sorted(set(listed)):
        value = getattr(module, name, None)
        if not name.startswith("_") and not isinstance(value, types.ModuleType):
            yield name


def _is_its_own(value, module):
    callable_of_it = inspect.isclass(value) or callable(value)
    return callable_of_it and getattr(value, "__module__", None) == module.__name__


def is_member(name):
    """Whether programs use it: no private name, and no alias of a type (T and H are
    transposed tensors)."""
    return not name.startswith("_") and (name.islower() or len(name) < 3)


def main():
    warnings.simplefilter("ignore")
    print(f"# PyTorch {torch.__version__.partition('+')[0]}")
    for module in modules():
        print(f"{module.__name__}: {' '.join(public_names(module))}".rstrip())
    for name, kind in CLASSES.items():
        members = [m for m in sorted(dir(kind)) if is_member(m)]
        print(f"{name}. {' '.join(members)}")


if __name__ == "__main__":
    main()
