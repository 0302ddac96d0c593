# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""DataLoader: batches of a dataset, in order or shuffled."""

import itertools

from holdfast.errors import UnsupportedError

from .batches import TensorBatches
from .collate import default_collate
from .dataset import IterableDataset
from .sampler import BatchSampler, RandomSampler, Sampler, SequentialSampler


class DataLoader:
    """Iterates over a dataset in batches.

    `shuffle` draws a new order for each pass from the stream that
    holdfast.manual_seed seeds, or from `generator`. `batch_size=None` yields
    single samples. `num_workers` must be 0: batches of a TensorDataset (or of a
    Subset of one) are gathered by the daemon, without a loop over samples and
    without waiting; other datasets are read in this process.

    `pin_memory`, `timeout`, `worker_init_fn`, `prefetch_factor` and
    `persistent_workers` are accepted for PyTorch's sake and have no effect.
    """

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
        timeout=0,
        worker_init_fn=None,
        multiprocessing_context=None,
        generator=None,
        *,
        prefetch_factor=None,
        persistent_workers=False,
        pin_memory_device="",
    ):
        if num_workers < 0:
            raise ValueError(
                "num_workers option should be non-negative; use num_workers=0 to "
                "disable multiprocessing."
            )
        if num_workers > 0:
            raise UnsupportedError(
                f"holdfast has no DataLoader(num_workers={num_workers}); use "
                "num_workers=0. A TensorDataset's batches need no workers."
            )
        if timeout < 0:
            raise ValueError("timeout option should be non-negative")
        self.dataset = dataset
        self.num_workers = num_workers
        self.pin_memory = pin_memory
        self.timeout = timeout
        self.worker_init_fn = worker_init_fn
        self.generator = generator
        self._iterable = isinstance(dataset, IterableDataset)
        if self._iterable:
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
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, "
                    "shuffle, sampler, and drop_last"
                )
            batch_size = None
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
            collate_fn = default_collate if batch_sampler is not None else _same
        self.collate_fn = collate_fn

    def __iter__(self):
        if self._iterable:
            return self._iterate_stream()
        if self.batch_sampler is None:
            return (self.collate_fn(self.dataset[i]) for i in self.sampler)
        if self.collate_fn is default_collate:
            batches = TensorBatches.of(self.dataset, self.batch_sampler)
            if batches is not None:
                return iter(batches)
        return self._iterate_samples()

    def _iterate_samples(self):
        for indices in self.batch_sampler:
            yield self.collate_fn([self.dataset[i] for i in indices])

    def _iterate_stream(self):
        samples = iter(self.dataset)
        if self.batch_sampler is None:
            yield from map(self.collate_fn, samples)
            return
        while batch := list(itertools.islice(samples, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield self.collate_fn(batch)

    def __len__(self):
        if self._iterable:
            count = len(self.dataset)
            if self.batch_size is None:
                return count
            full, rest = divmod(count, self.batch_size)
            return full + (1 if rest and not self.drop_last else 0)
        return len(self.sampler if self.batch_sampler is None else self.batch_sampler)


class _Endless(Sampler):
    """Stands for the order of a stream, which is the stream's own."""

    def __init__(self):
        pass

    def __iter__(self):
        return itertools.repeat(None)


def _same(value):
    return value
