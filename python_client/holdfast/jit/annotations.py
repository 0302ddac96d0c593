# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.jit.annotations: types that compiled programs are written with."""

from typing import List

from holdfast.missing import module_getattr


class _BroadcastingList:
    """BroadcastingList2[int]: two ints, or one for both; read as a list's type."""

    def __getitem__(self, element):
        return List[element]


for _count in range(1, 7):
    globals()[f"BroadcastingList{_count}"] = _BroadcastingList()

__getattr__ = module_getattr("torch.jit.annotations")
