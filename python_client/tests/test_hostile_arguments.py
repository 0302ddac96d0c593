# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Any function with any arguments: an exception or a result, never a crash."""

import random

import numpy as np
import pytest

CALLS_PER_OP = 60


def values(torch):
    return [
        None,
        True,
        0,
        1,
        -1,
        2,
        10**6,
        -(2**62),
        2**63 - 1,
        2**70,
        0.5,
        float("nan"),
        float("inf"),
        1e308,
        "mean",
        "",
        b"x",
        (),
        [],
        (1,),
        (2, 3),
        [-1],
        [0, 0],
        [2**62, 2**62],
        [1.5],
        ["a"],
        (1,) * 40,
        {},
        object(),
        torch.float32,
        torch.int64,
        torch.bfloat16,
        np.float32(2),
        np.int64(1),
        np.bool_(True),
        np.ones(3),
        torch.ones(()),
        torch.ones(2, 3),
        torch.arange(3),
        torch.zeros(0, 3),
        torch.tensor([True, False]),
        torch.ones(1, 2, 4, 4),
        torch.ones(3, 2).t(),
        torch.tensor([[-5, 9]]),
        torch.ones(2, 3, requires_grad=True),
        [torch.ones(2), torch.ones(2)],
        (torch.ones(2, 3), None),
    ]


@pytest.mark.parametrize("seed", [1, 2])
def test_every_op_survives_any_arguments(torch, seed):
    rng = random.Random(seed)
    pool = values(torch)
    allowed = (
        TypeError,
        ValueError,
        RuntimeError,
        IndexError,
        OverflowError,
        NotImplementedError,
        MemoryError,
    )
    ran = 0
    for row in torch._C.schema():
        for name in (row["name"], row["name"] + "_"):
            function = getattr(torch._C.ops, name, None)
            if function is None:
                continue
            for _ in range(CALLS_PER_OP):
                args = [rng.choice(pool) for _ in range(rng.randrange(6))]
                if args and rng.random() < 0.7:
                    args[0] = rng.choice(pool[-12:-2])
                keywords = {}
                if rng.random() < 0.3:
                    keywords[
                        rng.choice(["dim", "dtype", "keepdim", "zz", "size"])
                    ] = rng.choice(pool)
                if any(type(a) is int and a == 10**6 for a in args):
                    continue  # valid, and 4 TB of work
                try:
                    function(*args, **keywords)
                    ran += 1
                except allowed:
                    pass
    assert ran > 100
    assert (torch.ones(2) + 1).tolist() == [2.0, 2.0]


def test_methods_survive_any_arguments(torch):
    rng = random.Random(3)
    pool = values(torch)
    # These wait for somebody, or end the session by design.
    skipped = {"__class__", "__init_subclass__", "__subclasshook__"}
    for name in sorted(dir(torch.Tensor)):
        if name in skipped or name.startswith("_session"):
            continue
        for _ in range(20):
            x = torch.rand(2, 3, requires_grad=rng.random() < 0.3)
            try:
                attribute = getattr(x, name, None)
            except RuntimeError:
                break  # imag of a real tensor
            if not callable(attribute):
                break
            args = [rng.choice(pool) for _ in range(rng.randrange(4))]
            if any(type(a) is int and abs(a) >= 10**6 for a in args):
                continue
            try:
                attribute(*args)
            except Exception:
                pass
    assert (torch.ones(2) + 1).tolist() == [2.0, 2.0]


def test_data_that_changes_while_it_is_read(torch):
    class Growing(list):
        def __len__(self):
            self.append(1.0)
            return super().__len__()

    class Liar:
        def __len__(self):
            return 3

        def __getitem__(self, i):
            raise IndexError(i)

    for data in (Growing([1.0]), [[1.0], Growing([1.0])], Liar(), [Liar()]):
        try:
            torch.tensor(data)
        except (IndexError, ValueError, TypeError):
            pass
    nested = []
    for _ in range(100):
        nested = [nested]
    with pytest.raises(ValueError, match="too many dimensions"):
        torch.tensor(nested)
    endless = []
    endless.append(endless)
    with pytest.raises(ValueError, match="too many dimensions"):
        torch.tensor(endless)
