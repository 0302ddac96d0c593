# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Finds the library _torch for the running PyTorch, or builds it.

PyTorch's C++ interface differs from series to series, and the library speaks to
Python: there is one for each pair, in built/torch_2_15/ and so on. Where a wheel has
none that fits, it is compiled once from the sources that the wheel carries, into
a cache directory.
"""

import hashlib
import importlib.machinery
import importlib.util
import os
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

import torch

# Series of PyTorch that the sources are built and tested with.
SUPPORTED = ("2.15",)
# Where libraries that are built here go; None: the user's cache directory.
CACHE = "HOLDFAST_TORCH_CACHE"

_HERE = Path(__file__).resolve().parent
_FILE = "_torch" + sysconfig.get_config_var("EXT_SUFFIX")


def series():
    """The running PyTorch's: "2.15"."""
    return ".".join(torch.__version__.split(".")[:2])


def load():
    """The module holdfast_torch._torch. ImportError: there is none, and why."""
    require_supported(series())
    name = "holdfast_torch._torch"
    if name not in sys.modules:
        path = find() or build()
        loader = importlib.machinery.ExtensionFileLoader(name, str(path))
        spec = importlib.util.spec_from_file_location(name, path, loader=loader)
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
        sys.modules[name] = module
    return sys.modules[name]


def require_supported(running):
    if running not in SUPPORTED:
        raise ImportError(
            f"holdfast_torch works with PyTorch {', '.join(SUPPORTED)}. Got PyTorch "
            f"{torch.__version__}. Install another: pip install "
            f'"torch=={SUPPORTED[-1]}.*"'
        )


def find():
    """The library's file, from the package or from an earlier build; None without."""
    for folder in (lambda: _HERE / "built", cache_folder):
        path = folder() / _series_folder() / _FILE
        if path.exists():
            return path
    return None


def _series_folder():
    return "torch_" + series().replace(".", "_")


def sources():
    """The folder with setup.py, client_api.h and csrc/: the wheel's, or the tree's."""
    packed = _HERE / "sources"
    return packed if packed.is_dir() else _HERE.parent


def cache_folder():
    """By the sources and PyTorch's very version: a nightly of a series is another."""
    digest = hashlib.sha256(torch.__version__.encode())
    for path in sorted(sources().glob("csrc/*")):
        digest.update(path.read_bytes())
    named = os.environ.get(CACHE)
    if named:
        folder = Path(named)
    else:
        caches = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        folder = Path(caches) / "holdfast" / "torch"
    return folder / digest.hexdigest()[:16]


def build():
    """Compiles the library into the cache; returns its file. About a minute a core."""
    folder = cache_folder()
    print(
        f"holdfast_torch: building the library for PyTorch {series()} and Python "
        f"{sys.version_info.major}.{sys.version_info.minor} in {folder}; this takes "
        "some minutes, once",
        file=sys.stderr,
        flush=True,
    )
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as scratch:
        command = [sys.executable, "setup.py", "-q", "build_ext"]
        command += ["--build-lib", scratch, "--build-temp", scratch + "/objects"]
        done = subprocess.run(
            command, cwd=sources(), capture_output=True, text=True, errors="replace"
        )
        made = Path(scratch, "holdfast_torch/built", _series_folder(), _FILE)
        if done.returncode or not made.exists():
            raise ImportError(_no_library(done.stderr or done.stdout))
        path = folder / _series_folder() / _FILE
        path.parent.mkdir(exist_ok=True)
        made.replace(path)
    return path


def _no_library(said):
    lines = said.strip().splitlines()
    last = lines[-1] if lines else "the compiler said nothing"
    return (
        f"holdfast_torch has no library for PyTorch {series()} on Python "
        f"{sys.version_info.major}.{sys.version_info.minor} ({sys.platform}) and could "
        "not build one: it takes a C++ compiler (g++), Python's headers and the "
        f"package setuptools. Install those, or a wheel for this PyTorch. The build "
        f"said: {last}"
    )
