# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""save and load: nested containers of tensors in one file.

The file is a zip archive (stored, so that tensors lie in it as they are):

    data.json       what was saved; tensors by number
    tensors/<n>     row-major little-endian elements, aligned to 64 bytes

Nothing in it is ever executed, so that loading a file from anywhere is safe. Zip's
checksums show damage. A file appears under its name only when it is complete.
"""

from .errors import HoldfastError


class FormatError(HoldfastError, RuntimeError):
    """A file that load cannot read: damaged, foreign, or of a newer version."""


def save(obj, f, pickle_module=None, pickle_protocol=2):
    """Writes `obj` to a path or to a binary file object.

    `obj` may nest dicts, lists, tuples, sets, numbers, strings, bytes, None,
    tensors, sizes and dtypes; TypeError names the place of anything else. A path
    is written completely or not at all. Over shared memory the elements go
    straight from the daemon's memory into the file. pickle_module and
    pickle_protocol are ignored: no pickle is used.
    """
    # Here, since zip and JSON would make `import holdfast` slower.
    from .serialization_archive import write

    write(obj, f)


def load(f, map_location=None, pickle_module=None, *, weights_only=True, mmap=None):
    """What `save` wrote to a path or to a binary file object.

    `map_location` may be None or the session's own device. FormatError (a
    RuntimeError) for files that are damaged or not Holdfast's. The remaining
    arguments are accepted for PyTorch's sake: loading is always safe.
    """
    from .serialization_archive import read

    return read(f, map_location)
