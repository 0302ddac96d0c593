# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""What a spawned process must know before it imports the program's main module:
the address of its parent's daemon, so that tensors can be shared.
"""

import os
from multiprocessing import spawn

_original = spawn.get_preparation_data


class _Preparation:
    """Prepares the process in which it is unpickled."""

    def __init__(self, address):
        self._address = address

    def __reduce__(self):
        return prepare, (self._address,)


def prepare(address):
    """In the new process, before anything of the program runs there."""
    os.environ.setdefault("HOLDFAST_ADDRESS", address)
    import holdfast.multiprocessing  # noqa: F401


def _get_preparation_data(name):
    from holdfast import _C

    data = _original(name)
    # Opened if need be: the children's daemon is the parent's.
    address = _C.default_session().address
    # Keys that multiprocessing does not know are unpickled and left alone.
    data["holdfast"] = _Preparation(address)
    return data


def install():
    """From now on processes that multiprocessing spawns are prepared."""
    spawn.get_preparation_data = _get_preparation_data
