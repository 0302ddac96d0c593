# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""What a checkpoint names that load() would refuse, without loading it."""

import pickletools
import zipfile

from . import safe_set, trusted

_TEXT = ("SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8", "UNICODE")


def get_unsafe_globals_in_checkpoint(f):
    """["module.name", ...] of the classes and functions that the file names and
    load(weights_only=True) does not take. `f`: a path or a binary file object of the
    zip format that save writes; ValueError for another one."""
    try:
        with zipfile.ZipFile(f) as archive:
            (name,) = (n for n in archive.namelist() if n.endswith("/data.pkl"))
            named = _globals(archive.read(name))
    except zipfile.BadZipFile:
        raise ValueError(
            "Expected input to be a checkpoint in the zip format that torch.save writes"
        ) from None
    return [
        f"{module}.{name}"
        for module, name in dict.fromkeys(named)
        if trusted.find(module, name) is None and safe_set.find(module, name) is None
    ]


def _globals(data):
    """(module, name) of each that the pickle looks up."""
    texts, memo = [], []  # both as the pickle has them, texts alone
    for code, argument, _ in pickletools.genops(data):
        if code.name == "GLOBAL":
            yield tuple(argument.split(" ", 1))
        elif code.name == "STACK_GLOBAL":
            yield tuple(texts[-2:])
        elif code.name in _TEXT:
            texts.append(argument)
        elif code.name in ("MEMOIZE", "BINPUT", "LONG_BINPUT"):
            memo.append(texts[-1] if texts else None)
        elif code.name in ("BINGET", "LONG_BINGET") and argument < len(memo):
            texts.append(memo[argument])
