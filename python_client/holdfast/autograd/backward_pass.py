# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""What code of the user's may ask about the backward that runs it.

The thread that called backward runs that code, so each thread has a stack of
its own.
"""

import threading


class BackwardPass:
    """One call of backward() or grad() that has not returned yet."""

    __slots__ = ("targets", "is_grad", "more", "afterwards")

    def __init__(self, targets, is_grad):
        # The tensors that gradients are wanted of; empty: all leaves.
        self.targets = targets
        # grad() returns gradients; backward() adds them to .grad.
        self.is_grad = is_grad
        # Of grad(): gradients per target that other graphs found for it.
        self.more = []
        # Of backward(): calls to make when .grad has its values.
        self.afterwards = []


class _Running(threading.local):
    def __init__(self):
        self.stack = []


_running = _Running()


def current():
    """The innermost BackwardPass of this thread, or None."""
    return _running.stack[-1] if _running.stack else None


def run(backward_pass, call, *args):
    """call(*args) as that pass."""
    stack = _running.stack
    stack.append(backward_pass)
    try:
        return call(*args)
    finally:
        stack.pop()
