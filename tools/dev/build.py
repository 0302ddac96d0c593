# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""./dev build: the daemon, the extension module, device libraries."""

import filecmp
import os
import shutil

import environment
from workspace import (
    DAEMON_TARGET,
    EXTENSION,
    EXTENSION_TARGET,
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
    compile_targets([EXTENSION_TARGET, *([] if config else [DAEMON_TARGET])])
    if config:
        compile_targets([DAEMON_TARGET], config)
    install_extension()
    say(f"daemon: {daemon(config).relative_to(ROOT)}")


def compile_targets(targets, config=None):
    flags = [f"--config={config}"] if config else []
    run(
        ["bazel", "build", *flags, *targets],
        what=f"building {' '.join(targets)}" + (f" ({config})" if config else ""),
        hint="The compiler's message is above.",
    )


def device_libraries():
    """Device plugins that were built; none without their toolkit."""
    return sorted((bazel_bin() / "kernels").glob("*/libholdfast_*.so"))


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
