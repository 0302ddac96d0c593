# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""One pass over a dataset through workers."""

import itertools
import weakref

from .passes import Pass, draw_base_seed
from .worker import ERROR, EXHAUSTED
from .worker_pool import WorkerPool


class WorkerPass(Pass):
    """Reads it in workers, which fetch prefetch_factor batches each ahead.

    Batch i is the i-th of the sampler, whoever fetches it. Tasks go round, and a
    worker does its own in order, so that the next batch is always the next that
    one certain worker tells of.
    """

    def __init__(self, loader):
        super().__init__(loader)
        seed = draw_base_seed(loader.generator).item()
        self._pool = WorkerPool(loader, seed)
        # At the latest at exit, before the interpreter is taken apart.
        self._shutdown = weakref.finalize(self, self._pool.shutdown)
        self._epoch = 0
        self._begin()

    def restart(self):
        """Another pass with the same workers."""
        self._epoch += 1
        self._yielded = 0
        self._pool.resume(self._epoch)
        self._begin()

    @property
    def usable(self):
        """The workers are there."""
        return self._shutdown.alive

    def _begin(self):
        loader = self._loader
        self._indices = iter(loader._index_sampler)
        self._active = [True] * loader.num_workers
        self._turns = itertools.cycle(range(loader.num_workers))
        self._sent = self._received = 0
        self._worker_of = {}  # task: worker
        for _ in range(loader.prefetch_factor * loader.num_workers):
            self._ask()

    def _ask(self):
        if not any(self._active):
            return
        try:
            index = next(self._indices)
        except StopIteration:
            return
        worker = next(turn for turn in self._turns if self._active[turn])
        self._pool.ask(worker, self._sent, index)
        self._worker_of[self._sent] = worker
        self._sent += 1

    def _next(self):
        if not self.usable:
            raise StopIteration
        try:
            return self._take()
        except StopIteration:
            if not self._loader.persistent_workers:
                self._shutdown()
            raise

    def _take(self):
        while True:
            while (
                self._received < self._sent
                and not self._active[self._worker_of[self._received]]
            ):
                del self._worker_of[self._received]
                self._received += 1
            if self._received == self._sent:
                raise StopIteration
            worker = self._worker_of[self._received]
            try:
                _, kind, value = self._pool.receive(worker, self._loader.timeout)
            except BaseException:
                # Interrupted, or a worker is dead or too slow: which batch would
                # be next is not known any more.
                self._shutdown()
                raise
            if kind == EXHAUSTED:
                self._active[worker] = False
                self._ask()
                continue
            del self._worker_of[self._received]
            self._received += 1
            self._ask()
            if kind == ERROR:
                value.reraise()
            return value
