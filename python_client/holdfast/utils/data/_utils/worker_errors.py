# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Errors on their way from a worker to the program."""

import pickle
import signal
import sys
import traceback


class _PlainText(str):
    """A message that KeyError shows with its lines."""

    def __repr__(self):
        return str(self)


class WorkerError:
    """The exception that is being handled: its type and its traceback as text."""

    def __init__(self, where):
        kind, error, _ = sys.exc_info()
        self.where = where
        self.name = kind.__name__
        self.text = "".join(traceback.format_exception(error))
        self.kind = kind if _can_travel(kind) else None

    def reraise(self):
        """Raises it here: the same type, with the worker's traceback as text.

        RuntimeError where the type cannot be made of a message, or not be named
        in another process.
        """
        message = f"Caught {self.name} {self.where}.\nOriginal {self.text}"
        if self.kind is None:
            raise RuntimeError(message)
        if self.kind is KeyError:
            message = _PlainText(message)
        try:
            if getattr(self.kind, "message", None):
                error = self.kind(message=message)
            else:
                error = self.kind(message)
        except TypeError:
            raise RuntimeError(message) from None
        raise error


def _can_travel(kind):
    try:
        return pickle.loads(pickle.dumps(kind)) is kind
    except Exception:
        return False


def dead_worker(process):
    """The error of a worker that has ended on its own."""
    status = process.exitcode
    if status is not None and status < 0:
        number = signal.Signals(-status)
        how = (
            f"DataLoader worker (pid {process.pid}) is killed by signal: "
            f"{signal.strsignal(number)} ({number.name})."
        )
        if number is signal.SIGKILL:
            how += " The machine may have run out of memory; try fewer workers."
        elif number in (signal.SIGBUS, signal.SIGSEGV):
            how += " A library that the dataset uses may have failed."
    else:
        how = (
            f"It ended with status {status}; a worker must neither exit nor be "
            "ended. With num_workers=0 the dataset's code runs in the program."
        )
    return RuntimeError(
        f"DataLoader worker (pid(s) {process.pid}) exited unexpectedly. {how}"
    )
