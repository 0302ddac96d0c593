# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""Every op's samples of PyTorch's own test suite: values in float32, gradients in
float64. HOLDFAST_ALL_SAMPLES=1 runs all samples of an op and not the first few.
"""

import os

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed")

import holdfast  # noqa: E402
import torch_samples  # noqa: E402
from torch_sample_failures import (  # noqa: E402
    COMPARED_AS,
    EMPTY,
    FAILURES,
    RANDOM,
    UNDEFINED,
)

ALL = bool(os.environ.get("HOLDFAST_ALL_SAMPLES"))
# Of an op that has more; the plain ones are first.
COUNT = 12
INFOS = torch_samples.op_infos()
WITH_VALUES = [n for n, i in INFOS.items() if torch.float32 in i.dtypes]
WITH_GRADIENTS = [
    n
    for n, i in INFOS.items()
    if i.supports_autograd
    and torch.float64 in i.dtypes
    and n not in RANDOM | EMPTY
    and (n, "gradients") not in UNDEFINED
]


@pytest.fixture(scope="module", autouse=True)
def session(daemon):
    with holdfast.connect(daemon.address("shm"), default=True):
        yield


def values_wrong(info, name, sample):
    return torch_samples.values_differ(
        info, sample, 2e-4, COMPARED_AS.get(name), name not in RANDOM | EMPTY
    )


def gradients_wrong(info, name, sample):
    return torch_samples.gradients_differ(info, sample, 1e-6, COMPARED_AS.get(name))


def check(name, what, dtype, wrong):
    """Fails for a sample that differs, unless the op is declared, and for a
    declared op of which none does."""
    info, failures = INFOS[name], []
    rows = [row for row in FAILURES if row.covers(name, what, torch.__version__)]
    # A declared op may differ in a later sample only.
    count = None if ALL or rows else COUNT
    samples = torch_samples.samples(info, dtype, what == "gradients", count)
    compared = 0
    for number, sample in enumerate(samples):
        try:
            found = wrong(info, name, sample)
        except torch_samples.PytorchFails:
            continue
        except Exception as e:  # whatever it is, the sample did not agree
            found = f"{type(e).__name__}: {e}"
        compared += 1
        if found:
            failures.append(f"sample {number}: {found[:500]}")
    if samples and not compared:
        pytest.skip("PyTorch itself runs none of the samples here")
    if failures and rows:
        pytest.xfail(rows[0].reason)
    assert not failures, f"{len(failures)} of {compared}\n" + "\n".join(failures[:5])
    assert not rows, f"agrees, and torch_sample_failures.py says: {rows[0].reason}"


@pytest.mark.parametrize("name", WITH_VALUES)
def test_values(name):
    check(name, "values", torch.float32, values_wrong)


@pytest.mark.parametrize("name", WITH_GRADIENTS)
def test_gradients(name):
    check(name, "gradients", torch.float64, gradients_wrong)


def test_declared_failures_name_ops():
    version = torch.__version__
    for row in FAILURES:
        for name in row.ops.split():
            assert not row.covers(name, row.what, version) or name in INFOS, name
