# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Support for training programs: `utils.data` and hook handles."""

from . import data, hooks

__all__ = ["data", "hooks"]
