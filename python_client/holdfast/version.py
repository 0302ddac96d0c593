# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The package's version, and nothing else."""

__version__ = "0.1.0"
