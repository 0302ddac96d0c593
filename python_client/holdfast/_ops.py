# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The op table's public functions, by name.

Tensor's methods come with the type itself; this is for `holdfast.<name>`.
"""

import sys

from holdfast import _C

# Functions of C are pickled by their module's name and their own.
sys.modules["holdfast._C.ops"] = _C.ops

TABLE = {}
for _row in _C.schema():
    if not _row["public"]:
        continue
    for _name in (_row["name"], _row["name"] + "_"):
        _function = getattr(_C.ops, _name, None)
        if _function is not None:
            _function.__module__ = "holdfast"
            TABLE[_name] = _function
