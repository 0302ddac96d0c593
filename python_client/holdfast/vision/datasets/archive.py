# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Files of a data set taken out of the archive that its publisher gives."""

import gzip
import hashlib
import os
import shutil
import tarfile
import zlib

LIMIT = 1 << 29  # bytes of one file


def md5_of(path):
    """The MD5 sum of a file, in hexadecimal digits."""
    with open(path, "rb") as file:
        return hashlib.file_digest(
            file, lambda: hashlib.md5(usedforsecurity=False)
        ).hexdigest()


def unpack(archive, md5, root, names):
    """Writes the members `names` of a .tar.gz below `root`, and nothing else of it.

    A file appears under its name when it is whole. RuntimeError where the archive
    has another sum than `md5` (None: any), is damaged, or lacks a member.
    """
    found = None if md5 is None else md5_of(archive)
    if found != md5:
        raise RuntimeError(
            f"{archive} has the MD5 sum {found}, where {md5} must be. Get it again."
        )
    try:
        with tarfile.open(archive, "r:gz") as members:
            for name in names:
                _write(members, members.getmember(name), os.path.join(root, name))
    except (
        KeyError,
        tarfile.TarError,
        gzip.BadGzipFile,
        EOFError,
        zlib.error,
    ) as error:
        raise RuntimeError(f"{archive} is damaged: {error}. Get it again.") from error


def _write(members, member, path):
    if not member.isfile() or member.size > LIMIT:
        raise tarfile.TarError(
            f"{member.name} is no file of at most {LIMIT} bytes (it has {member.size})"
        )
    os.makedirs(os.path.dirname(path), exist_ok=True)
    partial = f"{path}.{os.getpid()}.part"
    try:
        with members.extractfile(member) as source, open(partial, "wb") as file:
            shutil.copyfileobj(source, file)
        os.replace(partial, path)
    finally:
        if os.path.exists(partial):
            os.unlink(partial)
