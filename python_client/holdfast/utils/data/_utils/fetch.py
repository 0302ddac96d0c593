# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""From the index of a batch to the batch, in a worker or in the program."""


class MapFetcher:
    """Batches of a dataset with indices."""

    def __init__(self, dataset, auto_collation, collate_fn, drop_last):
        self._dataset = dataset
        self._auto_collation = auto_collation
        self._collate_fn = collate_fn
        self._batch_wise = _batch_wise(dataset)

    def fetch(self, index):
        """The collated samples of a list of indices, or of one."""
        if not self._auto_collation:
            return self._collate_fn(self._dataset[index])
        if self._batch_wise:
            return self._collate_fn(self._batch_wise(index))
        dataset = self._dataset
        return self._collate_fn([dataset[i] for i in index])


def _batch_wise(dataset):
    """Its __getitems__, unless a subclass has changed what a sample is."""
    method = getattr(dataset, "__getitems__", None)
    for owner in type(dataset).__mro__:
        if "__getitems__" in vars(owner):
            return method
        if "__getitem__" in vars(owner):
            return None
    return method


class IterableFetcher:
    """Batches of a stream; StopIteration at its end."""

    def __init__(self, dataset, auto_collation, collate_fn, drop_last):
        self._samples = iter(dataset)
        self._auto_collation = auto_collation
        self._collate_fn = collate_fn
        self._drop_last = drop_last
        self._ended = False

    def fetch(self, index):
        """As many samples as `index` has entries, less at the end."""
        if self._ended:
            raise StopIteration
        if not self._auto_collation:
            return self._collate_fn(next(self._samples))
        samples = []
        for _ in index:
            try:
                samples.append(next(self._samples))
            except StopIteration:
                self._ended = True
                break
        if not samples or (self._drop_last and len(samples) < len(index)):
            raise StopIteration
        return self._collate_fn(samples)


def fetcher_class(iterable):
    """The class for a stream, or for a dataset with indices."""
    return IterableFetcher if iterable else MapFetcher
