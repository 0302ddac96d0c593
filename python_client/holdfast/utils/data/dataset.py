# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Datasets: samples by index, or as a stream."""

import bisect
import itertools
import math
import warnings

import holdfast

from .order import permutation


class Dataset:
    """Samples by index: subclasses define `__getitem__` and `__len__`, and may
    define `__getitems__`, which gets a list of indices.
    """

    def __class_getitem__(cls, kind):
        return cls  # Dataset[int] is for people to read

    def __getitem__(self, index):
        raise NotImplementedError(f"{type(self).__name__} must define __getitem__")

    def __add__(self, other):
        return ConcatDataset([self, other])


class IterableDataset(Dataset):
    """A stream of samples: subclasses define `__iter__`."""

    def __iter__(self):
        raise NotImplementedError(f"{type(self).__name__} must define __iter__")

    def __add__(self, other):
        return ChainDataset([self, other])


class TensorDataset(Dataset):
    """Samples are rows of tensors that agree in the first size.

    A DataLoader takes whole batches from it without touching single samples.
    """

    def __init__(self, *tensors):
        if any(tensors[0].shape[0] != tensor.shape[0] for tensor in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index):
        return tuple(tensor[index] for tensor in self.tensors)

    def __len__(self):
        return self.tensors[0].shape[0]

    def rows(self, indices):
        """Indices as a tensor [n] int64, counted from the front.

        IndexError for one that is out of range.
        """
        count = len(self)
        for index in indices:
            if not -count <= index < count:
                raise IndexError(
                    f"index {index} is out of bounds for dimension 0 with size {count}"
                )
        rows = [index + count if index < 0 else index for index in indices]
        return holdfast.tensor(rows, dtype=holdfast.int64)


class StackDataset(Dataset):
    """Datasets of equal length side by side: a sample is a tuple of theirs, or a
    dict where they were given by name.
    """

    def __init__(self, *args, **kwargs):
        if args and kwargs:
            raise ValueError(
                "Supported either tuple- (via args) or dict- (via kwargs) like "
                "input/output, but both types are given."
            )
        if not args and not kwargs:
            raise ValueError("At least one dataset should be passed")
        self.datasets = args or kwargs
        self._length = len(next(iter(self._parts())))
        if any(len(dataset) != self._length for dataset in self._parts()):
            raise ValueError("Size mismatch between datasets")

    def _parts(self):
        named = isinstance(self.datasets, dict)
        return self.datasets.values() if named else self.datasets

    def _sample(self, values):
        if isinstance(self.datasets, dict):
            return dict(zip(self.datasets, values))
        return tuple(values)

    def __getitem__(self, index):
        return self._sample(dataset[index] for dataset in self._parts())

    def __getitems__(self, indices):
        columns = []
        for dataset in self._parts():
            batch_wise = getattr(dataset, "__getitems__", None)
            samples = (
                batch_wise(indices) if batch_wise else [dataset[i] for i in indices]
            )
            if len(samples) != len(indices):
                raise ValueError(
                    "Nested dataset's output size mismatch. Expected "
                    f"{len(indices)}, got {len(samples)}"
                )
            columns.append(samples)
        return [self._sample(values) for values in zip(*columns)]

    def __len__(self):
        return self._length


class Subset(Dataset):
    """The samples of `dataset` at `indices`."""

    def __init__(self, dataset, indices):
        self.dataset = dataset
        self.indices = indices

    def __getitem__(self, index):
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __getitems__(self, indices):
        indices = [self.indices[i] for i in indices]
        batch_wise = getattr(self.dataset, "__getitems__", None)
        return batch_wise(indices) if batch_wise else [self.dataset[i] for i in indices]

    def __len__(self):
        return len(self.indices)


class ConcatDataset(Dataset):
    """Datasets one after the other; none may be an IterableDataset."""

    def __init__(self, datasets):
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(d, IterableDataset) for d in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    @staticmethod
    def cumsum(sequence):
        """The lengths of datasets, added up."""
        return list(itertools.accumulate(map(len, sequence)))

    def __len__(self):
        return self.cumulative_sizes[-1]

    def __getitem__(self, index):
        if index < 0:
            if -index > len(self):
                raise ValueError(
                    "absolute value of index should not exceed dataset length"
                )
            index += len(self)
        which = bisect.bisect_right(self.cumulative_sizes, index)
        if which == len(self.datasets):
            raise IndexError(f"index {index} is out of range for {len(self)} samples")
        start = self.cumulative_sizes[which - 1] if which else 0
        return self.datasets[which][index - start]


class ChainDataset(IterableDataset):
    """Streams one after the other."""

    def __init__(self, datasets):
        self.datasets = list(datasets)

    def __iter__(self):
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield from dataset

    def __len__(self):
        return sum(map(len, self.datasets))


def random_split(dataset, lengths, generator=None):
    """Subsets of random samples, without overlap, of the given lengths.

    Lengths are numbers of samples, or fractions that sum to 1 (what rounding
    leaves goes one by one to the first). ValueError if they do not fit.
    """
    lengths = list(lengths)
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        for i, fraction in enumerate(lengths):
            if fraction < 0 or fraction > 1:
                raise ValueError(f"Fraction at index {i} is not between 0 and 1")
        sizes = [int(math.floor(len(dataset) * fraction)) for fraction in lengths]
        for i in range(len(dataset) - sum(sizes)):
            sizes[i % len(sizes)] += 1
        for i, size in enumerate(sizes):
            if size == 0:
                warnings.warn(
                    f"Length of split at index {i} is 0. This might result in an "
                    "empty dataset.",
                    stacklevel=2,
                )
        lengths = sizes
    if sum(lengths) != len(dataset):
        raise ValueError(
            "Sum of input lengths does not equal the length of the input dataset!"
        )
    indices = permutation(len(dataset), generator)
    ends = itertools.accumulate(lengths)
    return [
        Subset(dataset, indices[end - size : end]) for end, size in zip(ends, lengths)
    ]
