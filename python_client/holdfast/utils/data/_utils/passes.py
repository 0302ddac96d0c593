# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""One pass over a dataset in the program; worker_pass.py is one through workers."""

import warnings

import holdfast

from .fetch import fetcher_class


def draw_base_seed(generator):
    """A tensor [] int64: where the seeds of workers start. Every pass draws one,
    so that the order of samples does not depend on the number of workers."""
    high = (1 << 63) - 1
    return holdfast.randint(0, high, (), dtype=holdfast.int64, generator=generator)


class Pass:
    """Yields batches; counts what a stream yields beyond its length."""

    def __init__(self, loader):
        self._loader = loader
        self._yielded = 0
        self._length = None  # of the loader, when somebody asked

    def __iter__(self):
        return self

    def __len__(self):
        return len(self._loader._index_sampler)

    def __next__(self):
        batch = self._next()
        self._yielded += 1
        length = self._loader._stream_length
        if length is not None and self._yielded > length:
            warnings.warn(
                "Length of IterableDataset "
                f"{self._loader.dataset} was reported to be {length} (when accessing "
                f"len(dataloader)), but {self._yielded} samples have been fetched. "
                + (
                    "For multiprocessing data-loading, this could be caused by not "
                    "properly configuring the IterableDataset replica at each worker."
                    if self._loader.num_workers > 0
                    else ""
                ),
                stacklevel=2,
            )
        return batch


class SinglePass(Pass):
    """Reads the dataset in this process."""

    def __init__(self, loader, fetcher=None):
        super().__init__(loader)
        draw_base_seed(loader.generator)
        self._indices = iter(loader._index_sampler)
        if fetcher is None:
            make = fetcher_class(loader._iterable)
            fetcher = make(
                loader.dataset,
                loader._auto_collation,
                loader.collate_fn,
                loader.drop_last,
            )
        self._fetch = fetcher.fetch

    def _next(self):
        return self._fetch(next(self._indices))
