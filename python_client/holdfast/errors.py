# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""What Holdfast raises: one class per kind of error.

Each class subclasses what PyTorch raises in the same situation, so that
programs that catch PyTorch's errors keep working. Errors of an op that failed
on the daemon arrive at the next read; they carry `op` and `op_sequence` and,
where known, `filename` and `lineno` of the call. `trace_id` names the session in
the daemon's log (`holdfast trace`).
"""

import difflib
import linecache
import sys


class HoldfastError(Exception):
    """Base of every error that comes from Holdfast itself."""

    op = None
    op_sequence = None
    filename = None
    lineno = None
    trace_id = None


class OpError(HoldfastError, RuntimeError):
    """An op's arguments do not fit: shapes, types, values."""


class LinAlgError(OpError):
    """A matrix does not allow what is asked: singular, not positive-definite."""


class OutOfRangeError(HoldfastError, IndexError):
    """An index or a dimension is out of range."""


class OutOfMemoryError(HoldfastError, RuntimeError):
    """The device or the session's share of it has no memory left."""


class DataLossError(HoldfastError, RuntimeError):
    """Tensors are lost for good. The GPU failed with all that lay on it, and the
    daemon starts again: connect again, durable names come back. Or a durable name's
    file is damaged."""


class DaemonUnavailableError(HoldfastError, ConnectionError):
    """The daemon cannot be reached, or the connection was lost for good."""


class DaemonTimeoutError(DaemonUnavailableError, TimeoutError):
    """The daemon did not answer in time."""


class CancelledError(HoldfastError, RuntimeError):
    """The op was called back before it ran: by cancel(), `%holdfast stop` or a
    second Ctrl-C. The text says where."""


class SessionError(HoldfastError, RuntimeError):
    """The session cannot do that: closed, of another process, taken over."""


class NotFoundError(HoldfastError, LookupError):
    """No session, or nothing kept, has that name."""


class UnsupportedError(HoldfastError, NotImplementedError):
    """PyTorch has it, Holdfast (or this daemon) does not."""


class MissingAttributeError(UnsupportedError, AttributeError):
    """A name of PyTorch's that Holdfast has not; hasattr() says False."""

    # What was asked for, as PyTorch calls it, and in which of our modules: str() says
    # what to do instead. Only then, since programs ask hasattr() about many names.
    missing = None
    module = None

    def __str__(self):
        text = super().__str__()
        if self.missing is None:
            return text
        from holdfast import _advice

        near = None
        if self.module is not None:
            names = (name for name in dir(self.module) if not name.startswith("_"))
            near = difflib.get_close_matches(self.name, names, n=1, cutoff=0.75)
            near = near[0] if near else None
        return f"{text} {_advice.about(self.missing, near)}"


class InternalError(HoldfastError, RuntimeError):
    """A defect in Holdfast. Please report it."""


def place(filename, lineno):
    """A line of a program in its author's words: "train.py:12"; of a notebook, whose
    cells have no names, "Cell In [7], line 2: y = a[i]"."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    # As IPython's own tracebacks know which file is which cell.
    cells = getattr(getattr(shell, "compile", None), "_filename_map", {})
    if filename not in cells:
        return f"{filename}:{lineno}"
    line = linecache.getline(filename, lineno).strip()
    return f"Cell In [{cells[filename]}], line {lineno}" + (f": {line}" if line else "")


def say_called(error, op, name):
    """Changes the message of an error of `op`, which a function is made of, to speak
    of that function, which the user has called."""
    if error.args and isinstance(error.args[0], str):
        text = error.args[0].replace(f"[{op}]", f"[{name}]", 1)
        if text.startswith(f"{op}()"):
            text = name + text[len(op) :]
        error.args = (text, *error.args[1:])
