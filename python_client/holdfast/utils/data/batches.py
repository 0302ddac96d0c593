# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Batches of a TensorDataset, gathered by the daemon.

The data was uploaded once; a batch is one index_select for each tensor. Where
the sampler is one of ours, the order of a pass is one index tensor, each batch
takes a slice of it, and nothing is read back, so that the training loop runs
ahead of the device. Of any other sampler only its indices travel. The values are
those of the plain way (stacking single samples), drawn from the same random
stream.
"""

import holdfast

from ._utils.collate import default_collate
from ._utils.passes import SinglePass, draw_base_seed
from .dataset import Subset, TensorDataset
from .order import device_permutation
from .sampler import BatchSampler, RandomSampler, SequentialSampler


def gathered_pass(loader):
    """A pass over the loader's dataset; None where only the plain way will do."""
    if loader._iterable or not loader._auto_collation:
        return None
    if loader.collate_fn is not default_collate:
        return None
    ordered = TensorBatches.of(loader.dataset, loader.batch_sampler)
    if ordered is not None:
        draw_base_seed(loader.generator)
        return iter(ordered)
    gather = _Gather.of(loader.dataset)
    return None if gather is None else SinglePass(loader, gather)


class _Gather:
    """Fetches batches of rows by lists of indices."""

    @classmethod
    def of(cls, dataset):
        subsets = []
        while type(dataset) is Subset:
            subsets.append(dataset.indices)
            dataset = dataset.dataset
        # A subclass may have changed what a sample is.
        if type(dataset) is not TensorDataset:
            return None
        return cls(dataset, subsets)

    def __init__(self, dataset, subsets):
        self._dataset = dataset
        self._subsets = subsets

    def fetch(self, indices):
        for subset in self._subsets:
            indices = [subset[i] for i in indices]
        rows = self._dataset.rows(indices)
        return [tensor.index_select(0, rows) for tensor in self._dataset.tensors]


class TensorBatches:
    """One pass over a TensorDataset, or over a Subset of one."""

    @classmethod
    def of(cls, dataset, batch_sampler):
        """The pass, or None where only the plain way gives what was asked for."""
        if type(batch_sampler) is not BatchSampler:
            return None
        sampler = batch_sampler.sampler
        if type(sampler) is RandomSampler:
            # Several rounds, or draws with replacement: the plain way.
            shuffled = True
            if sampler.replacement or sampler.num_samples > len(sampler.data_source):
                return None
        elif type(sampler) is SequentialSampler:
            shuffled = False
        else:
            return None
        if sampler.data_source is not dataset:
            return None
        indices = None
        if type(dataset) is Subset:
            indices, dataset = dataset.indices, dataset.dataset
            if isinstance(indices, holdfast.Tensor) or _negative(indices):
                return None
        # A subclass may have changed what a sample is.
        if type(dataset) is not TensorDataset:
            return None
        return cls(dataset.tensors, indices, batch_sampler, shuffled)

    def __init__(self, tensors, indices, batch_sampler, shuffled):
        self._tensors = tensors
        self._indices = indices
        self._batch_size = batch_sampler.batch_size
        self._drop_last = batch_sampler.drop_last
        self._sampler = batch_sampler.sampler
        self._shuffled = shuffled

    def __iter__(self):
        count = len(self._sampler)
        order = self._order(count)
        size = self._batch_size
        for start in range(0, count, size):
            end = min(start + size, count)
            if end - start < size and self._drop_last:
                return
            if order is None:
                # A copy, as stacking makes: the dataset stays as it is when
                # the batch is changed in place.
                yield [tensor[start:end].clone() for tensor in self._tensors]
            else:
                rows = order[start:end]
                yield [tensor.index_select(0, rows) for tensor in self._tensors]

    def _order(self, count):
        """Row numbers of the whole pass; None for 0, 1, 2, ..."""
        order = None
        if self._shuffled:
            total = len(self._sampler.data_source)
            order = device_permutation(total, self._sampler.generator)
            if count < total:
                order = order[:count]
        if self._indices is None:
            return order
        rows = holdfast.tensor(list(self._indices), dtype=holdfast.int64)
        return rows if order is None else rows.index_select(0, order)


def _negative(indices):
    """Whether an index counts from the end, which index_select does not."""
    return any(index < 0 for index in indices)
