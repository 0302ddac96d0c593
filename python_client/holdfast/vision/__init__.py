# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Data sets, transforms and models for images, in torchvision's shape.

`import holdfast.vision as torchvision` takes its place in programs that read local
files; nothing is downloaded. Images need Pillow.
"""

from holdfast.missing import module_getattr

# The version whose API this follows, as programs compare it.
__version__ = "0.14.1+holdfast"

__getattr__ = module_getattr(
    "torchvision", submodules=("datasets", "models", "transforms", "utils")
)
