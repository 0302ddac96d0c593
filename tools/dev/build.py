# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""./dev build: the daemon, device libraries, the extension module."""

import filecmp
import os
import shutil
import subprocess

import environment
import torch_environment
from workspace import (
    DAEMON_TARGET,
    EXTENSION,
    EXTENSION_TARGET,
    FAKE_DEVICE_TARGET,
    PLUGIN_TARGET,
    ROOT,
    VENV_PYTHON,
    Failure,
    bazel_bin,
    capture,
    daemon,
    run,
    say,
)


def configure(_name, parser):
    group = parser.add_mutually_exclusive_group()
    for config, sanitizers in [("asan", "Address and UB"), ("tsan", "Thread")]:
        group.add_argument(
            f"--{config}",
            dest="config",
            action="store_const",
            const=config,
            help=f"build the daemon with {sanitizers}Sanitizer",
        )
    parser.add_argument(
        "--cuda", action="store_true", help="build the CUDA device's library too"
    )
    parser.add_argument(
        "--torch",
        action="store_true",
        help="build holdfast_torch too, with PyTorch from PyPI (.venv-torch)",
    )
    parser.set_defaults(main=main)


def main(args):
    build(args.config, args.cuda)
    if args.torch:
        torch_environment.build()


def build(config=None, cuda=False):
    """Builds everything that `import holdfast` and the daemon need."""
    environment.setup()
    # A sanitizer goes into the daemon alone: the extension is loaded by an
    # interpreter that was built without it.
    server = [DAEMON_TARGET, FAKE_DEVICE_TARGET]
    if cuda:
        require_toolkit()
        server.append(PLUGIN_TARGET)
    if config:
        compile_targets([EXTENSION_TARGET])
        compile_targets(server, config)
    else:
        compile_targets([EXTENSION_TARGET, *server])
    install_extension()
    say(f"daemon: {daemon(config).relative_to(ROOT)}")


def compile_targets(targets, config=None):
    flags = [f"--config={config}"] if config else []
    run(
        ["bazel", "build", *flags, *targets],
        what=f"building {' '.join(targets)}" + (f" ({config})" if config else ""),
        hint="The compiler's message is above.",
    )


def require_toolkit():
    """Fails where there is no CUDA toolkit, and so no library to build."""
    query = ["bazel", "query", "--noshow_progress", PLUGIN_TARGET]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    if subprocess.call(query, cwd=ROOT, **quiet):
        raise Failure(
            "there is no CUDA toolkit in $CUDA_HOME or /usr/local/cuda. "
            "Install one, or build without --cuda."
        )


def install_extension():
    """Puts the extension into the package, where git ignores it."""
    built = bazel_bin() / "python_client/_C.abi3.so"
    if EXTENSION.exists() and filecmp.cmp(built, EXTENSION, shallow=False):
        return
    # Renamed into place: a running interpreter keeps the file it has mapped.
    fresh = EXTENSION.with_name(f".{EXTENSION.name}.{os.getpid()}")
    shutil.copyfile(built, fresh)
    fresh.chmod(0o755)
    fresh.rename(EXTENSION)
    # For editors; wheels make their own.
    capture([VENV_PYTHON, ROOT / "python_client/generate_stubs.py"])
