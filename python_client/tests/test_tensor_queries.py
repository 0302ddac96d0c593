# SPDX-FileCopyrightText: The Holdfast Authors
# SPDX-License-Identifier: Apache-2.0

"""Tensor types by name, settings, small questions, against PyTorch where it has
them."""

import numpy as np
import pytest

import holdfast
from torch_peer import assert_close, torch


def test_typed_tensors():
    x = holdfast.LongTensor([1, 2])
    assert x.dtype is holdfast.int64 and x.tolist() == [1, 2]
    assert isinstance(x, holdfast.LongTensor)
    assert not isinstance(x, holdfast.FloatTensor) and not isinstance(
        3, holdfast.LongTensor
    )
    assert holdfast.FloatTensor(2, 3).shape == (2, 3)
    assert holdfast.FloatTensor().shape == (0,)
    assert holdfast.DoubleTensor(x.double().shape).shape == (2,)
    assert holdfast.BoolTensor([[True]]).dtype is holdfast.bool
    shared = holdfast.LongTensor(x)
    shared[0] = 7
    assert x.tolist() == [7, 2]
    with pytest.raises(TypeError, match="expected FloatTensor"):
        holdfast.FloatTensor(x)
    assert x.new(3).dtype is x.dtype and x.new([5]).tolist() == [5]
    for kind in (holdfast.FloatTensor, "torch.FloatTensor", "holdfast.FloatTensor"):
        assert x.type(kind).dtype is holdfast.float32
    assert not isinstance(x, holdfast.cuda.FloatTensor)
    with pytest.raises(ValueError, match="invalid type"):
        x.type("numpy.FloatTensor")
    holdfast.set_default_tensor_type("torch.FloatTensor")
    with pytest.raises(TypeError, match="invalid type object"):
        holdfast.set_default_tensor_type("torch.Nothing")


def test_settings():
    assert holdfast.get_num_threads() >= 1
    holdfast.set_num_threads(2)
    with pytest.raises(RuntimeError, match="positive integer"):
        holdfast.set_num_threads(0)
    with pytest.raises(TypeError, match="expects an int"):
        holdfast.set_num_threads(1.5)
    holdfast.set_num_interop_threads(2)
    assert holdfast.get_num_interop_threads() >= 1
    assert holdfast.set_flush_denormal(True) is False
    x = holdfast.ones(2)
    assert not holdfast.is_neg(x) and not holdfast.is_inference(x)
    holdfast.use_deterministic_algorithms(True)
    assert holdfast.are_deterministic_algorithms_enabled()
    holdfast.use_deterministic_algorithms(False)
    holdfast.set_float32_matmul_precision("high")
    assert holdfast.get_float32_matmul_precision() == "high"
    with pytest.raises(RuntimeError, match="one of"):
        holdfast.set_float32_matmul_precision("low")
    holdfast.set_float32_matmul_precision("highest")
    assert holdfast.typename(holdfast.ones(1)) == "holdfast.FloatTensor"
    assert holdfast.typename(3) == "int"
    with pytest.raises(AssertionError, match="why"):
        holdfast._assert(False, "why")


def test_questions():
    one = holdfast.tensor([2.0])
    assert holdfast.is_nonzero(one) and not (one * 0).is_nonzero()
    with pytest.raises(RuntimeError, match="2 values is ambiguous"):
        holdfast.ones(2).is_nonzero()
    assert holdfast.is_same_size(one, one * 2) and one.is_signed()
    assert not one.byte().is_signed() and one.get_device() == -1
    assert not one.is_xpu and one.to_dense() is one
    assert holdfast.tensor([[1 + 2j, 3]]).H.tolist() == [[1 - 2j], [3]]


SMALL = np.array([0.0, 1, 2, 3, -8, 1e-30, 0.7, np.inf, -5e300])
SUBNORMAL = np.array([5e-324, 3e-310, 2.5e-308, 1.7e308, -4e-320])
CASES = {
    "frexp": lambda lib: lib.frexp(lib.tensor(SMALL[:7]))[0],
    "frexp exponent": lambda lib: lib.frexp(lib.tensor(SMALL))[1][
        [0, 1, 2, 3, 4, 5, 6, 8]
    ],
    "frexp subnormal": lambda lib: lib.frexp(lib.tensor(SUBNORMAL))[0],
    "frexp subnormal exponent": lambda lib: lib.frexp(lib.tensor(SUBNORMAL))[1],
    "frexp subnormal float": lambda lib: lib.frexp(lib.tensor([1e-45, 1e-40, 3e38]))[0],
    "fill": lambda lib: lib.fill(lib.tensor(SMALL), 3),
    "constant_pad_nd": lambda lib: lib.constant_pad_nd(lib.tensor(SMALL), (1, 2), 4),
    "fill_diagonal_": lambda lib: lib.zeros(3, 5).fill_diagonal_(2),
    "fill_diagonal_ cube": lambda lib: lib.zeros(3, 3, 3).fill_diagonal_(2),
    "fill_diagonal_ view": lambda lib: lib.zeros(6, 6)[::2, 1:4].fill_diagonal_(2),
    "fill_diagonal_ wrap": lambda lib: lib.zeros(9, 3).fill_diagonal_(2, wrap=True),
    "fill_diagonal_ tall": lambda lib: lib.zeros(9, 3).fill_diagonal_(2),
    "unsafe_chunk": lambda lib: lib.unsafe_chunk(lib.tensor(SMALL), 2)[1],
    "prelu": lambda lib: lib.tensor(SMALL).prelu(lib.tensor([0.5]).double()),
    "hardshrink": lambda lib: lib.tensor(SMALL).hardshrink(),
    "frac_": lambda lib: lib.tensor(SMALL[:7]).frac_(),
    "eq_": lambda lib: lib.tensor(SMALL).eq_(2),
    "logical_and_": lambda lib: lib.tensor(SMALL).logical_and_(lib.tensor(SMALL)),
    "deg2rad_": lambda lib: lib.deg2rad_(lib.tensor(SMALL)),
    "nan_to_num_": lambda lib: lib.nan_to_num_(lib.tensor(SMALL)),
    "zero_": lambda lib: lib.zero_(lib.tensor(SMALL)),
    "pdist": lambda lib: lib.pdist(lib.tensor(SMALL[:6].reshape(3, 2))),
    "pdist 1": lambda lib: lib.pdist(lib.tensor(SMALL[:6].reshape(3, 2)), 1.0),
    "pdist of one": lambda lib: lib.pdist(lib.ones(1, 2)),
    "functional.pdist": lambda lib: lib.nn.functional.pdist(
        lib.tensor(SMALL[:6].reshape(2, 3))
    ),
    "linalg.diagonal": lambda lib: lib.linalg.diagonal(lib.ones(2, 3, 4), offset=1),
    "asarray": lambda lib: lib.asarray([1.0, 2], dtype=lib.float64),
}


@pytest.mark.parametrize("name", CASES)
def test_as_in_torch(name):
    assert_close(CASES[name](holdfast), CASES[name](torch))


@pytest.mark.filterwarnings("ignore:torch.range")
def test_range():
    for args in ((0, 4), (1, 2, 0.25), (5, 1, -2), (3,)):
        assert_close(
            holdfast.range(*args),
            torch.range(*((0, *args) if len(args) == 1 else args)),
        )
    with pytest.raises(RuntimeError, match="step sign"):
        holdfast.range(1, 0)


def test_shapes_as_tensors_and_other_memory(torch):
    x = holdfast.zeros(2, 3)
    assert holdfast._shape_as_tensor(x).tolist() == [2, 3]
    assert x.set_(holdfast.ones(4)) is x and x.tolist() == [1.0] * 4
    assert x.set_().numel() == 0
    with pytest.warns(UserWarning, match="resize is deprecated"):
        assert holdfast.zeros(4).resize(2, 2).shape == (2, 2)
    with pytest.raises(RuntimeError, match="got Strided"):
        x.coalesce()
    parts = holdfast.tensor_split(holdfast.arange(4), indices=(1,))
    assert [p.tolist() for p in parts] == [[0], [1, 2, 3]]
    assert holdfast.randint(3, size=(5,)).max().item() < 3
    flat = holdfast._utils._flatten_dense_tensors(
        [holdfast.ones(2), holdfast.zeros(1, 2)]
    )
    assert flat.tolist() == [1.0, 1.0, 0.0, 0.0]
    back = holdfast._utils._unflatten_dense_tensors(
        flat, [x.new_empty(1, 3), x.new_empty(1)]
    )
    assert [tuple(b.shape) for b in back] == [(1, 3), (1,)]
