# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0
"""torch.set_default_dtype."""

import pytest

from holdfast import nn


@pytest.fixture
def double(torch):
    torch.set_default_dtype(torch.float64)
    yield torch
    torch.set_default_dtype(torch.float32)


MADE = {
    "tensor": lambda t: t.tensor([1.0]),
    "Tensor": lambda t: t.Tensor([1]),
    "Tensor of a size": lambda t: t.Tensor(2, 3),
    "empty list": lambda t: t.tensor([]),
    "zeros": lambda t: t.zeros(1),
    "full": lambda t: t.full((2,), 1.0),
    "randn": lambda t: t.randn(2),
    "normal": lambda t: t.normal(0.0, 1.0, (2,)),
    "eye": lambda t: t.eye(2),
    "arange": lambda t: t.arange(0, 1, 0.5),
    "linspace": lambda t: t.linspace(0, 1, 3),
    "hann_window": lambda t: t.hann_window(4),
    "fftfreq": lambda t: t.fft.fftfreq(4),
    "int / int": lambda t: t.tensor([1]) / 2,
    "int * float": lambda t: t.tensor([1]) * 2.5,
    "bool * float": lambda t: t.tensor([True]) * 1.5,
    "exp of int": lambda t: t.tensor(3).exp(),
    "where": lambda t: t.where(t.tensor([True]), t.tensor([1]), 2.5),
    "Linear": lambda t: nn.Linear(2, 2).weight,
}
KEPT = {
    "dtype=": lambda t: t.zeros(1, dtype=t.float32),
    "float()": lambda t: t.tensor([1]).float(),
    "float32 * number": lambda t: t.ones(2, dtype=t.float32) * 2.5,
    "like": lambda t: t.rand_like(t.ones(2, dtype=t.float32)),
    "FloatTensor": lambda t: t.FloatTensor([1]),
}


@pytest.mark.parametrize("name", MADE)
def test_what_has_no_type_gets_the_default(double, name):
    x = MADE[name](double)
    assert x.dtype is double.float64
    x.tolist()  # the daemon agrees


@pytest.mark.parametrize("name", KEPT)
def test_types_that_are_given_stay(double, name):
    assert KEPT[name](double).dtype is double.float32


def test_the_rest(double):
    assert double.get_default_dtype() is double.float64
    assert double.tensor(1j).dtype is double.complex128
    assert double.arange(3).dtype is double.int64
    assert repr(double.ones(1)) == "tensor([1.])"
    assert "float32" in repr(double.ones(1, dtype=double.float32))
    assert (double.tensor([1, 3]) / 3).tolist() == [1 / 3, 1.0]
    double.set_default_tensor_type(double.FloatTensor)
    assert double.zeros(1).dtype is double.float32


def test_only_floating_point_types(torch):
    with pytest.raises(TypeError, match="only floating-point types"):
        torch.set_default_dtype(torch.int64)
    assert torch.get_default_dtype() is torch.float32
