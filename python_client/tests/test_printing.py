# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""repr(), against what PyTorch prints for the same values."""

import pickle

import pytest


def same(tensor, text):
    assert repr(tensor) == text


def test_numbers(torch):
    same(torch.tensor(3), "tensor(3)")
    same(torch.tensor(2.5), "tensor(2.5000)")
    same(torch.tensor(2.0), "tensor(2.)")
    same(torch.tensor(True), "tensor(True)")
    same(torch.tensor([1.0, 2.0]), "tensor([1., 2.])")
    same(torch.tensor([1.0, 2.5]), "tensor([1.0000, 2.5000])")
    same(torch.tensor([-1.0, 20.0]), "tensor([-1., 20.])")
    same(torch.tensor([0.0, 0.0]), "tensor([0., 0.])")
    same(torch.tensor([1, -20]), "tensor([  1, -20])")
    same(torch.tensor([True, False]), "tensor([ True, False])")
    same(torch.tensor([1e-5, 1.0]), "tensor([1.0000e-05, 1.0000e+00])")
    same(torch.tensor([1e9]), "tensor([1.0000e+09])")
    same(
        torch.tensor([float("nan"), float("inf"), -1.0]),
        "tensor([nan, inf, -1.])",
    )


def test_shapes(torch):
    same(torch.tensor([[1, 2], [3, 4]]), "tensor([[1, 2],\n        [3, 4]])")
    same(
        torch.arange(8).view(2, 2, 2),
        "tensor([[[0, 1],\n         [2, 3]],\n\n        [[4, 5],\n         [6, 7]]])",
    )
    same(torch.zeros(0), "tensor([])")
    same(torch.zeros(0, 3), "tensor([], size=(0, 3))")
    same(
        torch.zeros(0, dtype=torch.int64),
        "tensor([], dtype=holdfast.int64)",
    )


def test_wrapping(torch):
    lines = repr(torch.arange(30)).split("\n")
    assert len(lines) == 2
    assert lines[1].startswith("        ")
    assert all(len(line) <= 80 for line in lines)


def test_suffixes(torch):
    same(
        torch.tensor([1.0], dtype=torch.float64),
        "tensor([1.], dtype=holdfast.float64)",
    )
    same(torch.tensor([1], dtype=torch.uint8), "tensor([1], dtype=holdfast.uint8)")
    x = torch.tensor([1.0], requires_grad=True)
    same(x, "tensor([1.], requires_grad=True)")
    same(x * 2, "tensor([2.], grad_fn=<MulBackward0>)")


def test_summary(torch):
    same(
        torch.arange(2000),
        "tensor([   0,    1,    2,  ..., 1997, 1998, 1999])",
    )
    text = repr(torch.zeros(2000, 2))
    assert text == (
        "tensor([[0., 0.],\n        [0., 0.],\n        [0., 0.],\n        ...,\n"
        "        [0., 0.],\n        [0., 0.],\n        [0., 0.]])"
    )


def test_printing_a_large_tensor_moves_little(torch):
    """Only corners travel: 400 MB print as quickly as the ops take."""
    x = torch.zeros(100, 1000, 1000)
    before = len(repr(x))
    assert before < 2000


def test_options(torch):
    try:
        torch.set_printoptions(precision=2)
        same(torch.tensor([1.2345]), "tensor([1.23])")
        torch.set_printoptions(threshold=3, edgeitems=1)
        same(torch.arange(5), "tensor([0,  ..., 4])")
    finally:
        torch.set_printoptions(profile="default")


def test_other_objects(torch):
    assert repr(torch.float32) == "holdfast.float32"
    assert repr(torch.device("cpu")) == "device(type='cpu')"
    assert str(torch.device("cuda", 1)) == "cuda:1"
    assert torch.device("cuda:1") == torch.device("cuda", 1)
    with pytest.raises(RuntimeError):
        torch.device("toaster")


def test_results_with_names(torch):
    x = torch.tensor([[1.0, 3.0], [2.0, 0.0]])
    largest = x.max(1)
    assert repr(largest) == (
        "torch.return_types.max(\nvalues=tensor([3., 2.]),\nindices=tensor([1, 0]))"
    )
    assert isinstance(largest, torch.return_types.max) and isinstance(largest, tuple)
    again = pickle.loads(pickle.dumps(largest))
    assert type(again) is torch.return_types.max
    assert again.values.tolist() == [3.0, 2.0]
