# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""PyTorch's format before 1.6: pickles one after the other, then the elements.

magic number, protocol version, system, the object, the storages' keys; and for each
key its number of elements (8 bytes) and the elements.
"""

import os
import pickle

from .reader import Checkpoint
from .rebuild import StorageType, StoredElements
from .storages import filled, read_exactly
from .unpickler import SafeUnpickler, StorageLister


class LegacyCheckpoint(Checkpoint):
    def __init__(self, file, what, map_location):
        super().__init__(what, map_location)
        self._file = file

    def load(self, weights_only):
        with self.damage_as_format_error("its start"):
            _magic, protocol, system = (self._plain() for _ in range(3))
            if protocol != 1001 or not system["little_endian"]:
                raise self.damaged(f"protocol {protocol}, system {system}")
        start = self._file.tell()
        with self.damage_as_format_error("its pickle"):
            lister = StorageLister(self._file, encoding="utf-8")
            lister.load()
            keys = self._plain()
            self._locate(keys, lister.found)
        self._file.seek(start)
        return self.unpickled(
            self._file, self._storage_of, weights_only, encoding="utf-8"
        )

    def _plain(self):
        """The next pickle, of numbers, strings and containers."""
        return SafeUnpickler(self._file, self._no_storage, strict=True).load()

    def _no_storage(self, pid):
        raise pickle.UnpicklingError("a storage in the header")

    def _locate(self, keys, dtypes):
        """Notes where each storage's elements lie."""
        self._places = {}
        end = self._file.seek(0, os.SEEK_CUR)
        size = self._file.seek(0, os.SEEK_END)
        for key in keys:
            self._file.seek(end)
            count = int.from_bytes(self._file.read(8), "little", signed=True)
            position = end + 8
            end = position + count * dtypes[key].itemsize
            if count < 0 or end > size:
                raise ValueError(f"storage {key} has {count} elements")
            self._places[key] = position, count

    def _storage_of(self, pid):
        if not isinstance(pid, tuple) or len(pid) != 6 or pid[0] != "storage":
            raise self.damaged(f"a reference {str(pid)[:60]}")
        _, kind, key, location, _count, part = pid
        if not isinstance(kind, StorageType) or key not in self._places:
            raise self.damaged(f"a reference {str(pid)[:60]}")
        if part is not None:
            raise self.damaged("a view of a storage, as before PyTorch 0.4")
        if key not in self.storages:
            number = self.place(location)
            self.storages[key] = self._storage(kind.dtype, key, number)
        return self.storages[key]

    def _storage(self, dtype, key, number):
        position, count = self._places[key]

        def read_into(view):
            # The pickle is read from the same file.
            here = self._file.tell()
            self._file.seek(position)
            read_exactly(self._file, view, self.damaged)
            self._file.seek(here)

        def load():
            return filled(dtype, count, read_into, number)

        return StoredElements(dtype, count, load)
