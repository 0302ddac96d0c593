# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""The worker processes of a pass, as the program sees them."""

import itertools
import multiprocessing
import os
import pickle
import select
import time
import weakref

from holdfast import _C

from .shared_arrays import SharedFile
from .transfer import unpack
from .worker import RESUME, RESUMED, TASK, WorkerSettings, worker_main
from .worker_errors import dead_worker

# Seconds that workers get to finish the batch they are at.
_JOIN_SECONDS = 5.0

# Ends of pipes and files of all pools of this process: a worker forked later
# must not hold them, or the others would not see that the program is gone.
_own_ends = weakref.WeakSet()


def _close_in_child():
    for end in list(_own_ends):
        end.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_in_child)


class _Handle:
    """One worker: its process, pipe and memory."""

    def __init__(self, context, settings):
        self.file = SharedFile()
        self.connection, theirs = context.Pipe(duplex=True)
        _own_ends.add(self.connection)  # not the worker's, either
        self.process = context.Process(
            target=worker_main, args=(settings, theirs, self.file), daemon=True
        )
        try:
            self.process.start()
        except BaseException:
            self.connection.close()
            raise
        finally:
            theirs.close()
        _own_ends.add(self.file)
        self.read = []  # places in the file that it may use again
        self._poll = select.poll()
        self._poll.register(self.connection.fileno(), select.POLLIN)
        self._poll.register(self.process.sentinel, select.POLLIN)

    def send(self, *message):
        try:
            self.connection.send_bytes(pickle.dumps(message))
        except (BrokenPipeError, ConnectionResetError):
            pass  # it has ended: receive() says so when its turn comes

    def take_read(self):
        read, self.read = self.read, []
        return read

    def receive(self, deadline):
        """What it says next: (number, kind, data). RuntimeError if it is dead, or
        at the deadline (a time.monotonic(), None for none)."""
        while True:
            left = None if deadline is None else deadline - time.monotonic()
            ready = self._poll.poll(None if left is None else max(left, 0) * 1000)
            ready = [descriptor for descriptor, _ in ready]
            if not ready:
                return None
            if self.connection.fileno() in ready:
                try:
                    number, kind, data, places = pickle.loads(
                        self.connection.recv_bytes()
                    )
                except (EOFError, ConnectionResetError):
                    self.process.join(_JOIN_SECONDS)
                    raise dead_worker(self.process) from None
                self.read += places
                return number, kind, data
            self.process.join(_JOIN_SECONDS)
            raise dead_worker(self.process)


class WorkerPool:
    """The workers of a DataLoader. For one thread, in the process that made it."""

    def __init__(self, loader, base_seed):
        self._owner = os.getpid()
        self._workers = []
        session = _C.current_session()
        context = loader.multiprocessing_context or multiprocessing
        try:
            for i in range(loader.num_workers):
                settings = WorkerSettings(loader, i, base_seed, session)
                self._workers.append(_Handle(context, settings))
        except BaseException:
            self.shutdown()
            raise

    def __len__(self):
        return len(self._workers)

    def ask(self, worker, number, index):
        """Has a worker fetch a batch."""
        handle = self._workers[worker]
        handle.send(TASK, number, index, handle.take_read())

    def receive(self, worker, timeout):
        """(number, kind, value) of what a worker says next. It is a batch, made in
        the default session, or a WorkerError, or None."""
        handle = self._workers[worker]
        deadline = time.monotonic() + timeout if timeout > 0 else None
        message = handle.receive(deadline)
        if message is None:
            raise RuntimeError(f"DataLoader timed out after {timeout} seconds")
        number, kind, data = message
        value = None if data is None else unpack(data, handle.file)
        return number, kind, value

    def resume(self, epoch):
        """Starts another pass; what was asked for before is dropped."""
        for handle in self._workers:
            handle.send(RESUME, epoch, handle.take_read())
        for handle in self._workers:
            for message in iter(lambda h=handle: h.receive(None), None):
                if message[:2] == (epoch, RESUMED):
                    break

    def shutdown(self):
        """Ends the workers and waits for them; again: nothing."""
        if os.getpid() != self._owner:
            return  # a forked process: they are its parent's
        workers, self._workers = self._workers, []
        for handle in workers:
            handle.connection.close()  # which they see as the end
        end = time.monotonic() + _JOIN_SECONDS
        for handle in workers:
            handle.process.join(max(end - time.monotonic(), 0))
        for handle, stop in itertools.product(workers, ("terminate", "kill")):
            if handle.process.is_alive():
                getattr(handle.process, stop)()
                handle.process.join(_JOIN_SECONDS)
        for handle in workers:
            handle.file.close()
            handle.process.close()
