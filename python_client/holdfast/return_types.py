# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.return_types: the named tuples that functions with several results return."""

import collections


def _lines(self):
    # As PyTorch shows them.
    shown = ",\n".join(f"{name}={value!r}" for name, value in self._asdict().items())
    return f"torch.return_types.{type(self).__name__}(\n{shown})"


def named_result(name, fields):
    """The named tuple `name`, which is an attribute of this module, so that its
    values can be pickled."""
    made = collections.namedtuple(name, fields, module=__name__)
    made.__repr__ = _lines
    globals()[name] = made
    return made
