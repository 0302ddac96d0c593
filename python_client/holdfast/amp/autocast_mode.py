# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""autocast: where it would compute in lower precision, it says it cannot."""

import functools
import warnings

from holdfast import cuda
from holdfast.errors import UnsupportedError


class autocast:
    """A context manager and decorator, by PyTorch's name.

    With device_type "cuda" and no GPU it warns and changes nothing, as in
    PyTorch. Enabled on a device that is there it is not supported: results would
    silently have another dtype than the program asks for.
    """

    def __init__(self, device_type, dtype=None, enabled=True, cache_enabled=None):
        if enabled and device_type == "cuda" and not cuda.is_available():
            warnings.warn(
                "User provided device_type of 'cuda', but CUDA is not available. "
                "Disabling",
                stacklevel=2,
            )
            enabled = False
        if enabled:
            raise UnsupportedError(
                f"holdfast has no autocast on {device_type}; pass enabled=False, or "
                "convert the model with .to(dtype)."
            )

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return None

    def __call__(self, f):
        @functools.wraps(f)
        def wrapper(*args, **kwargs):
            with self:
                return f(*args, **kwargs)

        return wrapper
