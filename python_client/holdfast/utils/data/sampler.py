# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Samplers: in which order a DataLoader takes the samples."""

import holdfast

from .order import permutation


class Sampler:
    """Base class: `__iter__` yields indices."""

    def __class_getitem__(cls, kind):
        return cls  # Sampler[int] is for people to read

    def __init__(self, data_source=None):
        pass

    def __iter__(self):
        raise NotImplementedError(f"{type(self).__name__} must define __iter__")


class SequentialSampler(Sampler):
    """0, 1, 2, ..."""

    def __init__(self, data_source):
        self.data_source = data_source

    def __iter__(self):
        return iter(range(len(self.data_source)))

    def __len__(self):
        return len(self.data_source)


_DRAWN_AT_ONCE = 1 << 14


class RandomSampler(Sampler):
    """A new random order each time, from the stream of holdfast.manual_seed.

    `replacement`: each index is drawn anew; `num_samples` of them (default:
    as many as there are). `generator`: a holdfast.Generator to draw from.
    """

    def __init__(
        self, data_source, replacement=False, num_samples=None, generator=None
    ):
        if not isinstance(replacement, bool):
            raise TypeError(
                "replacement should be a boolean value, but got replacement="
                f"{replacement}"
            )
        self.data_source = data_source
        self.replacement = replacement
        self._num_samples = num_samples
        self.generator = generator
        if not isinstance(self.num_samples, int) or self.num_samples <= 0:
            raise ValueError(
                "num_samples should be a positive integer value, but got num_samples="
                f"{self.num_samples}"
            )

    @property
    def num_samples(self):
        """How many indices one pass yields."""
        if self._num_samples is None:
            return len(self.data_source)
        return self._num_samples

    def __iter__(self):
        size = len(self.data_source)
        left = self.num_samples
        while self.replacement and left > 0:
            # Some at a time: programs ask for 10^10 and stop when they like.
            count = min(left, _DRAWN_AT_ONCE)
            draws = holdfast.randint(0, size, (count,), generator=self.generator)
            yield from draws.tolist()
            left -= count
        while left > 0:
            order = permutation(size, self.generator)[:left]
            yield from order
            left -= len(order)

    def __len__(self):
        return self.num_samples


class SubsetRandomSampler(Sampler):
    """The given indices in a new random order each time."""

    def __init__(self, indices, generator=None):
        self.indices = indices
        self.generator = generator

    def __iter__(self):
        for i in permutation(len(self.indices), self.generator):
            yield self.indices[i]

    def __len__(self):
        return len(self.indices)


class WeightedRandomSampler(Sampler):
    """Index i with probability proportional to weights[i]; num_samples of them."""

    def __init__(self, weights, num_samples, replacement=True, generator=None):
        if not isinstance(num_samples, int) or num_samples <= 0:
            raise ValueError(
                "num_samples should be a positive integer value, but got num_samples="
                f"{num_samples}"
            )
        if isinstance(weights, holdfast.Tensor):
            weights = weights.tolist()
        self.weights = [float(weight) for weight in weights]
        self.num_samples = num_samples
        self.replacement = replacement
        self.generator = generator
        usable = sum(weight > 0 for weight in self.weights)
        if not replacement and num_samples > usable:
            raise ValueError(
                f"num_samples={num_samples} without replacement needs as many "
                f"positive weights. Got {usable}."
            )

    def __iter__(self):
        uniform = holdfast.rand(
            (self.num_samples if self.replacement else len(self.weights),),
            dtype=holdfast.float64,
            generator=self.generator,
        ).tolist()
        if self.replacement:
            return iter(_inverse(self.weights, uniform))
        # Efraimidis & Spirakis 2006: the largest u^(1/w) are the sample.
        keys = [
            (u ** (1 / weight) if weight > 0 else -1.0, i)
            for i, (u, weight) in enumerate(zip(uniform, self.weights))
        ]
        return iter([i for _, i in sorted(keys, reverse=True)[: self.num_samples]])

    def __len__(self):
        return self.num_samples


def _inverse(weights, uniform):
    """Indices whose share of the summed weights holds each uniform number."""
    from bisect import bisect_right
    from itertools import accumulate

    ends = list(accumulate(weights))
    last = max(i for i, weight in enumerate(weights) if weight > 0)
    return [min(bisect_right(ends, u * ends[-1]), last) for u in uniform]


class BatchSampler(Sampler):
    """Lists of batch_size indices of `sampler`; the last may be shorter."""

    def __init__(self, sampler, batch_size, drop_last):
        if (
            not isinstance(batch_size, int)
            or isinstance(batch_size, bool)
            or batch_size <= 0
        ):
            raise ValueError(
                "batch_size should be a positive integer value, but got batch_size="
                f"{batch_size}"
            )
        if not isinstance(drop_last, bool):
            raise ValueError(
                f"drop_last should be a boolean value, but got drop_last={drop_last}"
            )
        self.sampler = sampler
        self.batch_size = batch_size
        self.drop_last = drop_last

    def __iter__(self):
        batch = []
        for index in self.sampler:
            batch.append(index)
            if len(batch) == self.batch_size:
                yield batch
                batch = []
        if batch and not self.drop_last:
            yield batch

    def __len__(self):
        full, rest = divmod(len(self.sampler), self.batch_size)
        return full + (1 if rest and not self.drop_last else 0)
