# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""holdfast backup: a copy of a running daemon's state is all of one moment."""

import subprocess
import sys

import pytest

import holdfast
from holdfast.commands import backup
from holdfast.daemon import Daemon

# Two names, each version full of its number; the second follows the first.
PUBLISH = """
import itertools, sys
import holdfast as torch
torch.connect(sys.argv[1])
for number in itertools.count(1):
    for name in ("first", "second"):
        value = torch.full((1 << 18,), float(number))
        torch.publish(name, value, durable=True)
    print(number, flush=True)
"""


def command(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "holdfast", "backup", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
    )


def content(folder):
    """What a daemon finds in the copy: the numbers of both names."""
    with Daemon(f"--state_dir={folder}") as daemon:
        with holdfast.connect(daemon.shm_address, default=False) as session:
            holdfast.set_default_session(session)
            found = [holdfast.lookup(name) for name in ("first", "second")]
            numbers = [tensor[0].item() for tensor in found]
            assert all((t == n).all().item() for t, n in zip(found, numbers))
            holdfast.set_default_session(None)
    return numbers


def test_a_copy_while_names_change(tmp_path):
    state = tmp_path / "state"
    with Daemon(f"--state_dir={state}") as daemon:
        publisher = subprocess.Popen(
            [sys.executable, "-c", PUBLISH, daemon.shm_address],
            stdout=subprocess.PIPE,
            text=True,
        )
        publisher.stdout.readline()
        copies = [tmp_path / f"copy{i}" for i in range(6)]
        for target in copies:
            done = command(state, target)
            assert done.returncode == 0 and "2 files" in done.stdout, done
        publisher.kill()
        seen = [int(line) for line in publisher.communicate()[0].split()]
    former = 0
    for target in copies:
        assert target.stat().st_mode & 0o777 == 0o700
        assert not list(tmp_path.glob("*.unfinished"))
        first, second = content(target)
        assert first - second in (0, 1) and second >= former
        former = second
    assert former > 1 and seen


def test_what_is_no_state_is_not_copied(tmp_path):
    (tmp_path / "empty").mkdir()
    for source, target, words in (
        ("empty", "new", "is no daemon's --state_dir"),
        ("missing", "new", "is no daemon's --state_dir"),
        ("empty", "empty", "is there already"),
    ):
        done = command(tmp_path / source, tmp_path / target)
        assert done.returncode == 1 and words in done.stderr
    assert not (tmp_path / "new").exists()


def test_a_moment_that_does_not_come(tmp_path):
    """Where what is listed is never there to be copied, nothing half is left."""
    names = ["00000001.tensors", "00000002.tensors", "lock"]
    for name in (names[0], names[2]):
        (tmp_path / name).write_bytes(b"x")
    (tmp_path / names[1]).symlink_to(tmp_path / "gone")
    with pytest.raises(backup.BackupError, match="changes faster"):
        backup.copy(str(tmp_path), str(tmp_path / "copy"))
    assert sorted(path.name for path in tmp_path.iterdir()) == names
