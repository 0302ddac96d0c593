# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""What a worker process of a DataLoader does.

A worker has one thread and, should its code need one, a session of its own on
the program's daemon, which ends with it.
"""

import collections
import os
import pickle
import random
import signal
from multiprocessing import parent_process

from holdfast import _C

from . import worker_info
from .collate import default_collate
from .fetch import fetcher_class
from .transfer import BatchWriter
from .worker_errors import WorkerError
from .worker_info import WorkerInfo, get_worker_info

# Seconds after which an idle worker looks whether the program is still there.
# What usually tells it is the end of its pipe.
_LOOK_SECONDS = 5.0

# What a worker may say about a task.
DATA, ERROR, EXHAUSTED, RESUMED = range(4)
# What it is told.
TASK, RESUME = range(2)

__all__ = ["WorkerInfo", "get_worker_info", "worker_main"]


class WorkerSettings:
    """What a worker needs to know; pickled where it is not forked."""

    def __init__(self, loader, worker_id, base_seed, session):
        self.dataset = loader.dataset
        self.iterable = loader._iterable
        self.auto_collation = loader._auto_collation
        self.collate_fn = loader.collate_fn
        self.drop_last = loader.drop_last
        self.init_fn = loader.worker_init_fn
        self.num_workers = loader.num_workers
        self.worker_id = worker_id
        self.base_seed = base_seed
        # Of the program's session, which the worker's belongs to; None without one.
        self.address = None if session is None else session.address
        self.parent_token = None if session is None else session._token


def _seed_numpy(base_seed, worker_id):
    import numpy

    words = [worker_id, base_seed & 0xFFFFFFFF, base_seed >> 32, 0]
    numpy.random.seed(numpy.random.SeedSequence(words).generate_state(4))


def _prepare(settings):
    """Seeds everything, and notes who this is."""
    # Ctrl-C is the program's; it ends its workers when it is done with them.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    seed = settings.base_seed + settings.worker_id
    random.seed(seed)
    _C.prepare_session(settings.address, seed % (1 << 64), settings.parent_token)
    _seed_numpy(settings.base_seed, settings.worker_id)
    worker_info.current = WorkerInfo(
        id=settings.worker_id,
        num_workers=settings.num_workers,
        seed=seed,
        dataset=settings.dataset,
    )


class _Inbox:
    """Messages of the program: all that have come are read before one is done,
    so that the end is seen at once."""

    def __init__(self, connection):
        self._connection = connection
        self._messages = collections.deque()
        self._parent = os.getppid()

    def next(self):
        """The next message; EOFError when the program wants no more."""
        while self._connection.poll(0):
            self._take()
        while not self._messages:
            if self._connection.poll(_LOOK_SECONDS):
                self._take()
            elif not self._parent_lives():
                raise EOFError
        return self._messages.popleft()

    def _take(self):
        message = pickle.loads(self._connection.recv_bytes())
        if message[0] == RESUME:
            # What was asked for before, nobody waits for any more.
            freed = [m[3] for m in self._messages if m[0] == TASK]
            self._messages.clear()
            message = (RESUME, message[1], message[2] + sum(freed, []))
        self._messages.append(message)

    def _parent_lives(self):
        parent = parent_process()
        return os.getppid() == self._parent and (parent is None or parent.is_alive())


class _Worker:
    def __init__(self, settings, connection, file):
        self._settings = settings
        self._connection = connection
        self._writer = BatchWriter(file)
        self._where = f"in DataLoader worker process {settings.worker_id}"
        self._exhausted = False
        self._failure = None  # of what comes before the first batch
        self._fetcher = None

    def run(self):
        """Does what it is told until the program wants no more."""
        self._start(self._settings.init_fn)
        inbox = _Inbox(self._connection)
        while True:
            kind, *message = inbox.next()
            if kind == RESUME:
                epoch, freed = message
                self._writer.free(freed)
                self._start(None)
                self._send(epoch, RESUMED, None, [])
            else:
                self._do(*message)

    def _start(self, init_fn):
        settings = self._settings
        self._exhausted, failure = False, self._failure
        try:
            if init_fn is not None:
                init_fn(settings.worker_id)
            collate = settings.collate_fn
            if collate is default_collate:
                collate = self._writer.collate
            make = fetcher_class(settings.iterable)
            self._fetcher = make(
                settings.dataset, settings.auto_collation, collate, settings.drop_last
            )
        except Exception:
            failure = WorkerError(self._where)
        self._failure = failure

    def _do(self, number, index, freed):
        self._writer.free(freed)
        if self._exhausted:
            return
        self._writer.begin()
        try:
            if self._failure is not None:
                failure, self._failure = self._failure, None
                return self._send(number, ERROR, *self._writer.pack(failure))
            batch = self._fetcher.fetch(index)
            kind, packed = DATA, self._writer.pack(batch)
        except StopIteration as error:
            if self._settings.iterable:
                self._exhausted = True
                return self._send(number, EXHAUSTED, None, [])
            kind, packed = ERROR, self._packed(error)
        except Exception as error:
            kind, packed = ERROR, self._packed(error)
        self._send(number, kind, *packed)

    def _packed(self, error):
        self._writer.begin()
        return self._writer.pack(WorkerError(self._where))

    def _send(self, number, kind, data, offsets):
        self._connection.send_bytes(pickle.dumps((number, kind, data, offsets)))


def worker_main(settings, connection, file):
    """The life of a worker."""
    try:
        _prepare(settings)
        _Worker(settings, connection, file).run()
    except (EOFError, BrokenPipeError, ConnectionResetError):
        pass  # the program wants no more, or is gone
    finally:
        _C.close_all()
        connection.close()
