# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The package holdfast's errors as PyTorch's: each class is both, so that a program
may catch either."""

import contextlib

import torch
from holdfast import errors


class OutOfMemoryError(torch.OutOfMemoryError, errors.OutOfMemoryError):
    """The device, or the session's share of it, has no memory left."""


class DaemonUnavailableError(torch.AcceleratorError, errors.DaemonUnavailableError):
    """The daemon cannot be reached, or the connection was lost for good."""


class DaemonTimeoutError(DaemonUnavailableError, errors.DaemonTimeoutError):
    """The daemon did not answer in time."""


class DataLossError(torch.AcceleratorError, errors.DataLossError):
    """Tensors are lost for good."""


class SessionError(torch.AcceleratorError, errors.SessionError):
    """The session cannot do that: closed, of another process, taken over."""


class CancelledError(torch.AcceleratorError, errors.CancelledError):
    """The op was called back before it ran."""


class InternalError(torch.AcceleratorError, errors.InternalError):
    """A defect in Holdfast. Please report it."""


# Of several that fit, the first: subclasses before their bases. Other errors of
# holdfast's are Python's own types, which PyTorch raises in the same places.
_CLASSES = (
    OutOfMemoryError,
    DaemonTimeoutError,
    DaemonUnavailableError,
    DataLossError,
    SessionError,
    CancelledError,
    InternalError,
)
_TOLD = ("op", "op_sequence", "filename", "lineno", "trace_id")


@contextlib.contextmanager
def as_pytorchs():
    """Within it holdfast's errors are raised as this module's classes."""
    try:
        yield
    except errors.HoldfastError as error:
        for kind in _CLASSES:
            if isinstance(error, kind.__bases__[-1]) and not isinstance(error, kind):
                raise _turned(error, kind) from None
        raise


def _turned(error, kind):
    turned = kind(str(error))
    for name in _TOLD:
        setattr(turned, name, getattr(error, name))
    return turned.with_traceback(error.__traceback__)
