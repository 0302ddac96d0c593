# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""torch.fx's mark, for programs that carry it; nothing is traced here."""

from holdfast.missing import module_getattr


def wrap(f):
    """f itself."""
    return f


__getattr__ = module_getattr("torch.fx")
