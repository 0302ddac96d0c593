# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""./dev check: what CI demands of the sources, before any test runs, and of the
symbols of the binaries, where there are any."""

import subprocess
import sys

from workspace import ROOT, Failure, capture, daemon, fake_plugin, plugin, say

CPP = (".cc", ".h", ".cu", ".cuh")


def configure(_name, parser):
    parser.add_argument(
        "--fix", action="store_true", help="let clang-format and black rewrite files"
    )
    parser.set_defaults(main=main)


def main(args):
    files = source_files()
    cpp = [name for name in files if name.endswith(CPP)]
    python = [name for name in files if name.endswith(".py")]
    clang_format = ["-i"] if args.fix else ["--dry-run", "-Werror"]
    black = [] if args.fix else ["--check"]
    checks = [
        ("clang-format", ["clang-format", *clang_format], cpp),
        ("black", ["black", *black], python),
        ("flake8", ["flake8"], python),
        ("layers", [sys.executable, "tools/check_layers.py"], files),
        ("sizes", [sys.executable, "tools/check_sizes.py"], files),
    ]
    if daemon().exists():
        libraries = [str(path) for path in (fake_plugin(), plugin()) if path.exists()]
        symbols = [sys.executable, "tools/check_symbols.py", str(daemon())]
        checks.append(("symbols as last built", symbols, libraries))
    # All of them run, so that one round of mending is enough.
    failed = [name for name, command, over in checks if not passes(name, command, over)]
    if failed:
        hint = "" if args.fix else " ./dev check --fix mends formatting."
        raise Failure(f"failed: {', '.join(failed)}.{hint}")
    say("check: all is well")


def source_files():
    """Files that git tracks or would track, as paths from the root."""
    listing = capture(["git", "ls-files", "-co", "--exclude-standard"])
    return sorted(name for name in listing.splitlines() if (ROOT / name).is_file())


def passes(name, command, files):
    if not files:
        return True
    try:
        result = subprocess.run(
            [*command, *files],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
    except FileNotFoundError:
        raise Failure(f"{command[0]} is not installed. Run ./dev setup.") from None
    status = result.returncode
    output = result.stdout.splitlines()
    if name == "clang-format":
        output = [f"{path}: not as clang-format has it" for path in badly_set(output)]
    # black praises; the size check warns without failing.
    if status or name == "sizes":
        for line in output:
            print(line, flush=True)
    say(f"{name}: {'ok' if status == 0 else 'FAILED'} ({len(files)} files)")
    return status == 0


def badly_set(output):
    """Files that clang-format names; it shows each one many times over."""
    return sorted({line.split(":")[0] for line in output if ": error: " in line})
