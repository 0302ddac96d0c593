# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""`from holdfast.tqdm import tqdm, trange`: progress bars that count what the device
has done, not what was submitted. They need the package tqdm, and take what its bars
take.

A loop runs ahead of the device; the bar does not. At the loop's end it waits for the
device. Only iterations are counted so: update() counts as it is called.
"""

import collections
import threading
import warnings

from holdfast import _C, _stats

with warnings.catch_warnings():
    # A notebook without widgets gets the text, and need not be told.
    warnings.simplefilter("ignore")
    from tqdm.auto import tqdm as _tqdm

# How often the daemon is asked, while the loop goes on (seconds).
_ASK_EVERY = 0.2


class tqdm(_tqdm):
    """tqdm.auto.tqdm, whose iterations count once the device has done them."""

    def __iter__(self):
        if self.disable:
            yield from self.iterable
            return
        submitted = collections.deque()  # the number of each iteration's last command
        stop = threading.Event()
        watch = threading.Thread(
            target=self._watch, args=(submitted, stop), daemon=True
        )
        watch.start()
        whole = False
        try:
            for item in self.iterable:
                yield item
                session = _C.current_session()
                submitted.append(0 if session is None else session._op_sequence)
            whole = True
            if (session := _C.current_session()) is not None:
                session.synchronize()
        finally:
            stop.set()
            watch.join()
            if whole:
                self.update(len(submitted))
            else:
                self._count(submitted)
            self.close()

    def _watch(self, submitted, stop):
        while not stop.wait(_ASK_EVERY):
            self._count(submitted)

    def _count(self, submitted):
        """Takes off `submitted` what is done, and shows it."""
        session = _C.current_session()
        if session is None or session.closed or not submitted:
            return
        try:
            reply = _stats.parse(session._stats())
        except (RuntimeError, ConnectionError):
            return  # the loop itself is told
        begun = next(
            (s["op_sequence"] for s in reply["sessions"] if s["id"] == session.id), 0
        )
        done = 0
        while submitted and submitted[0] < begun:
            submitted.popleft()
            done += 1
        if done:
            self.update(done)


def trange(*args, **kwargs):
    """tqdm(range(...)), as tqdm's trange."""
    return tqdm(range(*args), **kwargs)
