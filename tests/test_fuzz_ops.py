# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Every op of the table with random tensors and attributes: whatever happens is
an error with the op's name, and the daemon goes on.

HOLDFAST_FUZZ_CALLS sets the number of calls (50,000 by default); run it with a
daemon built for a sanitizer now and then: ./dev test --asan -k fuzz.
"""

import contextlib
import gc
import math
import os
import random
import re

import pytest

import holdfast as hf

CALLS = int(os.environ.get("HOLDFAST_FUZZ_CALLS", 50_000))
DTYPES = [
    getattr(hf, n) for n in hf._C.__dict__ if isinstance(getattr(hf._C, n), hf.dtype)
]
STRINGS = [
    "mean",
    "sum",
    "none",
    "nearest",
    "bilinear",
    "reflect",
    "gelu",
    "fro",
    "x",
    "",
]
PARAM = re.compile(r"([A-Za-z]+)(\[\d*\])?([?!]*)\s+(\w+)(?:=[^,)]+)?")
# Sizes of results must stay small, whatever the attributes say.
MOST_ELEMENTS = 1 << 16


class Fuzzer:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.tensors = []

    def size(self):
        return self.random.choice([0, 1, 1, 2, 2, 3, 3, 4, 5, 8])

    def shape(self):
        return [
            self.size() for _ in range(self.random.choice([0, 1, 1, 2, 2, 3, 4, 5]))
        ]

    def tensor(self):
        """A new tensor or an earlier one, often a strided view of it."""
        r = self.random
        if self.tensors and r.random() < 0.6:
            x = r.choice(self.tensors)
        else:
            x = hf.zeros(self.shape(), dtype=r.choice(DTYPES))
            if r.random() < 0.7:
                x = hf.randint(-3, 9, list(x.shape)).to(x.dtype)
            self.tensors.append(x)
            del self.tensors[:-12]
        if x.dim() >= 2 and r.random() < 0.3:
            x = x.transpose(0, -1)
        if x.dim() and x.shape[0] > 1 and r.random() < 0.2:
            x = x[:: r.choice([1, 2])]
        if r.random() < 0.05:
            x = x.unsqueeze(0).expand(r.choice([1, 3]), *x.shape)
        if x.dtype.is_floating_point and r.random() < 0.2:
            x = x.detach().requires_grad_()
        return x

    def integer(self):
        r = self.random
        if r.random() < 0.85:
            return r.randrange(-2, 5)
        return r.choice(
            [-1, 0, 7, 20, -(2**31), 2**40, 2**62, 2**63 - 1, -(2**63)]
        )

    def number(self):
        r = self.random
        choices = [0.0, 1.0, 0.5, -1.5, 2.0, 1e30, -1e30, float("inf"), float("nan")]
        return r.choice([r.choice(choices), self.integer(), True])

    def argument(self, kind, listed, optional):
        r = self.random
        if optional and r.random() < 0.4:
            return None
        if kind == "Tensor":
            return (
                [self.tensor() for _ in range(r.randrange(4))]
                if listed
                else self.tensor()
            )
        if kind == "Operand":
            return self.number() if r.random() < 0.2 else self.tensor()
        if kind == "int":
            if not listed:
                return self.integer()
            return [self.integer() for _ in range(r.randrange(5))]
        if kind == "bool":
            return r.random() < 0.5
        if kind == "str":
            return r.choice(STRINGS)
        if kind == "dtype":
            return r.choice(DTYPES)
        return self.number()  # float, Scalar

    def call(self, row):
        r = self.random
        params = row["signature"][1:].split(") ->")[0].replace("*, ", "")
        keywords = {
            name: self.argument(kind, listed, "?" in marks)
            for kind, listed, marks, name in PARAM.findall(params)
            if "=" not in params or r.random() < 0.9
        }
        name = row["name"]
        if row["inplace"] and r.random() < 0.3:
            name += "_"
        function = getattr(hf._C.ops, name, None)
        if function is None:
            return
        result = function(**keywords)
        for out in result if isinstance(result, tuple) else (result,):
            # [2**40, 0] has no elements, but as a list it would fill the memory.
            if isinstance(out, hf.Tensor) and listed_size(out) <= MOST_ELEMENTS:
                self.tensors.append(out)

    def read_all(self):
        while self.tensors:
            try:
                self.tensors.pop().detach().tolist()
            except (RuntimeError, ValueError, IndexError) as e:
                assert not isinstance(e, hf.errors.DaemonUnavailableError)


def listed_size(tensor):
    return math.prod(max(size, 1) for size in tensor.shape)


@pytest.fixture
def daemon():
    """With a limit: some calls ask for gigabytes, which takes long to fill."""
    from holdfast.daemon import Daemon

    with Daemon(f"--memory_limit={64 << 20}") as running:
        yield running


@pytest.mark.timeout(0)
def test_fuzz_every_op(daemon):
    rows = hf._C.schema()
    fuzzer = Fuzzer(seed=5)
    accepted = dict.fromkeys((row["name"] for row in rows), 0)
    with hf.connect(daemon.address("shm"), default=True):
        for i in range(CALLS):
            row = rows[i % len(rows)]
            try:
                fuzzer.call(row)
                accepted[row["name"]] += 1
            except (
                RuntimeError,
                TypeError,
                ValueError,
                IndexError,
                OverflowError,
            ) as e:
                assert not isinstance(e, hf.errors.DaemonUnavailableError), row["name"]
            if i % 500 == 499:  # what failed on the daemon shows when it is read
                fuzzer.read_all()
                assert (hf.ones(2) + 1).tolist() == [2, 2]
        fuzzer.tensors.clear()
        gc.collect()
        with contextlib.suppress(RuntimeError, ValueError, IndexError):
            hf.synchronize()  # raises the first failure that nobody has read
        assert hf.memory_allocated() == 0  # nothing leaks, failed calls included
    with hf.connect(daemon.address("grpc")):
        assert hf.arange(5).sum().item() == 10
    reached = sum(n > 0 for n in accepted.values())
    print(f"{CALLS} calls, {reached} of {len(rows)} ops accepted some")
    assert reached > len(rows) // 2, accepted
