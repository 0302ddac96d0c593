# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The package's version: that of the package holdfast which it works with."""

__version__ = "0.1.0"
