# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Files that appear under their name only when they are complete."""

import contextlib
import os
import tempfile


@contextlib.contextmanager
def written(path):
    """A binary file to write; at the end of the block it takes `path`'s place.

    If the block raises, whatever was at `path` stays. The new content and its name
    are on the disk when the block has ended.
    """
    path = os.fspath(path)
    # The file that a link points at is replaced, not the link.
    path = os.path.realpath(path)
    directory = os.path.dirname(path)
    if os.path.isdir(path):
        raise IsADirectoryError(f"[save] {path!r} is a directory.")
    descriptor, temporary = tempfile.mkstemp(
        prefix="." + os.path.basename(_text(path))[:200] + ".",
        suffix=".tmp",
        dir=_text(directory),
    )
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, _mode(path))
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise
    _sync_directory(directory)


def _text(path):
    return os.fsdecode(path)


def _mode(path):
    """The mode of the file that is replaced, or what open() would give."""
    try:
        return os.stat(path).st_mode & 0o7777
    except OSError:
        mask = os.umask(0)
        os.umask(mask)
        return 0o666 & ~mask


def _sync_directory(directory):
    """Makes the new name survive a crash, where the system can."""
    try:
        descriptor = os.open(directory, os.O_RDONLY)
    except OSError:
        return
    try:
        os.fsync(descriptor)
    except OSError:
        pass
    finally:
        os.close(descriptor)
