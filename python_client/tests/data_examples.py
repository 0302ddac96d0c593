# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Datasets for the tests of workers; here, so that spawned workers find them."""

import os
import random
import signal
import time

import numpy as np

import holdfast
from holdfast.utils import data


class Arrays(data.Dataset):
    """Rows of NumPy arrays and their numbers."""

    def __init__(self, count=23):
        self.x = np.arange(count * 6, dtype=np.float32).reshape(count, 2, 3)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, index):
        return {
            "x": self.x[index] * 2,
            "pair": (index, float(index)),
            "name": f"n{index}",
        }


class Tensors(data.Dataset):
    """Tensors of the program's session, and ops in the worker."""

    def __init__(self, count=20):
        self.x = holdfast.arange(count * 3, dtype=holdfast.float32).reshape(count, 3)

    def __len__(self):
        return self.x.shape[0]

    def __getitem__(self, index):
        row = self.x[index]
        made = holdfast.tensor([index, -index])
        return (row - row.mean()) * 2, made, holdfast.tensor(index).bfloat16()


class Stream(data.IterableDataset):
    """0 .. count-1, shared out among the workers."""

    def __init__(self, count=23):
        self.count = count

    def __len__(self):
        return self.count

    def __iter__(self):
        info = data.get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        return iter(range(first, self.count, step))


class Draws(data.Dataset):
    """What the generators of a worker say."""

    def __len__(self):
        return 8

    def __getitem__(self, index):
        return (
            random.random(),
            np.random.rand(),
            holdfast.rand(()).item(),
            data.get_worker_info().seed,
        )


class Info(data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        info = data.get_worker_info()
        assert info.dataset is self
        return info.id, info.num_workers, os.getpid(), getattr(self, "noted", -1)


def note_number(worker_id):
    """A worker_init_fn."""
    data.get_worker_info().dataset.noted = worker_id * 10


def fail_to_start(worker_id):
    raise OSError(f"no start for {worker_id}")


class TwoArguments(Exception):
    def __init__(self, one, two):
        super().__init__(one, two)


class Fails(data.Dataset):
    """Does what it is told at index 5."""

    def __init__(self, how):
        self.how = how

    def __len__(self):
        return 8

    def __getitem__(self, index):
        if index == 5:
            getattr(self, self.how)()
        return index

    def value_error(self):
        raise ValueError("index five is bad")

    def key_error(self):
        return {}["absent"]

    def two_arguments(self):
        raise TwoArguments(1, 2)

    def unpicklable_kind(self):
        class Local(ValueError):
            pass

        raise Local("local")

    def killed(self):
        os.kill(os.getpid(), signal.SIGKILL)

    def exits(self):
        os._exit(3)

    def hangs(self):
        time.sleep(60)


class Slow(data.Dataset):
    def __len__(self):
        return 1000

    def __getitem__(self, index):
        time.sleep(0.01)
        return np.zeros(1000, np.float32)


def keep_arrays(samples):
    """A collate_fn whose batches are no tensors."""
    return [sample["x"] for sample in samples], {s["name"] for s in samples}


def double(samples):
    """A collate_fn with ops on the default collation."""
    return data.default_collate(samples) * 2
