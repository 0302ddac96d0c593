# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""The daemon and the libraries of its devices, as built: neither calls functions of
the other but the entry point and Abseil's."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.daemon import Daemon, find_daemon

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "tools"))
import check_symbols  # noqa: E402

# What has a version is the system's: a program may hold variables of the C library.
BINDING = re.compile(
    r"binding file (\S+) \[0\] to (\S+) \[0\]: \w+ symbol `(\w+)'(?! \[)"
)


def libraries():
    """Of the fake device, and of CUDA where it was built."""
    folders = [Path(find_daemon()).parent]
    folders += filter(None, [os.environ.get("HOLDFAST_PLUGIN_PATH")])
    files = {f for folder in folders for f in Path(folder).glob("libholdfast_*.so")}
    return sorted(files)


def test_daemon_and_libraries_share_no_symbol():
    files = libraries()
    if not any(f.name == "libholdfast_fake.so" for f in files):
        pytest.skip("the fake device's library is not built")
    check = [sys.executable, ROOT / "tools/check_symbols.py", find_daemon(), *files]
    result = subprocess.run(check, stdout=subprocess.PIPE, text=True)
    assert result.returncode == 0, result.stdout


def test_the_linker_binds_nothing_between_them(tmp_path, monkeypatch):
    monkeypatch.setenv("LD_DEBUG", "bindings")
    monkeypatch.setenv("LD_DEBUG_OUTPUT", str(tmp_path / "bindings"))
    monkeypatch.setenv("HOLDFAST_FAKE_KERNELS", "cuda")
    with Daemon("--device=fake"):
        pass
    found = [
        (Path(user).name, Path(owner).name, symbol)
        for file in tmp_path.glob("bindings.*")
        for user, owner, symbol in BINDING.findall(file.read_text(errors="replace"))
    ]
    binaries = {"libholdfast_fake.so", Path(find_daemon()).name}
    between = {
        symbol
        for user, owner, symbol in found
        if user != owner and {user, owner} == binaries
    }
    # The whole was seen: Abseil is what they share.
    assert any(check_symbols.is_absl(symbol) for symbol in between)
    wrong = {s for s in between if not check_symbols.is_absl(s)}
    assert wrong <= {"holdfast_device_plugin"}
