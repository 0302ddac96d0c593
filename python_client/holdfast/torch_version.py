# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Versions as text that compares as versions do, by PyTorch's name."""

import re

__all__ = ["TorchVersion"]

# The release whose level programs find here: what they ask `torch.__version__ >= "2.x"`
# for, up to this one, is there or says in one sentence what to do
# (docs/compatibility.md, python_client/tests/test_torch_version.py).
LEVEL = "2.9.0"

_FORM = re.compile(r"\s*v?(\d+(?:\.\d+)*)(?:[._-]?(a|b|rc|dev)\w*?(\d*))?(\+\S*)?")


def _key(version):
    """What orders versions; None for what is none."""
    if isinstance(version, (tuple, list)):
        version = ".".join(map(str, version))
    match = _FORM.match(str(version))
    if match is None:
        return None
    release = [int(number) for number in match[1].split(".")]
    while release and release[-1] == 0:
        release.pop()
    stage = ("dev", "a", "b", "rc", None).index(match[2])
    return release, stage, int(match[3] or 0), match[4] or ""


class TorchVersion(str):
    """ "2.10" >= "2.9" holds. Compares with text, tuples of numbers and what prints
    as a version; with other text letter by letter."""

    def _compare(self, other, name):
        own, theirs = _key(self), _key(other)
        if own is None or theirs is None:
            return getattr(str, name)(self, other)
        return getattr(own, name)(theirs)

    def __eq__(self, other):
        return self._compare(other, "__eq__")

    def __ne__(self, other):
        return self._compare(other, "__ne__")

    def __lt__(self, other):
        return self._compare(other, "__lt__")

    def __le__(self, other):
        return self._compare(other, "__le__")

    def __gt__(self, other):
        return self._compare(other, "__gt__")

    def __ge__(self, other):
        return self._compare(other, "__ge__")

    __hash__ = str.__hash__
