# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""What importlib.metadata tells of the package `torch` under `holdfast run`: the level
that torch.__version__ says, whatever PyTorch is installed."""

from importlib.metadata import Distribution


class StandIn(Distribution):
    """A distribution of a name and a version, without files."""

    def __init__(self, name, version):
        self._text = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"

    def read_text(self, filename):
        return self._text if filename == "METADATA" else None

    def locate_file(self, path):
        raise FileNotFoundError(f"[metadata] this package has no files. Got {path}.")
