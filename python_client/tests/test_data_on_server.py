# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""A data set that lives on the server is uploaded once."""

import sys
from pathlib import Path

import pytest

import holdfast
from holdfast.utils import data

sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "faults"))
from proxy import Proxy  # noqa: E402


@pytest.fixture
def counted(daemon):
    """A session over gRPC whose bytes are counted on the way."""
    before = holdfast.current_session()
    proxy = Proxy(daemon.address("grpc"))
    session = holdfast.connect(proxy.address)
    yield proxy
    session.close()
    proxy.close()
    holdfast.set_default_session(before)


SAMPLERS = {
    "shuffled": lambda d: {"shuffle": True, "batch_size": 64},
    "in order": lambda d: {"batch_size": 64},
    "weighted": lambda d: {
        "sampler": data.WeightedRandomSampler([1.0] * len(d), len(d)),
        "batch_size": 64,
    },
    "distributed": lambda d: {
        "sampler": data.DistributedSampler(d, num_replicas=2, rank=1),
        "batch_size": 64,
    },
    "workers": lambda d: {"shuffle": True, "batch_size": 64, "num_workers": 2},
}


@pytest.mark.parametrize("options", SAMPLERS.values(), ids=SAMPLERS)
@pytest.mark.parametrize("part", [False, True], ids=["whole", "subset"])
def test_a_pass_sends_indices_only(counted, options, part):
    x = holdfast.rand(2000, 500)
    dataset = data.TensorDataset(x, holdfast.arange(2000))
    if part:
        dataset, _ = data.random_split(dataset, [0.8, 0.2])
    sums = x.sum(1)
    holdfast.synchronize()
    size = len(dataset) * 500 * 4
    before = counted.bytes
    rows = 0
    for batch, index in data.DataLoader(dataset, **options(dataset)):
        rows += len(batch)
        assert holdfast.equal(batch.sum(1), sums[index])
    assert rows in (len(dataset), len(dataset) // 2)
    assert counted.bytes - before < size / 10


def test_plain_samples_and_gathered_batches_are_equal(torch):
    class Plain(data.TensorDataset):
        def __getitem__(self, index):
            return super().__getitem__(index)

    x, y = torch.rand(30, 4), torch.arange(30)
    for make in SAMPLERS.values():
        got = []
        for kind in (data.TensorDataset, Plain):
            torch.manual_seed(2)
            dataset = kind(x, y)
            options = make(dataset)
            options.update(batch_size=7, num_workers=0)
            got.append(list(data.DataLoader(dataset, **options)))
        for one, two in zip(*got, strict=True):
            assert all(torch.equal(a, b) for a, b in zip(one, two, strict=True))


def test_negative_and_wrong_indices(torch):
    dataset = data.TensorDataset(torch.arange(10))
    loader = data.DataLoader(dataset, batch_sampler=[[-1, 0], [-10]])
    assert [batch.tolist() for (batch,) in loader] == [[9, 0], [0]]
    with pytest.raises(IndexError, match="index 10 is out of bounds"):
        list(data.DataLoader(dataset, batch_sampler=[[10]]))
