# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""__array_namespace_info__(): what a program may ask of the namespace."""

import holdfast
from holdfast.array_api.dtypes import KINDS, default_complex

_MAX_DIMENSIONS = 64  # ops/tensor_spec.h


class _Info:
    """The standard's inspection functions."""

    def capabilities(self):
        """What is optional in the standard, and whether it is here."""
        return {
            "boolean indexing": True,
            "data-dependent shapes": True,
            "max dimensions": _MAX_DIMENSIONS,
        }

    def default_device(self):
        """Where tensors are made without device=."""
        return holdfast.get_default_device()

    def devices(self):
        """The CPU, and the daemon's GPUs."""
        gpus = range(holdfast.cuda.device_count())
        return (holdfast.device("cpu"), *(holdfast.device("cuda", i) for i in gpus))

    def default_dtypes(self, *, device=None):
        """The type of each kind that numbers without one become."""
        return {
            "real floating": holdfast.get_default_dtype(),
            "complex floating": default_complex(),
            "integral": holdfast.int64,
            "indexing": holdfast.int64,
        }

    def dtypes(self, *, device=None, kind=None):
        """The standard's types by name, of one kind or several or all."""
        if kind is None:
            kind = ("bool", "numeric")
        kinds = kind if isinstance(kind, tuple) else (kind,)
        found = {}
        for name in kinds:
            if name not in KINDS:
                raise ValueError(
                    f"dtypes(): kind must be one of {list(KINDS)}. Got {name!r}."
                )
            found.update((dtype.name, dtype) for dtype in KINDS[name])
        return found


_INFO = _Info()


def __array_namespace_info__():
    """What this namespace can do: devices, types, capabilities."""
    return _INFO
