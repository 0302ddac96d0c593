# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""DistributedSampler: a replica's share of a dataset."""

import math

import holdfast

from .order import permutation
from .sampler import Sampler

__all__ = ["DistributedSampler"]


class DistributedSampler(Sampler):
    """Every num_replicas-th index, from `rank` on, so that replicas share a dataset.

    All replicas get equally many: the order is filled up from its beginning, or
    with `drop_last` cut. With `shuffle` it is a random one that follows from `seed`
    and set_epoch(), the same in all replicas. There is no process group to ask
    here: RuntimeError without `num_replicas` and `rank`.
    """

    def __init__(
        self,
        dataset,
        num_replicas=None,
        rank=None,
        shuffle=True,
        seed=0,
        drop_last=False,
    ):
        if num_replicas is None or rank is None:
            raise RuntimeError(
                "Requires distributed package to be available. Pass num_replicas and "
                f"rank. Got num_replicas={num_replicas}, rank={rank}."
            )
        if rank >= num_replicas or rank < 0:
            raise ValueError(
                f"Invalid rank {rank}, rank should be in the interval "
                f"[0, {num_replicas - 1}]"
            )
        self.dataset = dataset
        self.num_replicas = num_replicas
        self.rank = rank
        self.epoch = 0
        self.drop_last = drop_last
        self.shuffle = shuffle
        self.seed = seed
        count = len(dataset)
        if drop_last:
            self.num_samples = count // num_replicas
        else:
            self.num_samples = math.ceil(count / num_replicas)
        self.total_size = self.num_samples * num_replicas

    def __iter__(self):
        count = len(self.dataset)
        if self.shuffle:
            generator = holdfast.Generator()
            generator.manual_seed(self.seed + self.epoch)
            order = permutation(count, generator)
        else:
            order = list(range(count))
        if order:
            rounds = -(-self.total_size // count)
            order = (order * rounds)[: self.total_size]
        return iter(order[self.rank : self.total_size : self.num_replicas])

    def __len__(self):
        return self.num_samples

    def set_epoch(self, epoch):
        """Makes the next pass another order, the same in all replicas."""
        self.epoch = epoch
