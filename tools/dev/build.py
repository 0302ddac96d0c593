# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""./dev build: the daemon, the device plugin, the extension module."""

import filecmp
import os
import shutil
import subprocess

import environment
from workspace import (
    DAEMON_TARGET,
    EXTENSION,
    EXTENSION_TARGET,
    PLUGIN_TARGET,
    ROOT,
    bazel_bin,
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
    parser.set_defaults(main=lambda args: build(args.config))


def build(config=None):
    """Builds everything that `import holdfast` and the daemon need."""
    environment.setup()
    # A sanitizer goes into the daemon alone: the extension is loaded by an
    # interpreter that was built without it.
    server = [DAEMON_TARGET, *([PLUGIN_TARGET] if has_plugin() else [])]
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


def has_plugin():
    """Whether this tree, on this machine, has a CUDA plugin to build."""
    query = ["bazel", "query", "--noshow_progress", PLUGIN_TARGET]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.call(query, cwd=ROOT, **quiet) == 0


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
