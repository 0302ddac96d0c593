# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""save and load: Python objects with tensors in them, in PyTorch's own file format.

What save writes, PyTorch 1.13 and later load, and the other way round. load also
reads PyTorch's older format (before 1.6) and safetensors files.

Loading runs nothing that the file brings. Tensors, containers, numbers, dates,
NumPy arrays, and modules, optimizers, schedulers and datasets whose classes the
program has are made again; anything else is refused by name, until
add_safe_globals() allows it or weights_only=False says that the file is trusted.
"""

import os

from holdfast.errors import HoldfastError
from holdfast.missing import module_getattr

from .trusted import (  # noqa: F401
    add_safe_globals as add_safe_globals,
    clear_safe_globals as clear_safe_globals,
    get_safe_globals as get_safe_globals,
    safe_globals as safe_globals,
)


class FormatError(HoldfastError, RuntimeError):
    """A file that load cannot read: damaged, foreign, or of a newer version."""


def save(
    obj, f, pickle_module=None, pickle_protocol=2, _use_new_zipfile_serialization=True
):
    """Writes `obj` to a path or to a binary file object.

    `obj` is anything that pickle takes; tensors that share memory share it when
    they are loaded. A path is written completely or not at all. Elements go from
    the daemon into the file piece by piece; large ones show a progress bar where
    somebody watches. pickle_module and pickle_protocol are ignored.

    A path that ends in ".safetensors" is written in that format, if it can hold `obj`:
    a dict of tensors with memory of their own. Else a warning says that it is not.
    """
    if _written_as_safetensors(obj, f):
        return
    # Here, since zip and pickle would make `import holdfast` slower.
    from .archive_writer import write

    if not _use_new_zipfile_serialization:
        import warnings

        warnings.warn(
            "holdfast writes PyTorch's format since 1.6 whatever "
            "_use_new_zipfile_serialization says; older releases cannot read it",
            stacklevel=2,
        )
    write(obj, f)


def _written_as_safetensors(obj, f):
    if not isinstance(f, (str, os.PathLike)) or not str(f).endswith(".safetensors"):
        return False
    from holdfast.safetensors import check_tensors, save_file

    try:
        check_tensors(obj)
    except (TypeError, RuntimeError) as error:
        import warnings

        warnings.warn(
            f"{f} is no safetensors file but PyTorch's format, which load() reads: "
            f"{error}",
            stacklevel=3,
        )
        return False
    save_file(obj, f)
    return True


def load(
    f,
    map_location=None,
    pickle_module=None,
    *,
    weights_only=None,
    mmap=None,
    **pickle_load_args,
):
    """What save, PyTorch or safetensors wrote to a path or to a binary file object.

    map_location: None, a device, a dict of device names, or f(storage, location).
    weights_only: True for tensors and containers alone; False to run whatever the
    file says; None: as above, nothing that the file brings. UnsafeError for what is
    refused, FormatError (a RuntimeError) for files that are damaged or foreign.
    mmap and the arguments of pickle are accepted and change nothing.
    """
    from .reader import read

    return read(f, map_location, weights_only)


__getattr__ = module_getattr(
    "torch.serialization",
    names={
        "UnsafeError": "unpickler",
        "get_unsafe_globals_in_checkpoint": "unsafe_globals",
    },
)
