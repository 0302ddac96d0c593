# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The package's version, and what PyTorch's torch.version tells beside it."""

__version__ = "0.1.0"
# Of the libraries that PyTorch would have been built with.
cuda = hip = git_version = None
debug = False
