# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""DataLoader(num_workers > 0): batches, order, seeds, options."""

import multiprocessing
import os

import numpy as np
import pytest
from data_examples import (
    Arrays,
    Draws,
    Info,
    Stream,
    Tensors,
    double,
    keep_arrays,
    note_number,
)

import holdfast
from holdfast.utils import data

# Over shared memory and over gRPC: see conftest.py.
pytestmark = pytest.mark.usefixtures("torch")


def plain(value):
    """A batch as Python values, with what its tensors are."""
    if isinstance(value, holdfast.Tensor):
        return str(value.dtype), tuple(value.shape), value.tolist()
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value), [plain(item) for item in value]
    return value


def batches(dataset, **options):
    holdfast.manual_seed(5)
    return [plain(batch) for batch in data.DataLoader(dataset, **options)]


@pytest.mark.parametrize("dataset", [Arrays, Tensors])
@pytest.mark.parametrize(
    "options",
    [
        {"batch_size": 4},
        {"batch_size": 5, "shuffle": True, "drop_last": True},
        {"batch_sampler": [[3, 1], [0], [7, 7, 2]]},
        {"batch_size": None},
    ],
    ids=["plain", "shuffled", "batch sampler", "single"],
)
def test_batches_are_those_without_workers(dataset, options):
    dataset = dataset()
    alone = batches(dataset, **options)
    assert batches(dataset, num_workers=1, **options) == alone
    assert batches(dataset, num_workers=3, prefetch_factor=1, **options) == alone


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_start_methods(method):
    for dataset in (Arrays(8), Tensors(8)):
        alone = batches(dataset, batch_size=3)
        options = {"batch_size": 3, "num_workers": 1}
        assert batches(dataset, multiprocessing_context=method, **options) == alone
    context = multiprocessing.get_context(method)
    loader = data.DataLoader(Arrays(4), num_workers=1, multiprocessing_context=context)
    assert loader.multiprocessing_context is context
    assert len(list(loader)) == 4


def test_collate_functions():
    loader = data.DataLoader(Arrays(6), 3, num_workers=2, collate_fn=keep_arrays)
    kept = list(loader)
    assert kept[1][1] == {"n3", "n4", "n5"}
    assert [type(a) for a in kept[0][0]] == [np.ndarray] * 3
    # They are the program's own: the next batches do not write there.
    np.testing.assert_array_equal(kept[0][0][1], Arrays(6)[1]["x"])
    kept[0][0][1][...] = 0
    doubled = data.DataLoader(range(4), 2, num_workers=1, collate_fn=double)
    assert [b.tolist() for b in doubled] == [[0, 2], [4, 6]]


def test_large_batches_of_changing_sizes():
    arrays = [np.full((n * 1000, 7), n, np.float64) for n in range(1, 40)]

    for i, batch in enumerate(
        data.DataLoader(arrays, num_workers=2, prefetch_factor=3)
    ):
        assert tuple(batch.shape) == (1, (i + 1) * 1000, 7)
        assert batch.min().item() == batch.max().item() == i + 1


def test_types_of_arrays():
    for dtype in ("bool", "uint8", "int16", "float16", "complex64"):
        rows = [np.ones(3, dtype), np.zeros(3, dtype)]
        (batch,) = data.DataLoader(rows, 2, num_workers=1)
        assert str(batch.dtype) == f"holdfast.{dtype}"
        assert batch.sum().item() == 3
    with pytest.raises(TypeError, match="uint16"):
        list(data.DataLoader([np.ones(3, "uint16")], num_workers=1))
    with pytest.raises(RuntimeError, match="stack expects each tensor to be equal"):
        list(data.DataLoader([np.ones(3), np.ones(2)], 2, num_workers=1))


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_a_stream_is_shared_out(workers):
    loader = data.DataLoader(Stream(), 4, num_workers=workers)
    got = [batch.tolist() for batch in loader]
    shares = [list(range(i, 23, workers)) for i in range(workers)]
    for share in shares:
        mine = [b for b in got if b[0] % workers == share[0] % workers]
        assert sum(mine, []) == share
    assert sorted(sum(got, [])) == list(range(23))
    # Batches of the workers take turns.
    assert [b[0] for b in got[:workers]] == list(range(workers))


def test_a_stream_with_drop_last_and_single_samples():
    dropped = data.DataLoader(Stream(), 4, num_workers=2, drop_last=True)
    assert [len(b) for b in dropped] == [4] * 5
    single = data.DataLoader(Stream(5), None, num_workers=2)
    assert list(single) == [0, 1, 2, 3, 4]


def test_a_stream_longer_than_it_says():
    class Longer(Stream):
        def __iter__(self):
            return iter(range(self.count + 2))

    loader = data.DataLoader(Longer(4), num_workers=1)
    assert len(loader) == 4
    with pytest.warns(UserWarning, match="Length of IterableDataset"):
        assert len(list(loader)) == 6


def test_seeds():
    holdfast.manual_seed(3)
    first = batches(Draws(), batch_size=2, num_workers=2)
    assert batches(Draws(), batch_size=2, num_workers=2) == first
    flat = [plain(b)[1] for b in data.DataLoader(Draws(), num_workers=2)]
    assert flat != first
    one, two = data.DataLoader(Draws(), 4, num_workers=2)
    for i in range(3):  # the numbers of two workers differ, and follow their seeds
        assert not set(one[i].tolist()) & set(two[i].tolist())
    assert set((two[3] - one[3]).tolist()) == {1}


def test_seeds_of_a_generator():
    drawn = []
    for seed in (7, 7, 8):
        generator = holdfast.Generator().manual_seed(seed)
        loader = data.DataLoader(Draws(), 4, num_workers=2, generator=generator)
        drawn.append([plain(batch) for batch in loader])
    assert drawn[0] == drawn[1] != drawn[2]


def test_numpy_is_seeded_as_pytorch_does():
    worker = pytest.importorskip("torch.utils.data._utils.worker")
    from holdfast.utils.data._utils.worker import _seed_numpy

    for base, number in [(0, 0), (12345678901234, 3), ((1 << 62) + 5, 1)]:
        _seed_numpy(base, number)
        ours = np.random.rand(3)
        np.random.seed(worker._generate_state(base, number))
        np.testing.assert_array_equal(ours, np.random.rand(3))


def test_worker_info_and_init_function():
    assert data.get_worker_info() is None
    loader = data.DataLoader(Info(), num_workers=2, worker_init_fn=note_number)
    got = [[field.item() for field in batch] for batch in loader]
    assert [(i, n, noted) for i, n, _, noted in got] == [
        (0, 2, 0),
        (1, 2, 10),
        (0, 2, 0),
        (1, 2, 10),
    ]
    assert os.getpid() not in {pid for _, _, pid, _ in got}


def test_persistent_workers_stay():
    loader = data.DataLoader(
        Info(), num_workers=2, persistent_workers=True, worker_init_fn=note_number
    )
    passes = [{batch[2].item() for batch in loader} for _ in range(3)]
    assert passes[0] == passes[1] == passes[2] and len(passes[0]) == 2
    # One that was left early begins anew.
    first = next(iter(loader))
    assert [batch[0].item() for batch in loader] == [0, 1, 0, 1]
    assert first[2].item() in passes[0]
    stream = data.DataLoader(Stream(6), 2, num_workers=2, persistent_workers=True)
    assert [b.tolist() for b in stream] == [b.tolist() for b in stream]


def test_the_order_is_the_same_with_any_number_of_workers():
    orders = [
        [batch["name"] for batch in batches(Arrays(30), shuffle=True, num_workers=n)]
        for n in (0, 1, 2)
    ]
    assert orders[0] == orders[1] == orders[2]
    assert len({name for _, (name,) in orders[0]}) == 30


def test_a_tensor_dataset_needs_no_workers():
    x = holdfast.arange(10)
    loader = data.DataLoader(data.TensorDataset(x), 3, num_workers=4)
    assert [b.tolist() for (b,) in loader][-1] == [9]
    # But with a worker_init_fn it has them.
    loader = data.DataLoader(
        data.TensorDataset(x), 3, num_workers=1, worker_init_fn=print
    )
    assert [b.tolist() for (b,) in loader][-1] == [9]


def test_pinned_memory_and_attributes():
    loader = data.DataLoader(Arrays(2), num_workers=1, pin_memory=True)
    assert loader.prefetch_factor == 2
    (batch, _) = loader
    assert batch["x"].pin_memory() is batch["x"]
    with pytest.raises(ValueError, match="batch_size attribute should not be set"):
        loader.batch_size = 3
    assert len(iter(loader)) == 2
