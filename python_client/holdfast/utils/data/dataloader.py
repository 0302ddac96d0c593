# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""DataLoader: batches of a dataset, in order or shuffled."""

import itertools

from ._utils.collate import default_collate, default_convert
from ._utils.passes import SinglePass
from ._utils.worker_info import get_worker_info
from .batches import gathered_pass
from .dataset import IterableDataset
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler

__all__ = ["DataLoader", "default_collate", "default_convert", "get_worker_info"]

# What a loader must keep, since a pass relies on it.
_FIXED = (
    "batch_size",
    "batch_sampler",
    "sampler",
    "drop_last",
    "dataset",
    "persistent_workers",
)


class DataLoader:
    """Iterates over a dataset in batches.

    `shuffle` draws a new order for each pass from the stream that
    holdfast.manual_seed seeds, or from `generator`; the order does not depend on
    `num_workers`. `batch_size=None` yields single samples.

    num_workers            processes that run the dataset's code. They stack
                           samples in shared memory, from where a batch is uploaded
                           with one copy. Ops in a worker run in a session of its
                           own on the same daemon.
    prefetch_factor        batches that each worker fetches ahead; 2
    persistent_workers     keeps the workers from pass to pass
    timeout                seconds to wait for a batch; 0: as long as it takes
    worker_init_fn         is called in each worker with its number
    multiprocessing_context   "fork" (what Linux uses), "spawn", "forkserver", or a
                           context of the multiprocessing module
    pin_memory             has no effect: the daemon's memory is shared already

    Batches of a TensorDataset (or of a Subset of one) are gathered by the daemon,
    without a loop over samples, and without workers if no `worker_init_fn` asks
    for them.
    """

    __initialized = False
    _iterator = None
    _stream_length = None  # len() of a stream, once somebody asked

    def __init__(
        self,
        dataset,
        batch_size=1,
        shuffle=None,
        sampler=None,
        batch_sampler=None,
        num_workers=0,
        collate_fn=None,
        pin_memory=False,
        drop_last=False,
        timeout: float = 0,
        worker_init_fn=None,
        multiprocessing_context=None,
        generator=None,
        *,
        prefetch_factor=None,
        persistent_workers=False,
        pin_memory_device="",
        in_order=True,
    ):
        _check_workers(num_workers, prefetch_factor, persistent_workers, timeout)
        self.dataset = dataset
        self.num_workers = num_workers
        self.prefetch_factor = (
            2 if prefetch_factor is None and num_workers > 0 else prefetch_factor
        )
        self.persistent_workers = persistent_workers
        self.pin_memory = pin_memory
        self.pin_memory_device = pin_memory_device
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.multiprocessing_context = multiprocessing_context
        self.generator = generator
        self.in_order = in_order  # batches always come in order
        self._iterable = isinstance(dataset, IterableDataset)
        if self._iterable:
            _check_stream(shuffle, sampler, batch_sampler)
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, "
                    "shuffle, sampler, and drop_last"
                )
            batch_size = None
            drop_last = False
        elif batch_size is None and drop_last:
            raise ValueError(
                "batch_size=None option disables auto-batching and is mutually "
                "exclusive with drop_last"
            )
        if sampler is None:
            if self._iterable:
                sampler = _Endless()
            elif shuffle:
                sampler = RandomSampler(dataset, generator=generator)
            else:
                sampler = SequentialSampler(dataset)
        if batch_size is not None and batch_sampler is None:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.batch_size = batch_size
        self.drop_last = drop_last
        self.sampler = sampler
        self.batch_sampler = batch_sampler
        if collate_fn is None:
            collate_fn = default_collate if self._auto_collation else default_convert
        self.collate_fn = collate_fn
        self.__initialized = True

    def __setattr__(self, name, value):
        if self.__initialized and name in _FIXED:
            raise ValueError(
                f"{name} attribute should not be set after {type(self).__name__} is "
                "initialized"
            )
        super().__setattr__(name, value)

    @property
    def multiprocessing_context(self):
        """The context that workers are started in; None: multiprocessing's own."""
        return self.__context

    @multiprocessing_context.setter
    def multiprocessing_context(self, context):
        if context is not None:
            if self.num_workers == 0:
                raise ValueError(
                    "multiprocessing_context can only be used with multi-process "
                    "loading (num_workers > 0), but got num_workers="
                    f"{self.num_workers}"
                )
            import multiprocessing

            if isinstance(context, str):
                known = multiprocessing.get_all_start_methods()
                if context not in known:
                    raise ValueError(
                        "multiprocessing_context option should specify a valid start "
                        f"method in {known!r}, but got multiprocessing_context="
                        f"{context!r}"
                    )
                context = multiprocessing.get_context(context)
            elif not isinstance(context, multiprocessing.context.BaseContext):
                raise TypeError(
                    "multiprocessing_context option should be a valid context object "
                    "or a string specifying the start method, but got "
                    f"multiprocessing_context={context}"
                )
        self.__context = context

    @property
    def _auto_collation(self):
        return self.batch_sampler is not None

    @property
    def _index_sampler(self):
        return self.batch_sampler if self._auto_collation else self.sampler

    def __iter__(self):
        if self.num_workers == 0 or self.worker_init_fn is None:
            gathered = gathered_pass(self)
            if gathered is not None:
                return gathered
        if self.num_workers == 0:
            return SinglePass(self)
        from ._utils.worker_pass import WorkerPass

        if not self.persistent_workers:
            return WorkerPass(self)
        if self._iterator is None or not self._iterator.usable:
            self._iterator = WorkerPass(self)
        else:
            self._iterator.restart()
        return self._iterator

    def __len__(self):
        if not self._iterable:
            return len(self._index_sampler)
        count = len(self.dataset)
        if self.batch_size is not None:
            full, rest = divmod(count, self.batch_size)
            count = full + (1 if rest and not self.drop_last else 0)
        self._stream_length = count
        return count


class _Endless(Sampler):
    """Stands for the order of a stream, which is the stream's own."""

    def __init__(self):
        pass

    def __iter__(self):
        return itertools.repeat(None)


def _check_workers(num_workers, prefetch_factor, persistent_workers, timeout):
    if num_workers < 0:
        raise ValueError(
            "num_workers option should be non-negative; use num_workers=0 to "
            "disable multiprocessing."
        )
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing."
            "let num_workers > 0 to enable multiprocessing, otherwise set "
            "prefetch_factor to None."
        )
    if prefetch_factor is not None and prefetch_factor <= 0:
        raise ValueError(
            f"prefetch_factor option should be positive. Got {prefetch_factor}."
        )
    if persistent_workers and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")


def _check_stream(shuffle, sampler, batch_sampler):
    for name, value in [
        ("shuffle", shuffle or None),
        ("sampler", sampler),
        ("batch_sampler", batch_sampler),
    ]:
        if value is not None:
            raise ValueError(
                "DataLoader with IterableDataset: expected unspecified "
                f"{name} option, but got {name}={value}"
            )
