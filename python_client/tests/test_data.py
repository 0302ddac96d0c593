# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Datasets, samplers, collation, DataLoader; the daemon's batches."""

import itertools
from collections import namedtuple

import numpy as np
import pytest

import holdfast
from holdfast.utils import data
from holdfast.utils.data import batches

# Over shared memory and over gRPC: see conftest.py.
pytestmark = pytest.mark.usefixtures("torch")


class Squares(data.Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return index, index * index


class Plain(data.TensorDataset):
    """A TensorDataset that the daemon's batches do not know."""


def tensors(count=23):
    x = holdfast.arange(count * 4, dtype=holdfast.float32).reshape(count, 2, 2)
    return x, holdfast.arange(count)


# ---- datasets


def test_tensor_dataset():
    dataset = data.TensorDataset(*tensors())
    assert len(dataset) == 23
    x, y = dataset[3]
    assert x.tolist() == [[12, 13], [14, 15]] and y.item() == 3
    with pytest.raises(AssertionError, match="Size mismatch"):
        data.TensorDataset(holdfast.ones(3), holdfast.ones(4))


def test_subset_and_concat():
    subset = data.Subset(Squares(10), [7, 2])
    assert len(subset) == 2 and subset[0] == (7, 49)
    both = Squares(3) + subset
    assert len(both) == 5
    assert [both[i][0] for i in range(5)] == [0, 1, 2, 7, 2]
    assert both[-1] == (2, 4)
    with pytest.raises(IndexError):
        both[5]
    with pytest.raises(ValueError, match="should not exceed"):
        both[-6]
    with pytest.raises(AssertionError, match="empty"):
        data.ConcatDataset([])


def test_random_split():
    parts = data.random_split(Squares(10), [7, 3])
    assert [len(part) for part in parts] == [7, 3]
    assert sorted(i for part in parts for i in part.indices) == list(range(10))
    # What rounding leaves goes to the first.
    parts = data.random_split(Squares(10), [0.5, 0.25, 0.25])
    assert [len(part) for part in parts] == [6, 2, 2]
    with pytest.raises(ValueError, match="does not equal the length"):
        data.random_split(Squares(10), [7, 4])
    one, two = [
        data.random_split(Squares(50), [40, 10], holdfast.Generator().manual_seed(4))
        for _ in range(2)
    ]
    assert one[0].indices == two[0].indices != list(range(40))


# ---- samplers


def test_samplers():
    holdfast.manual_seed(1)
    source = range(20)
    assert list(data.SequentialSampler(source)) == list(source)
    order = list(data.RandomSampler(source))
    assert sorted(order) == list(source) and order != list(source)
    assert list(data.RandomSampler(source)) != order
    drawn = list(data.RandomSampler(source, replacement=True, num_samples=200))
    assert len(drawn) == 200 and set(drawn) <= set(source) and len(set(drawn)) > 10
    assert len(list(data.RandomSampler(source, num_samples=45))) == 45
    assert sorted(data.SubsetRandomSampler([5, 9, 2])) == [2, 5, 9]


def test_random_sampler_draws_as_it_goes():
    endless = data.RandomSampler(range(10), replacement=True, num_samples=10**10)
    assert set(itertools.islice(endless, 100)) <= set(range(10))
    assert len(endless) == 10**10
    many = data.RandomSampler(range(4), replacement=True, num_samples=20_000)
    assert np.bincount(list(many)).sum() == 20_000


def test_random_sampler_rounds_cover_everything():
    counts = np.bincount(list(data.RandomSampler(range(10), num_samples=25)))
    assert counts.min() >= 2 and counts.max() <= 3 and counts.sum() == 25


def test_weighted_sampler():
    holdfast.manual_seed(2)
    drawn = list(data.WeightedRandomSampler([1.0, 0.0, 3.0], 4000))
    shares = np.bincount(drawn, minlength=3) / 4000
    np.testing.assert_allclose(shares, [0.25, 0, 0.75], atol=0.03)
    once = list(data.WeightedRandomSampler([1.0, 0.0, 3.0], 2, replacement=False))
    assert sorted(once) == [0, 2]
    with pytest.raises(ValueError, match="positive weights"):
        data.WeightedRandomSampler([1.0, 0.0], 2, replacement=False)


def test_batch_sampler():
    sampler = data.BatchSampler(data.SequentialSampler(range(7)), 3, False)
    assert list(sampler) == [[0, 1, 2], [3, 4, 5], [6]] and len(sampler) == 3
    sampler = data.BatchSampler(data.SequentialSampler(range(7)), 3, True)
    assert list(sampler) == [[0, 1, 2], [3, 4, 5]] and len(sampler) == 2
    with pytest.raises(ValueError, match="batch_size should be a positive"):
        data.BatchSampler(range(7), 0, False)


# ---- collation


def test_collate():
    Point = namedtuple("Point", "x y")
    collate = data.default_collate
    assert collate([1, 2]).tolist() == [1, 2]
    assert collate([1, 2]).dtype == holdfast.int64
    assert collate([1.5, 2]).dtype == holdfast.float64
    assert collate([True, False]).dtype == holdfast.bool
    assert collate(["a", "b"]) == ["a", "b"]
    assert collate([holdfast.ones(2), holdfast.zeros(2)]).tolist() == [[1, 1], [0, 0]]
    arrays = collate([np.ones(2, "float32"), np.zeros(2, "float32")])
    assert arrays.dtype == holdfast.float32 and tuple(arrays.shape) == (2, 2)
    assert collate([np.float64(1), np.float64(2)]).tolist() == [1, 2]
    nested = collate([{"a": (1, [2.0])}, {"a": (3, [4.0])}])
    assert nested["a"][0].tolist() == [1, 3]
    assert nested["a"][1][0].tolist() == [2, 4]
    point = collate([Point(1, 2), Point(3, 4)])
    assert isinstance(point, Point) and point.y.tolist() == [2, 4]
    with pytest.raises(RuntimeError, match="equal size"):
        collate([[1, 2], [3]])
    with pytest.raises(TypeError, match="found <class 'object'>"):
        collate([object()])
    with pytest.raises(TypeError, match="default_collate"):
        collate([np.array(["text"])])


# ---- loading


def test_loader_of_a_plain_dataset():
    loader = data.DataLoader(Squares(7), batch_size=3)
    assert len(loader) == 3
    assert [x.tolist() for x, _ in loader] == [[0, 1, 2], [3, 4, 5], [6]]
    loader = data.DataLoader(Squares(7), batch_size=3, drop_last=True)
    assert len(loader) == len(list(loader)) == 2


def test_loader_without_batches_and_with_own_collation():
    assert list(data.DataLoader(Squares(3), batch_size=None)) == [
        [0, 0],
        [1, 1],
        [2, 4],
    ]
    loader = data.DataLoader(Squares(5), 2, collate_fn=lambda samples: samples)
    assert list(loader)[-1] == [(4, 16)]


def test_loader_with_a_batch_sampler():
    loader = data.DataLoader(Squares(6), batch_sampler=[[5, 0], [1]])
    assert [x.tolist() for x, _ in loader] == [[5, 0], [1]] and len(loader) == 2


def test_loader_of_a_stream():
    class Stream(data.IterableDataset):
        def __iter__(self):
            return iter(range(5))

    assert [x.tolist() for x in data.DataLoader(Stream(), 2)] == [[0, 1], [2, 3], [4]]
    last = data.DataLoader(Stream(), 2, drop_last=True)
    assert [x.tolist() for x in last] == [[0, 1], [2, 3]]
    assert list(data.DataLoader(Stream(), batch_size=None)) == list(range(5))
    chained = Stream() + Stream()
    assert len(list(data.DataLoader(chained, 4))) == 3
    with pytest.raises(ValueError, match="IterableDataset: expected unspecified"):
        data.DataLoader(Stream(), shuffle=True)


LOADERS = {
    "sequential": {"batch_size": 5},
    "shuffled": {"batch_size": 5, "shuffle": True},
    "drop last": {"batch_size": 5, "shuffle": True, "drop_last": True},
    "one batch": {"batch_size": 100, "shuffle": True},
}


@pytest.mark.parametrize("part", [False, True])
@pytest.mark.parametrize("options", LOADERS.values(), ids=LOADERS)
def test_batches_by_the_daemon_equal_stacked_samples(options, part):
    fast, plain = data.TensorDataset(*tensors()), Plain(*tensors())
    if part:
        fast, plain = (data.Subset(d, [3, 1, 4, 1, 5, 9, 2, 6]) for d in (fast, plain))
    results = []
    for dataset in (fast, plain):
        holdfast.manual_seed(9)
        loader = data.DataLoader(dataset, **options)
        is_fast = batches.TensorBatches.of(dataset, loader.batch_sampler) is not None
        assert is_fast == (dataset is fast)
        results.append([batch for _ in range(2) for batch in loader])
        assert len(results[-1]) == 2 * len(loader)
    for one, two in zip(*results, strict=True):
        assert type(one) is type(two) is list
        for a, b in zip(one, two, strict=True):
            assert a.dtype == b.dtype and holdfast.equal(a, b)


def test_shuffled_passes_differ_and_follow_the_seed():
    loader = data.DataLoader(data.TensorDataset(*tensors()), 23, shuffle=True)
    holdfast.manual_seed(3)
    first, second = (next(iter(loader))[1].tolist() for _ in range(2))
    assert sorted(first) == list(range(23)) and first != second
    holdfast.manual_seed(3)
    assert next(iter(loader))[1].tolist() == first


@pytest.mark.parametrize("kind", [data.TensorDataset, Plain])
def test_a_generator_decides_the_order(kind):
    orders = []
    for seed in (1, 1, 2):
        generator = holdfast.Generator().manual_seed(seed)
        loader = data.DataLoader(
            kind(*tensors()), 23, shuffle=True, generator=generator
        )
        orders.append(next(iter(loader))[1].tolist())
    assert orders[0] == orders[1] != orders[2]
    with pytest.raises(TypeError, match="must be a holdfast.Generator"):
        list(data.DataLoader(kind(*tensors()), shuffle=True, generator=5))


def test_a_changed_batch_leaves_the_dataset_alone():
    x, y = tensors()
    for batch, _ in data.DataLoader(data.TensorDataset(x, y), 5):
        batch.fill_(-1)
    assert holdfast.equal(x, tensors()[0])


def test_loading_does_not_wait(monkeypatch):
    """Batches of a TensorDataset read nothing back."""
    dataset = data.TensorDataset(*tensors())

    def no_reads(self):
        raise AssertionError("a read")

    with monkeypatch.context() as patch:
        for name in ("tolist", "item", "numpy"):
            patch.setattr(holdfast.Tensor, name, no_reads)
        kept = list(data.DataLoader(dataset, 5, shuffle=True))
    assert sorted(sum((y.tolist() for _, y in kept), [])) == list(range(23))


@pytest.mark.parametrize(
    "options,error,text",
    [
        ({"prefetch_factor": 2}, ValueError, "prefetch_factor option could only"),
        ({"num_workers": 1, "prefetch_factor": 0}, ValueError, "should be positive"),
        ({"persistent_workers": True}, ValueError, "needs num_workers > 0"),
        ({"multiprocessing_context": "fork"}, ValueError, "num_workers=0"),
        (
            {"multiprocessing_context": "thread", "num_workers": 1},
            ValueError,
            "valid start method",
        ),
        (
            {"multiprocessing_context": 5, "num_workers": 1},
            TypeError,
            "valid context object",
        ),
        ({"num_workers": -1}, ValueError, "non-negative"),
        ({"shuffle": True, "sampler": [1]}, ValueError, "mutually exclusive"),
        ({"batch_sampler": [[1]], "batch_size": 3}, ValueError, "mutually exclusive"),
        ({"batch_size": None, "drop_last": True}, ValueError, "disables auto-batching"),
        ({"batch_size": 0}, ValueError, "positive integer"),
        ({"timeout": -1}, ValueError, "non-negative"),
    ],
)
def test_mistakes(options, error, text):
    with pytest.raises(error, match=text):
        data.DataLoader(Squares(4), **options)


def test_generator():
    generator = holdfast.Generator()
    assert generator.manual_seed(5) is generator and generator.initial_seed() == 5
    state = generator.get_state()
    first = data.random_split(Squares(9), [9], generator)[0].indices
    generator.set_state(state)
    assert data.random_split(Squares(9), [9], generator)[0].indices == first
    assert generator.seed() == generator.initial_seed()
    with pytest.raises(ValueError, match="64 bits"):
        generator.manual_seed(1 << 64)
