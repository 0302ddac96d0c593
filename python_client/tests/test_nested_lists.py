# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Tensors from lists of numbers, of NumPy's scalars and arrays, and of tensors."""

import numpy as np
import pytest

from torch_peer import torch as peer

# Over shared memory and over gRPC: see conftest.py.
pytestmark = [
    pytest.mark.usefixtures("torch"),
    pytest.mark.filterwarnings("ignore:Creating a tensor from a list of numpy"),
]

# What to make a tensor of, by library.
LISTS = {
    "numbers": lambda t: [True, 1.5],
    "float64 scalar": lambda t: [np.float64(1)],
    "float64 scalar and float": lambda t: [np.float64(1), 2.0],
    "float16 scalar": lambda t: [np.float16(1)],
    "int32 scalar": lambda t: [np.int32(1)],
    "int32 scalar and int": lambda t: [np.int32(1), 2],
    "narrow scalars": lambda t: [[np.int16(1)], [np.int8(2)]],
    "uint8 scalar": lambda t: (np.uint8(3),),
    "bool scalar": lambda t: [np.bool_(True), False],
    "complex64 scalar": lambda t: [np.complex64(1 + 2j)],
    "scalar alone": lambda t: np.float64(2.5),
    "float64 rows": lambda t: [np.ones(2), np.zeros(2)],
    "int32 rows": lambda t: [np.ones(2, np.int32), np.zeros(2, np.int32)],
    "list and row": lambda t: [[1, 2], np.ones(2)],
    "scalar tensors": lambda t: [t.tensor(1.0), t.tensor(2.0)],
    "float64 scalar tensor": lambda t: [t.tensor(1.0, dtype=t.float64)],
    "int32 tensor and int": lambda t: [t.tensor(1, dtype=t.int32), 2],
    "int32 tensor and float": lambda t: [t.tensor(1, dtype=t.int32), 2.0],
    "bfloat16 tensor and int": lambda t: [t.tensor(1, dtype=t.bfloat16), 1],
    "bool and tensor": lambda t: [True, t.tensor(2)],
    "one element": lambda t: [t.ones(1)],
    "one element, nested": lambda t: [[t.ones(1)], [t.ones(1, 1)], [2.0]],
    "one element after a number": lambda t: [[1.0], t.ones(1)],
    "rows of tensors after arrays": lambda t: [np.ones(2), t.tensor([3.0, 4.0])],
}


@pytest.mark.parametrize("name", LISTS)
def test_as_pytorch_makes_them(torch, name):
    ours, theirs = torch.tensor(LISTS[name](torch)), peer.tensor(LISTS[name](peer))
    assert ours.dtype.name == str(theirs.dtype).removeprefix("torch.")
    assert tuple(ours.shape) == tuple(theirs.shape)
    assert ours.tolist() == theirs.tolist()


@pytest.mark.parametrize("name", ["one element", "float64 scalar", "float64 rows"])
def test_a_type_that_is_asked_for(torch, name):
    made = torch.tensor(LISTS[name](torch), dtype=torch.int32)
    assert made.dtype == torch.int32
    assert torch.FloatTensor(LISTS[name](torch)).dtype == torch.float32


def test_mistakes(torch):
    for several in ([torch.ones(2)], [torch.ones(0)], [torch.ones(1), torch.ones(2)]):
        with pytest.raises(ValueError, match="only one element tensors"):
            torch.tensor(several)
    with pytest.raises(ValueError, match=r"length 2 at dim 1 \(got f32\[3\]\)"):
        torch.tensor([[1.0, 2.0], torch.ones(3)])
    with pytest.raises(ValueError, match=r"length 1 at dim 1 \(got f32\[\]\)"):
        torch.tensor([[1.0], torch.tensor(1.0)])
