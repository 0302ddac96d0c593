# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The Python array API standard, revision 2025.12, on Holdfast's tensors.

`x.__array_namespace__()` is this module: libraries that take any array (SciPy and
scikit-learn among them) find it there. It differs from the package, whose names are
PyTorch's, in the names of arguments (`axis`, `keepdims`), in defaults (`std()` divides
by N) and in promotion: a 0-d tensor's type counts like any other's.
"""

from holdfast.array_api import (
    creation,
    dtypes,
    elementwise,
    fft,
    indexing,
    linalg,
    manipulation,
    searching,
    sets,
    statistical,
)
from holdfast.array_api.info import __array_namespace_info__
from holdfast.array_api.linalg import matmul, matrix_transpose, tensordot, vecdot
from holdfast.version import __version__  # noqa: F401
from math import e, inf, nan, pi

__array_api_version__ = "2025.12"
# Each revision only adds to those before.
REVISIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")
newaxis = None

# What `import *` takes: the standard's names, and nothing that they were made of.
__all__ = [
    "__array_namespace_info__",
    "e",
    "fft",
    "inf",
    "linalg",
    "matmul",
    "matrix_transpose",
    "nan",
    "newaxis",
    "pi",
    "tensordot",
    "vecdot",
]
_FAMILIES = (
    creation,
    dtypes,
    elementwise,
    indexing,
    manipulation,
    searching,
    sets,
    statistical,
)
globals().update({name: getattr(f, name) for f in _FAMILIES for name in f.__all__})
__all__ += [name for family in _FAMILIES for name in family.__all__]
